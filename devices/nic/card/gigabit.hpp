// A gigabit card of the family 8254x (Intel's "PCI/PCI-X Family of Gigabit Ethernet Controllers
// Software Developer's Manual") and its successor 82574 (its datasheet), by its registers: rings of
// legacy descriptors, frames looped within the card's transceiver or by a plug, no interrupts. One
// thread at a time.
//
// What the CPU stores into descriptors and buffers the card sees when their doorbell is rung; what
// it has written is seen once its descriptor is (x86-64's order of stores, and PCI's).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace haul::nic {

struct CardModel {
  std::uint16_t vendor, device;
  const char* name;
  std::size_t most_frame_bytes;  // without their check sum
  // Of its packet buffer for what it receives, in KiB; the rest is for what it sends.
  std::uint32_t receive_buffer_kib;
  bool successor;  // 82574
  // A part of a frame to be sent lies between two multiples of this: within a page, as QEMU's
  // 82574L maps a part as one range, which an IOMMU's pages need not be.
  std::uint64_t part_boundary;
};
// nullptr: haul does not know it.
const CardModel* card_model(std::uint16_t vendor, std::uint16_t device) noexcept;
inline constexpr char known_cards[] =
    "8086:100e (82540EM), 8086:100f (82545EM), 8086:10d3 (82574L)";

// As the card reads and writes them. What it receives without fault into a whole buffer has
// received() as its state, within received_mask.
struct CardDescriptor {
  std::uint64_t address;
  std::uint64_t state;

  static constexpr std::uint64_t done = std::uint64_t{1} << 32;
  static constexpr std::uint64_t frame_ends = std::uint64_t{1} << 33;
  static constexpr std::uint64_t received_mask =
      0xffff | done | frame_ends | std::uint64_t{0x97} << 40;
  static constexpr std::uint64_t received(std::size_t bytes, bool last) noexcept {
    return bytes | done | (last ? frame_ends : 0);
  }
  // To be sent: a part of a frame; of the last part the card says when it has read it.
  static constexpr std::uint64_t to_send(std::size_t bytes, bool last) noexcept {
    constexpr std::uint64_t ends = 1 << 24, adds_sum = 1 << 25, says_so = 1 << 27;
    return bytes | adds_sum | (last ? ends | says_so : 0);
  }
  // Acquire: what was written before it is seen.
  std::uint64_t state_now() const noexcept { return __atomic_load_n(&state, __ATOMIC_ACQUIRE); }
};

struct CardRing {
  std::uint64_t iova = 0;
  std::uint32_t entries = 0;
};

class GigabitCard {
 public:
  // Where its registers are mapped. It does nothing, and interrupts nobody, from now on.
  void reset(const CardModel& model, volatile std::uint32_t* registers) noexcept;
  // A frame that is received takes buffers of 256, 512, 1024 or 2048 bytes. `plugged`: its frames
  // return by a plug; else they do within the card. False: it has no link within five seconds.
  bool start(CardRing receive, CardRing send, std::size_t buffer_bytes, bool plugged) noexcept;
  // It takes in and sends nothing more.
  void stop() noexcept;

  // Descriptors below this place of the ring are the card's.
  void ring_receive(std::uint32_t behind) noexcept { ring(receive_tail, behind); }
  void ring_send(std::uint32_t behind) noexcept { ring(send_tail, behind); }

 private:
  static constexpr std::uint32_t receive_tail = 0x2818, send_tail = 0x3818;

  void write(std::uint32_t at, std::uint32_t value) noexcept { registers_[at / 4] = value; }
  std::uint32_t read(std::uint32_t at) const noexcept { return registers_[at / 4]; }
  void ring(std::uint32_t at, std::uint32_t behind) noexcept {
    // The card reads descriptors behind this.
    std::atomic_thread_fence(std::memory_order_release);
    write(at, behind);
  }
  bool write_transceiver(std::uint32_t at, std::uint16_t value) noexcept;
  void start_link(bool plugged) noexcept;

  const CardModel* model_ = nullptr;
  volatile std::uint32_t* registers_ = nullptr;
};

}  // namespace haul::nic
