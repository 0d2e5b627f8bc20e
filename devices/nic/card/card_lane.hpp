// A lane without the kernel: a card of this program's own (vfio.hpp) and the pieces that go through
// it. The card reads a piece's bytes from its source and writes them to its destination by itself;
// what is left to the CPU are descriptors, and the bytes that fill no receive buffer. One thread at
// a time drives it; pin() and unpin() come one at a time, from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "devices/nic/card/gigabit.hpp"
#include "devices/nic/card/regions.hpp"
#include "devices/nic/card/vfio.hpp"
#include "devices/nic/card/wire.hpp"
#include "devices/nic/loop.hpp"
#include "devices/nic/stream.hpp"

namespace haul::nic {

class CardLane {
 public:
  // The card at this PCI address. False: the sentence says why not and the remedy.
  bool open(const char* address, const Choices& choices, char* sentence,
            std::size_t bytes) noexcept;
  const char* model() const noexcept { return model_->name; }
  // True: the card writes nothing to pieces' memory any more. False: nobody can tell; try again.
  bool stop() noexcept;
  std::size_t buffer_bytes() const noexcept { return buffer_bytes_; }
  // It is others', and nothing of this is called any more.
  void give_back() noexcept { device_.close(); }

  Code pin(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) noexcept {
    return regions_.add(address, bytes, region);
  }
  void unpin(std::uint64_t region) noexcept { regions_.remove(region); }

  // These as a Lane's (lane.hpp).
  bool idle() const noexcept { return stream_.idle(); }
  bool has_room() const noexcept { return stream_.has_room(); }
  bool reaches(const Piece& piece) const noexcept;
  bool take(const Piece& piece, std::uint64_t tag) noexcept;
  void send(std::uint64_t now_ns) noexcept;
  bool advance(std::uint64_t now_ns) noexcept;
  std::size_t finish(Finished* finished, std::size_t most) noexcept {
    return stream_.finish(finished, most);
  }
  void fail() noexcept { stream_.fail(Code::io); }

 private:
  bool place(const Choices& choices, char* sentence, std::size_t bytes) noexcept;
  bool receive(std::uint64_t now_ns) noexcept;

  const CardModel* model_ = nullptr;
  VfioDevice device_;
  GigabitCard card_;
  CardRegions regions_;
  CardWire wire_;
  FragmentStream stream_;
  FrameTrial trial_;
  std::uint64_t key_ = 0;
  std::size_t buffer_bytes_ = 0;
  bool plugged_ = false, clearing_ = false;
};

}  // namespace haul::nic
