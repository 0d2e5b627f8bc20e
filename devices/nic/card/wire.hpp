// Frames by a gigabit card's rings, straight from a fragment's source to its destination.
//
// A frame is its header, filled up to one receive buffer, and a fragment of whole buffers. To send
// it the card gathers both. Of what it receives it puts the first buffer's bytes into a block of
// the wire's own, and the following ones into the destination itself, a buffer's length each:
// exact placement, and no frame, however long, writes beyond the buffers that were posted.
//
// The card takes posted buffers in order, whatever frame comes. So buffers are posted as frames are
// sent, in the same order, and hold fragments alone that have not arrived; whether the right frame
// came its header says, and its end in the right buffer. After a frame that was not the expected
// one, or was lost, buffers and frames are out of step. Then nothing more is sent until all that
// was has been read by the card (so no old frame is read from a source that has changed), and the
// buffers that are left over are used up by frames of filling (clear()), after frames that wait
// before the card for more buffers have got them. So the card's receiver is never stopped, which
// takes some cards a second to recover from. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "devices/nic/card/gigabit.hpp"
#include "devices/nic/frame.h"
#include "devices/nic/trial.hpp"

namespace haul::nic {

// Of a frame to a made-up address, which no card has: where a cable leads elsewhere, nobody takes
// it in.
nic_header blank_header() noexcept;

class CardWire {
 public:
  // Frames that are under way, at most; each may take two places in the ring of those sent.
  static constexpr std::uint32_t most_frames = 64;
  static constexpr std::uint32_t receive_entries = 2048, send_entries = 1024, send_frames = 128;

  // How much memory it wants (whole pages), and where that lies, for the CPU and for the card.
  static std::size_t memory_bytes(std::size_t buffer_bytes, std::size_t frame_bytes) noexcept;
  void place(void* memory, std::uint64_t iova, std::size_t buffer_bytes, std::size_t frame_bytes,
             std::uint64_t part_boundary) noexcept;
  CardRing receive_ring() const noexcept;
  CardRing send_ring() const noexcept;

  // Is there room for one more fragment of so many buffers?
  bool has_room(std::size_t buffers) noexcept;
  // Posts a fragment's buffers and puts its frame into the ring; ring() tells the card.
  void put(const nic_header& header, std::uint64_t dst, std::uint64_t src,
           FrameTrial& trial) noexcept;
  void ring(GigabitCard& card) noexcept;

  // What came into the buffers of the oldest frame that is under way.
  enum class Came : std::uint8_t { nothing, fragment, other };
  // *turn: of the fragment, which has the number `expected`.
  Came look(std::uint64_t key, std::uint64_t expected, std::uint32_t* turn) const noexcept;
  // The oldest one's fragment has arrived.
  void take() noexcept { ++taken_; }

  // Nothing is put until clear() says that rings and card are empty.
  // `patience_ns`: for how long nothing more comes of what was sent, at first.
  void begin_to_clear(std::uint64_t now_ns, std::uint64_t patience_ns) noexcept;
  bool clear(GigabitCard& card, std::uint64_t now_ns) noexcept;
  std::uint64_t cleared_for_ns(std::uint64_t now_ns) const noexcept { return now_ns - begun_ns_; }

 private:
  struct Posted {
    std::uint32_t first, count;  // of its buffers
  };

  nic_header& block(std::uint64_t frame) const noexcept {
    return *reinterpret_cast<nic_header*>(blocks_ + frame % most_frames * buffer_bytes_);
  }
  void post(std::uint64_t address) noexcept {
    receive_[posted_++ % receive_entries] = {address, 0};
  }
  void send(const nic_header& header, std::uint64_t src) noexcept;
  void send_rest(std::uint64_t address, std::uint64_t bytes) noexcept;
  void send_held() noexcept;
  void note_read() noexcept;
  bool has_room_to_send(std::uint32_t frames) noexcept;
  void fill_up(std::uint32_t buffers) noexcept;

  std::size_t buffer_bytes_ = 0, frame_bytes_ = 0;
  CardDescriptor* receive_ = nullptr;
  CardDescriptor* send_ = nullptr;
  unsigned char* blocks_ = nullptr;   // first buffers of frames that are received
  unsigned char* headers_ = nullptr;  // and of those that are sent
  std::uint64_t iova_ = 0, blocks_iova_ = 0, headers_iova_ = 0, filling_iova_ = 0;

  Posted frames_[most_frames];
  std::uint64_t put_ = 0, taken_ = 0;  // frames
  // The same in the other ring, and those that the card has read; of each the descriptor behind it.
  std::uint64_t sent_ = 0, read_ = 0;
  std::uint32_t behind_[send_frames] = {};
  std::uint32_t parts_ = 0, parts_read_ = 0;  // descriptors
  std::uint64_t part_boundary_ = 0;
  std::uint32_t most_parts_ = 0;  // of a frame
  // A frame that the next one is to overtake.
  bool holds_ = false;
  nic_header held_{};
  std::uint64_t held_src_ = 0;
  std::uint32_t posted_ = 0;  // buffers
  std::uint32_t used_ = 0;    // of them those that the card has used, while it clears
  std::uint64_t begun_ns_ = 0, last_ns_ = 0, patience_ns_ = 0;
};

}  // namespace haul::nic
