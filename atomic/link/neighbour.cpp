#include "atomic/link/neighbour.hpp"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"

namespace haul::atomics {

namespace {

// One question, one answer.
struct NeighbourQuestion {
  nlmsghdr header{};
  union {
    rtmsg route;
    ndmsg neighbour;
  };
  unsigned char attributes[64] = {};
  NeighbourQuestion() noexcept : route{} {}

  void begin(std::uint16_t type, std::size_t body_bytes) noexcept {
    header.nlmsg_type = type;
    header.nlmsg_flags = NLM_F_REQUEST;
    header.nlmsg_len = static_cast<__u32>(NLMSG_LENGTH(body_bytes));
  }
  void add(std::uint16_t type, std::uint32_t value) noexcept {
    rtattr attribute{};
    attribute.rta_type = type;
    attribute.rta_len = RTA_LENGTH(sizeof value);
    auto* at = reinterpret_cast<unsigned char*>(this) + NLMSG_ALIGN(header.nlmsg_len);
    std::memcpy(at, &attribute, sizeof attribute);
    std::memcpy(at + RTA_LENGTH(0), &value, sizeof value);
    header.nlmsg_len = static_cast<__u32>(NLMSG_ALIGN(header.nlmsg_len) + RTA_SPACE(sizeof value));
  }
};

struct NeighbourAnswer {
  alignas(nlmsghdr) unsigned char bytes[4096];
  const nlmsghdr* header() const noexcept { return reinterpret_cast<const nlmsghdr*>(bytes); }
};

bool ask(int fd, const NeighbourQuestion& question, std::uint16_t expected,
         NeighbourAnswer* answer) noexcept {
  if (send(fd, &question, question.header.nlmsg_len, 0) < 0) return false;
  // The kernel has answered before send() returned.
  const ssize_t got = recv(fd, answer->bytes, sizeof answer->bytes, MSG_DONTWAIT);
  return got >= static_cast<ssize_t>(sizeof(nlmsghdr)) &&
         NLMSG_OK(answer->header(), static_cast<unsigned>(got)) &&
         answer->header()->nlmsg_type == expected;
}

// Copies attribute `type` of a message with a body of `body_bytes`. False: it has none.
bool attribute_of(const nlmsghdr* message, std::size_t body_bytes, std::uint16_t type, void* to,
                  std::size_t bytes) noexcept {
  const auto* front = reinterpret_cast<const unsigned char*>(message);
  std::size_t at = NLMSG_SPACE(body_bytes);
  while (at + sizeof(rtattr) <= message->nlmsg_len) {
    rtattr attribute;
    std::memcpy(&attribute, front + at, sizeof attribute);
    if (attribute.rta_len < sizeof attribute) return false;
    if (attribute.rta_type == type && attribute.rta_len == RTA_LENGTH(bytes)) {
      std::memcpy(to, front + at + RTA_LENGTH(0), bytes);
      return true;
    }
    at += RTA_ALIGN(attribute.rta_len);
  }
  return false;
}

bool find(int fd, std::uint32_t address, NextHop* way) noexcept {
  NeighbourAnswer answer;
  NeighbourQuestion route;
  route.begin(RTM_GETROUTE, sizeof route.route);
  route.route.rtm_family = AF_INET;
  route.route.rtm_dst_len = 32;
  route.add(RTA_DST, address);
  if (!ask(fd, route, RTM_NEWROUTE, &answer)) return false;
  std::uint32_t hop = address, interface = 0;
  if (!attribute_of(answer.header(), sizeof(rtmsg), RTA_OIF, &interface, sizeof interface)) {
    return false;
  }
  attribute_of(answer.header(), sizeof(rtmsg), RTA_GATEWAY, &hop, sizeof hop);
  attribute_of(answer.header(), sizeof(rtmsg), RTA_PREFSRC, &way->source, sizeof way->source);
  way->interface = interface;

  NeighbourQuestion neighbour;
  neighbour.begin(RTM_GETNEIGH, sizeof neighbour.neighbour);
  neighbour.neighbour = ndmsg{};
  neighbour.neighbour.ndm_family = AF_INET;
  neighbour.neighbour.ndm_ifindex = static_cast<int>(interface);
  neighbour.add(NDA_DST, hop);
  if (!ask(fd, neighbour, RTM_NEWNEIGH, &answer)) return false;
  ndmsg state;
  std::memcpy(&state, answer.bytes + NLMSG_LENGTH(0), sizeof state);
  constexpr unsigned usable = NUD_PERMANENT | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;
  return (state.ndm_state & usable) != 0 &&
         attribute_of(answer.header(), sizeof(ndmsg), NDA_LLADDR, way->mac, sizeof way->mac);
}

}  // namespace

int open_ways() noexcept {
  const KeepErrno keep;
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  return fd < 0 ? -errno : os::above_streams(fd);
}

bool find_way_to(int ways, std::uint32_t address, NextHop* way) noexcept {
  const KeepErrno keep;
  return find(ways, address, way);
}

}  // namespace haul::atomics
