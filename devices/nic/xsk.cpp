#include "devices/nic/xsk.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace haul::nic {
namespace {

// XDP_USE_SG and XDP_PKT_CONTD of Linux 6.6, which older headers lack.
constexpr std::uint16_t takes_parts = 1 << 4;
constexpr std::uint32_t frame_goes_on = 1 << 0;

std::uint32_t parts_of(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + NIC_PART_BYTES - 1) / NIC_PART_BYTES);
}

bool set(int fd, int option, const void* value, std::size_t bytes) {
  return setsockopt(fd, SOL_XDP, option, value, static_cast<socklen_t>(bytes)) == 0;
}

}  // namespace

template <class Entry>
bool XskReceiver::map(XskRing<Entry>& ring, const xdp_ring_offset& offsets,
                      long page_offset) noexcept {
  ring.mapped_bytes = offsets.desc + ring_entries * sizeof(Entry);
  ring.mapped = mmap(nullptr, ring.mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                     socket_.fd(), page_offset);
  if (ring.mapped == MAP_FAILED) {
    ring.mapped = nullptr;
    return false;
  }
  char* const start = static_cast<char*>(ring.mapped);
  ring.producer = reinterpret_cast<std::uint32_t*>(start + offsets.producer);
  ring.consumer = reinterpret_cast<std::uint32_t*>(start + offsets.consumer);
  ring.entries = reinterpret_cast<Entry*>(start + offsets.desc);
  return true;
}

template <class Entry>
void XskReceiver::unmap(XskRing<Entry>& ring) noexcept {
  if (ring.mapped != nullptr) munmap(ring.mapped, ring.mapped_bytes);
  ring = {};
}

int XskReceiver::open(unsigned interface, std::uintptr_t address, std::size_t bytes,
                      bool in_parts) noexcept {
  address_ = address;
  bytes_ = bytes;
  if (!socket_.take(socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0))) return errno;
  const int fd = socket_.fd();
  xdp_umem_reg memory{};
  memory.addr = address;
  memory.len = bytes;
  memory.chunk_size = NIC_CHUNK_BYTES;
  memory.flags = XDP_UMEM_UNALIGNED_CHUNK_FLAG;
  // (Nothing is sent by this socket; the kernel wants a ring for what was.)
  const std::uint32_t many = ring_entries, few = 2;
  xdp_mmap_offsets offsets{};
  socklen_t offsets_bytes = sizeof offsets;
  if (!set(fd, XDP_UMEM_REG, &memory, sizeof memory) ||
      !set(fd, XDP_UMEM_FILL_RING, &many, sizeof many) ||
      !set(fd, XDP_UMEM_COMPLETION_RING, &few, sizeof few) ||
      !set(fd, XDP_RX_RING, &many, sizeof many) ||
      getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &offsets_bytes) != 0 ||
      !map(fill_, offsets.fr, static_cast<long>(XDP_UMEM_PGOFF_FILL_RING)) ||
      !map(received_, offsets.rx, XDP_PGOFF_RX_RING))
    return errno;
  sockaddr_xdp where{};
  where.sxdp_family = AF_XDP;
  where.sxdp_ifindex = interface;
  // A card that writes by itself (zero copy) would write the header, too, in front of the bytes.
  where.sxdp_flags = static_cast<std::uint16_t>(XDP_COPY | (in_parts ? takes_parts : 0));
  // The kernel takes the last region from the port some time after its socket was closed.
  constexpr unsigned patience_ms = 200;
  int error = EBUSY;
  for (unsigned waited_ms = 0; error == EBUSY && waited_ms < patience_ms; ++waited_ms) {
    if (waited_ms != 0) usleep(1000);
    error = bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 ? 0 : errno;
  }
  return error;
}

void XskReceiver::close() noexcept {
  unmap(fill_);
  unmap(received_);
  socket_.close();
  filled_ = taken_ = 0;
  prepared_ = complete_ = late_ = early_ = 0;
}

void XskReceiver::margins(std::uintptr_t dst, std::size_t bytes, std::size_t fragment_bytes,
                          std::size_t* front, std::size_t* end) const noexcept {
  const std::size_t before = dst - address_,
                    stride = std::min<std::size_t>(fragment_bytes, NIC_PART_BYTES);
  *front = std::min(bytes, before < NIC_HEADROOM_BYTES ? NIC_HEADROOM_BYTES - before : 0);
  // From the first placed byte on, a part begins each `stride` bytes and has room for a whole one.
  const std::size_t room = bytes_ - before - *front;
  const std::size_t most =
      room < NIC_PART_BYTES ? 0 : ((room - NIC_PART_BYTES) / stride + 1) * stride;
  *end = bytes - *front - std::min(bytes - *front, most);
}

unsigned XskReceiver::prepare(const FragmentStream& stream, unsigned most) noexcept {
  unsigned count = 0;
  const unsigned wanted = std::min(most, stream.sendable());
  for (; count < wanted; ++count) {
    const std::uint64_t number = stream.sent() + count;
    if (number < prepared_) continue;
    const Fragment fragment = stream.fragment(number);
    const std::uint32_t parts = parts_of(fragment.bytes);
    // (Both rings have room for what is neither placed nor taken: it is counted here.)
    if (filled_ + parts - taken_ > ring_entries) break;
    for (std::uint32_t part = 0; part < parts; ++part)
      fill_.entries[filled_++ % ring_entries] =
          fragment.dst + part * NIC_PART_BYTES - NIC_HEADROOM_BYTES - address_;
    prepared_ = number + 1;
  }
  // Pairs with the kernel's acquire load: it reads entries behind this.
  __atomic_store_n(fill_.producer, filled_, __ATOMIC_RELEASE);
  return count;
}

void XskReceiver::begin_turn(nic_lane& lane, std::uint32_t turn) noexcept {
  __atomic_store_n(&lane.turn, turn, __ATOMIC_RELAXED);
  early_ = __atomic_load_n(&lane.early, __ATOMIC_RELAXED);
}

bool XskReceiver::receive(FragmentStream& stream, const nic_lane& lane,
                          std::uint64_t now_ns) noexcept {
  // Pairs with the kernel's release store: descriptors, and the bytes they tell of, are there.
  const std::uint32_t behind = __atomic_load_n(received_.producer, __ATOMIC_ACQUIRE);
  while (taken_ != behind) {
    const xdp_desc& descriptor = received_.entries[taken_ % ring_entries];
    // The address below, the offset of the bytes above.
    constexpr unsigned offset_shift = XSK_UNALIGNED_BUF_OFFSET_SHIFT;
    const std::uint64_t place = (descriptor.addr & ((std::uint64_t{1} << offset_shift) - 1)) +
                                (descriptor.addr >> offset_shift);
    if (place != fill_.entries[taken_ % ring_entries] + NIC_HEADROOM_BYTES) return false;
    ++taken_;
    if ((descriptor.options & frame_goes_on) == 0) ++complete_;
  }
  __atomic_store_n(received_.consumer, taken_, __ATOMIC_RELEASE);
  const std::uint64_t counted = __atomic_load_n(&lane.expected, __ATOMIC_ACQUIRE);
  if (const std::uint64_t late = __atomic_load_n(&lane.late, __ATOMIC_RELAXED); late != late_) {
    late_ = late;
    stream.came_late();
  }
  if (__atomic_load_n(&lane.early, __ATOMIC_RELAXED) != early_) stream.came_early();
  if (counted == complete_ && complete_ > stream.arrived())
    stream.arrive(static_cast<unsigned>(complete_ - stream.arrived()), now_ns);
  return counted >= complete_;
}

}  // namespace haul::nic
