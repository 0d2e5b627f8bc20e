#include "atomic/link/raw_sender.hpp"

#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

#include "atomic/link/frame.hpp"
#include "atomic/link/neighbour.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"

namespace haul::atomics {

int RawSender::open(const char* interface) noexcept {
  const KeepErrno keep;
  ifreq request{};
  std::strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  interface_ = if_nametoindex(interface);
  if (interface_ == 0) return -ENODEV;
  // Protocol 0: it receives nothing.
  const int made = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  const int fd = made < 0 ? -errno : os::above_streams(made);
  if (fd < 0) return fd;
  fd_ = KnownDescriptor(os::Descriptor::of(fd));
  // Opened now, because the threads that send later may be in another network namespace.
  const int ways = open_ways();
  if (ways < 0) {
    close();
    return ways;
  }
  ways_ = os::Descriptor::of(ways);
  sockaddr_ll at{};
  at.sll_family = AF_PACKET;
  at.sll_ifindex = static_cast<int>(interface_);
  if (ioctl(fd, SIOCGIFHWADDR, &request) != 0 ||
      bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    const int error = -errno;
    close();
    return error;
  }
  if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
    close();
    return -EPROTONOSUPPORT;
  }
  std::memcpy(own_mac_, request.ifr_hwaddr.sa_data, sizeof own_mac_);
  const int one = 1;
  setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
  return 0;
}

void RawSender::close() noexcept {
  fd_.close();
  ways_.close();
}

bool RawSender::find_way(const SocketAddress& from, const SocketAddress& to,
                         FrameFront* front) noexcept {
  const KeepErrno keep;
  front->known = false;
  if (!is_open() || to.is_six()) return false;
  NextHop way;
  if (!find_way_to(ways_.get(), to.four.sin_addr.s_addr, &way) || way.interface != interface_)
    return false;
  ether_header eth{};
  std::memcpy(eth.ether_dhost, way.mac, sizeof way.mac);
  std::memcpy(eth.ether_shost, own_mac_, sizeof own_mac_);
  eth.ether_type = htons(ETHERTYPE_IP);
  const std::uint32_t own = from.four.sin_addr.s_addr != 0 ? from.four.sin_addr.s_addr : way.source;
  make_front(eth, own, from.four.sin_port, to.four.sin_addr.s_addr, to.four.sin_port, front->front);
  front->known = true;
  return true;
}

bool RawSender::send(const FrameFront& front, const void* data, std::size_t bytes) noexcept {
  const KeepErrno keep;
  alignas(8) unsigned char frame[FrameFront::bytes + 1400];
  if (!fd_.is_ours()) {
    close();
    return false;
  }
  if (bytes > sizeof frame - FrameFront::bytes) return true;
  std::memcpy(frame, front.front, FrameFront::bytes);
  std::memcpy(frame + FrameFront::bytes, data, bytes);
  set_payload(frame, bytes);
  // What cannot be sent is lost, and repeated later.
  (void)!::send(fd_.number(), frame, FrameFront::bytes + bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  return true;
}

}  // namespace haul::atomics
