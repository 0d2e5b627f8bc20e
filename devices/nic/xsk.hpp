// Receiving by AF_XDP: the kernel puts each fragment's bytes where they belong, without a system
// call here. The memory of one region is the socket's (its UMEM), in unaligned chunks; an entry of
// the fill ring is the address of a part's destination less the headroom that XDP keeps in front.
//
// What is in place: the program counts a fragment that it lets pass, then the kernel fetches its
// fill entries, copies the bytes and writes a receive descriptor for each part. The ring's producer
// index is paper 004's notification word (2.2), written after the data. Should the kernel drop a
// fragment that was counted, all later ones would lie in a wrong place. So fragments that were
// received count as arrived only when a later look at the program's count finds no more of them:
// then none is missing. One thread at a time.
#pragma once

#include <linux/if_xdp.h>

#include <cstddef>
#include <cstdint>

#include "devices/nic/frame.h"
#include "devices/nic/packet.hpp"
#include "devices/nic/stream.hpp"

namespace haul::nic {

// A ring that the kernel shares. Entries are counted through; the masks are ours.
template <class Entry>
struct XskRing {
  std::uint32_t *producer = nullptr, *consumer = nullptr;
  Entry* entries = nullptr;
  void* mapped = nullptr;
  std::size_t mapped_bytes = 0;
};

class XskReceiver {
 public:
  ~XskReceiver() { close(); }
  // In the port's network namespace: registers the memory for the port. `in_parts`: fragments may
  // be longer than a part, which takes Linux 6.6. 0 or an errno.
  int open(unsigned interface, std::uintptr_t address, std::size_t bytes, bool in_parts) noexcept;
  int fd() const noexcept { return socket_.fd(); }
  void close() noexcept;

  // Which bytes of a destination cannot be placed by fragments, as the chunks around them would
  // reach beyond the region: so many at its front and at its end. Their sum may be all.
  void margins(std::uintptr_t dst, std::size_t bytes, std::size_t fragment_bytes,
               std::size_t* front, std::size_t* end) const noexcept;

  // How many fragments may be sent, for which there is room in the rings. Fill entries for them are
  // there then.
  unsigned prepare(const FragmentStream& stream, unsigned most) noexcept;
  // From now on fragments are sent in this turn. (What is early in the one before may still be
  // counted, and costs one more turn.)
  void begin_turn(nic_lane& lane, std::uint32_t turn) noexcept;
  // Takes what has come. False: something came that cannot be.
  bool receive(FragmentStream& stream, const nic_lane& lane, std::uint64_t now_ns) noexcept;

 private:
  static constexpr std::uint32_t ring_entries = 1024;

  template <class Entry>
  bool map(XskRing<Entry>& ring, const xdp_ring_offset& offsets, long page_offset) noexcept;
  template <class Entry>
  static void unmap(XskRing<Entry>& ring) noexcept;

  PortSocket socket_;
  std::uintptr_t address_ = 0;
  std::size_t bytes_ = 0;
  XskRing<std::uint64_t> fill_;
  XskRing<xdp_desc> received_;
  std::uint32_t filled_ = 0, taken_ = 0;  // entries: put into the one ring, taken from the other
  std::uint64_t prepared_ = 0;            // fragments that have fill entries
  std::uint64_t complete_ = 0;            // fragments whose last part was taken
  std::uint64_t late_ = 0, early_ = 0;    // as the program counted
};

}  // namespace haul::nic
