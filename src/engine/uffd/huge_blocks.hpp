// The whole huge pages (2 MiB) of a destination that is watched as missing: filled aside, and moved
// there as they are (UFFDIO_MOVE, Linux 6.8). Where the destination's own page lies aside, it is
// that one; elsewhere it is a new one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/private.hpp"
#include "base/sync/turnstile.hpp"
#include "engine/engine.hpp"

namespace haul {

// May huge pages be made? Not until that is said.
void allow_huge_blocks(bool allowed) noexcept;
// Where destinations' own pages may lie.
void look_aside_in(const HaulPrivateAsides& asides) noexcept;

// A piece's (whole pages, a copy or a fill), which are provided when this is made, as far as they
// can be: not where a page of theirs is there already, where the source cannot be read, where the
// kernel refuses, or beyond the first 512. The front one comes last, since that is where a reader
// begins: whoever serves that reader brings its pages one by one, and what is provided meanwhile is
// ahead of both.
//
// Blocks for 0.2 to 0.6 ms a block. Any thread.
class HugeBlocks {
 public:
  // `turnstile`: passed with each block; may be nullptr.
  HugeBlocks(int fd, Turnstile* turnstile, const Piece& piece) noexcept;

  // What lies at this offset: the rest of a block that is there, or of what is not.
  struct Stretch {
    std::size_t bytes;
    bool provided;
  };
  Stretch stretch_at(std::size_t offset) const noexcept;

 private:
  static constexpr std::size_t room = 512;

  void provide(int fd, std::size_t number) noexcept;
  bool bring(int fd, std::size_t offset) noexcept;
  bool fill_and_move(int fd, std::size_t offset, std::uintptr_t place, bool is_new) noexcept;

  Turnstile* turnstile_;
  const Piece& piece_;
  std::size_t first_ = 0;  // offset of the first block
  std::size_t count_ = 0;
  std::uint64_t provided_[room / 64] = {};
};

}  // namespace haul
