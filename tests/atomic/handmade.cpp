#include "atomic/handmade.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "atomic/wire/checksum.h"

namespace atomic_test {

void mac_of(const char* interface, unsigned char (&mac)[6]) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  EXPECT_EQ(ioctl(fd, SIOCGIFHWADDR, &request), 0);
  std::memcpy(mac, request.ifr_hwaddr.sa_data, sizeof mac);
  close(fd);
}

HandmadeClient::HandmadeClient(const haul_atomic_window_name& name)
    : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  const timeval patience{0, 100'000};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  peer_.sin_family = AF_INET;
  peer_.sin_port = htons(name.port);
  EXPECT_EQ(inet_pton(AF_INET, name.host, &peer_.sin_addr), 1);
  EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&peer_), sizeof peer_), 0);
  socklen_t length = sizeof own_;
  EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&own_), &length), 0);
  question_.header.magic = WIRE_MAGIC;
  question_.header.version = WIRE_VERSION;
  question_.header.session = 0x123456789;
  question_.header.window = name.window;
  question_.header.key = name.key;
  question_.operation.code = WIRE_ADD;
  question_.operation.width = 8;
  question_.operation.operand = 1;
}

HandmadeClient::~HandmadeClient() {
  close(socket_);
  if (frames_ >= 0) close(frames_);
}

void HandmadeClient::put_options(bool some) {
  const unsigned char nothing[4] = {1, 1, 1, 0};
  EXPECT_EQ(setsockopt(socket_, IPPROTO_IP, IP_OPTIONS, nothing, some ? sizeof nothing : 0), 0);
}

void HandmadeClient::tag_frames(const char* interface, const unsigned char (&to)[6]) {
  frames_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  sockaddr_ll at{};
  at.sll_family = AF_PACKET;
  at.sll_ifindex = static_cast<int>(if_nametoindex(interface));
  EXPECT_EQ(bind(frames_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  unsigned char from[6];
  mac_of(interface, from);
  std::memcpy(eth_, to, 6);
  std::memcpy(eth_ + 6, from, 6);
  const std::uint16_t tag[] = {htons(ETHERTYPE_VLAN), 0, htons(ETHERTYPE_IP)};
  std::memcpy(eth_ + 12, tag, sizeof tag);
}

void HandmadeClient::send_tagged(const void* data, std::size_t bytes) const {
  unsigned char frame[sizeof eth_ + 28 + sizeof(Question)];
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.ttl = 64;
  ip.protocol = IPPROTO_UDP;
  ip.tot_len = htons(static_cast<std::uint16_t>(28 + bytes));
  ip.saddr = own_.sin_addr.s_addr;
  ip.daddr = peer_.sin_addr.s_addr;
  std::uint16_t words[10];
  std::memcpy(words, &ip, sizeof words);
  std::uint32_t sum = 0;
  for (const std::uint16_t word : words) sum += word;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  ip.check = static_cast<std::uint16_t>(~sum);
  udphdr udp{};
  udp.source = own_.sin_port;
  udp.dest = peer_.sin_port;
  udp.len = htons(static_cast<std::uint16_t>(8 + bytes));
  std::memcpy(frame, eth_, sizeof eth_);
  std::memcpy(frame + 18, &ip, sizeof ip);
  std::memcpy(frame + 38, &udp, sizeof udp);
  std::memcpy(frame + 46, data, bytes);
  EXPECT_EQ(send(frames_, frame, 46 + bytes, 0), static_cast<ssize_t>(46 + bytes));
}

bool HandmadeClient::ask(wire_kind kind, unsigned count) {
  question_.header.kind = static_cast<__u8>(kind);
  question_.header.count = static_cast<__u8>(count);
  question_.header.checksum = wire_checksum(&question_, &question_ + 1, count);
  const std::size_t bytes = sizeof(wire_header) + count * sizeof(wire_operation);
  for (int tries = 0; tries < 100; ++tries) {
    if (frames_ >= 0) {
      send_tagged(&question_, bytes);
    } else {
      send(socket_, &question_, bytes, 0);
    }
    if (recv(socket_, &answer_, sizeof answer_, 0) == static_cast<ssize_t>(bytes) &&
        answer_.header.sequence == question_.header.sequence) {
      return answer_.header.status == WIRE_OK;
    }
  }
  return false;
}

bool HandmadeClient::hello() {
  if (!ask(WIRE_HELLO, 0)) return false;
  question_.header.slot = answer_.header.slot;
  return true;
}

bool HandmadeClient::fetch_add(std::uint64_t address, std::uint64_t* old) {
  ++question_.header.sequence;
  question_.operation.address = address;
  if (!ask(WIRE_REQUEST, 1)) return false;
  *old = answer_.operation.operand;
  return answer_.operation.result == WIRE_DONE;
}

}  // namespace atomic_test
