#include "devices/nic/packet.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace haul::nic {
namespace {

// Room for a window of frames, with what the kernel counts besides their bytes.
constexpr int buffer_bytes = 16 << 20;

int open_bound(unsigned interface, int protocol) noexcept {
  // (Bound to no protocol at first, so that no frame comes before the filter is there.)
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || protocol < 0) return fd;
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(static_cast<std::uint16_t>(protocol));
  address.sll_ifindex = static_cast<int>(interface);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

bool passes(int error) noexcept {
  return error == EAGAIN || error == ENOBUFS || error == EINTR || error == ENOMEM;
}

}  // namespace

void hear_all(int fd, unsigned interface) noexcept {
  packet_mreq all{};
  all.mr_ifindex = static_cast<int>(interface);
  all.mr_type = PACKET_MR_PROMISC;
  setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all);
}

bool PortSocket::take(int fd) noexcept {
  close();
  // A program's standard streams may be closed, and their numbers are then not ours to take.
  if (fd >= 0 && fd <= STDERR_FILENO) {
    fd_ = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ::close(fd);
  } else {
    fd_ = fd;
  }
  return fd_ >= 0;
}

void PortSocket::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool PacketSender::open(unsigned interface) noexcept {
  if (!socket_.take(open_bound(interface, 0))) return false;
  const int on = 1;
  // Frames go to the port at once, past queues that may drop them. (Neither is necessary.)
  setsockopt(socket_.fd(), SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
  setsockopt(socket_.fd(), SOL_SOCKET, SO_SNDBUFFORCE, &buffer_bytes, sizeof buffer_bytes);
  return true;
}

void PacketSender::put(const Fragment& fragment, std::uint64_t number, std::uint32_t turn,
                       LaneName lane) noexcept {
  const unsigned at = batch_.count++;
  nic_header& header = batch_.headers[at];
  header = nic_header{};
  // To a made-up address, which no card has: on a port that is not looped nobody takes it in.
  constexpr unsigned char nobody[] = {0x02, 'h', 'a', 'u', 'l', 0};
  std::memcpy(header.addresses, nobody, sizeof nobody);
  header.ethertype = htons(NIC_ETHERTYPE);
  header.lane = lane.index;
  header.bytes = static_cast<std::uint32_t>(fragment.bytes);
  header.turn = turn;
  header.key = lane.key;
  header.sequence = number;
  batch_.parts[at][0] = {&header, sizeof header};
  batch_.parts[at][1] = {reinterpret_cast<void*>(fragment.src), fragment.bytes};
}

void PacketSender::copy_last() noexcept {
  const unsigned at = batch_.count++;
  batch_.headers[at] = batch_.headers[at - 1];
  batch_.parts[at][0] = {&batch_.headers[at], sizeof(nic_header)};
  batch_.parts[at][1] = batch_.parts[at - 1][1];
}

void PacketSender::swap_last() noexcept {
  const unsigned at = batch_.count - 1;
  std::swap(batch_.headers[at], batch_.headers[at - 1]);
  std::swap(batch_.parts[at][1], batch_.parts[at - 1][1]);
}

bool PacketSender::send(FragmentStream& stream, unsigned most, LaneName lane, FrameTrial& trial,
                        std::uint64_t now_ns) noexcept {
  batch_.count = 0;
  // (A frame that is sent twice takes two places.)
  const unsigned wanted = std::min({most, stream.sendable(), most_at_once / 2});
  for (unsigned i = 0; i < wanted; ++i) {
    const std::uint64_t number = stream.sent() + i;
    put(stream.fragment(number), number, stream.turn(), lane);
    if (batch_.count >= 2 && trial.swaps()) swap_last();
    if (trial.repeats()) copy_last();
    if (trial.loses()) --batch_.count;
  }
  for (unsigned i = 0; i < batch_.count; ++i) {
    batch_.messages[i] = mmsghdr{};
    batch_.messages[i].msg_hdr.msg_iov = batch_.parts[i];
    batch_.messages[i].msg_hdr.msg_iovlen = 2;
  }
  int sent = 0;
  if (batch_.count != 0) sent = sendmmsg(socket_.fd(), batch_.messages, batch_.count, 0);
  if (sent < 0) return passes(errno);
  // Where the kernel took some only, the last of these says how far it came. (What a trial lost is
  // as good as sent.)
  unsigned counted = wanted;
  if (static_cast<unsigned>(sent) < batch_.count) {
    std::uint64_t behind = stream.sent();
    for (int i = 0; i < sent; ++i) behind = std::max(behind, batch_.headers[i].sequence + 1);
    counted = static_cast<unsigned>(behind - stream.sent());
  }
  stream.send(counted, now_ns);
  return true;
}

bool PacketReceiver::filter(LaneName lane) noexcept {
  constexpr auto key_at = static_cast<std::uint32_t>(offsetof(nic_header, key));
  constexpr auto lane_at = static_cast<std::uint32_t>(offsetof(nic_header, lane));
  std::uint32_t halves[2];
  std::memcpy(halves, &lane.key, sizeof halves);
  // (Such a filter reads numbers in network order.)
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, key_at),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(halves[0]), 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, key_at + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(halves[1]), 0, 3),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, lane_at),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(lane.index), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0xffff'ffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const sock_fprog program{sizeof code / sizeof code[0], code};
  return setsockopt(socket_.fd(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

bool PacketReceiver::open(unsigned interface, LaneName lane) noexcept {
  lane_ = lane;
  if (!socket_.take(open_bound(interface, -1)) || !filter(lane)) return false;
  const int on = 1;
  // A port that returns its own output shows each frame twice, as it leaves and as it comes.
  setsockopt(socket_.fd(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
  setsockopt(socket_.fd(), SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof buffer_bytes);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(NIC_ETHERTYPE);
  address.sll_ifindex = static_cast<int>(interface);
  hear_all(socket_.fd(), interface);
  return bind(socket_.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// The kernel writes the frames' bytes where the next fragments belong, before anybody has seen
// their headers. A frame that is not the one expected there leaves bytes that are wrong, within a
// fragment that has not arrived and that is written again before it does.
bool PacketReceiver::receive(FragmentStream& stream, std::uint64_t now_ns) noexcept {
  const unsigned wanted = static_cast<unsigned>(
      std::min<std::uint64_t>(stream.sent() - stream.arrived(), most_at_once));
  for (unsigned i = 0; i < wanted; ++i) {
    const Fragment fragment = stream.fragment(stream.arrived() + i);
    parts_[i][0] = {&headers_[i], sizeof headers_[i]};
    parts_[i][1] = {reinterpret_cast<void*>(fragment.dst), fragment.bytes};
    messages_[i] = mmsghdr{};
    messages_[i].msg_hdr.msg_iov = parts_[i];
    messages_[i].msg_hdr.msg_iovlen = 2;
  }
  if (wanted == 0) return true;
  const int count = recvmmsg(socket_.fd(), messages_, wanted, MSG_DONTWAIT, nullptr);
  if (count < 0) return passes(errno);
  unsigned good = 0;
  bool early = false;
  for (int i = 0; i < count; ++i) {
    const nic_header& header = headers_[i];
    const std::size_t bytes = parts_[i][1].iov_len;
    // It is the next one, and it lies in the next one's place: all before it were good.
    const bool whole = (messages_[i].msg_hdr.msg_flags & MSG_TRUNC) == 0 &&
                       messages_[i].msg_len == sizeof header + bytes;
    const std::uint64_t expected = stream.arrived() + good;
    if (static_cast<unsigned>(i) == good && header.key == lane_.key &&
        header.sequence == expected && header.bytes == bytes && whole) {
      ++good;
      if (header.turn != stream.turn()) stream.came_late();
    } else if (header.key == lane_.key && header.sequence >= expected) {
      // (Also the expected one, where another frame took its place.)
      early |= header.turn == stream.turn();
    }
  }
  stream.arrive(good, now_ns);
  if (early) stream.came_early();
  return true;
}

}  // namespace haul::nic
