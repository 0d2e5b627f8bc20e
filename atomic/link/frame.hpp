// The front of a UDP packet as a frame: Ethernet, IPv4 without options, UDP without a checksum.
#pragma once

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace haul::atomics {

inline constexpr std::size_t ip_at = sizeof(ether_header), udp_at = ip_at + sizeof(iphdr);
inline constexpr std::size_t frame_front_bytes = udp_at + sizeof(udphdr);

// Addresses and ports in network order. Lengths and the checksum are put in by set_payload().
inline void make_front(const ether_header& eth, std::uint32_t from, std::uint16_t from_port,
                       std::uint32_t to, std::uint16_t to_port, unsigned char* front) noexcept {
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.ttl = 64;
  ip.protocol = IPPROTO_UDP;
  ip.frag_off = htons(IP_DF);
  ip.saddr = from;
  ip.daddr = to;
  udphdr udp{};
  udp.source = from_port;
  udp.dest = to_port;
  std::memcpy(front, &eth, sizeof eth);
  std::memcpy(front + ip_at, &ip, sizeof ip);
  std::memcpy(front + udp_at, &udp, sizeof udp);
}

// The packet behind the front has so many bytes.
inline void set_payload(unsigned char* front, std::size_t bytes) noexcept {
  const auto put = [front](std::size_t at, std::size_t value) {
    const std::uint16_t ordered = htons(static_cast<std::uint16_t>(value));
    std::memcpy(front + at, &ordered, sizeof ordered);
  };
  put(ip_at + offsetof(iphdr, tot_len), sizeof(iphdr) + sizeof(udphdr) + bytes);
  put(udp_at + offsetof(udphdr, len), sizeof(udphdr) + bytes);
  std::uint16_t words[sizeof(iphdr) / 2];
  std::memcpy(words, front + ip_at, sizeof words);
  words[offsetof(iphdr, check) / 2] = 0;
  std::uint32_t sum = 0;
  for (const std::uint16_t word : words) sum += word;
  sum = (sum & 0xffff) + (sum >> 16);
  const auto check = static_cast<std::uint16_t>(~(sum + (sum >> 16)));
  std::memcpy(front + ip_at + offsetof(iphdr, check), &check, sizeof check);
}

}  // namespace haul::atomics
