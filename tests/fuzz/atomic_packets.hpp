// Packets that a stranger, or a client gone wrong, may send to a responder: made from bytes of
// anybody's choice, with what a sender can know (window, key, session, checksum) put right often
// enough to get behind each check.
#pragma once

#include <cstdint>
#include <cstring>

#include "atomic/wire/wire_packet.hpp"

namespace haul::atomics::test {

class Sender {
 public:
  static constexpr std::uint64_t key = 0x6b6579, address = 0x7f0000000000;
  static constexpr std::size_t window_bytes = 3 * 4096 - 20;
  static constexpr unsigned window = 2, clients = 3, sessions = 2;

  // Its bytes, and where it comes from.
  struct Letter {
    alignas(64) unsigned char bytes[sizeof(WirePacket)];
    std::size_t size = 0;
    std::uint32_t address = 0;
    std::uint16_t port = 0;
    unsigned client = 0;
    std::uint64_t source() const { return std::uint64_t{address} << 16 | port; }
  };

  // `take(void* to, std::size_t bytes)` fills in bytes of the input's choice.
  template <class Take>
  Letter write(Take take) {
    // Few bytes of input make a packet, and none at all a good one.
    const auto number = [&](unsigned most) {
      std::uint8_t value = 0;
      take(&value, sizeof value);
      return unsigned{value} % (most + 1);
    };
    const auto mostly = [&] { return number(31) != 31; };
    Letter letter;
    letter.client = number(clients - 1);
    letter.address = 0x0a000001 + letter.client;
    letter.port = 4000;
    Client& client = clients_[letter.client];
    if (number(8) == 8 && client.last.size != 0) return client.last;  // the very same again
    WirePacket packet{};
    if (number(7) == 7) take(&packet, sizeof packet);
    wire_header& header = packet.header;
    if (mostly()) header.magic = WIRE_MAGIC;
    if (mostly()) header.version = WIRE_VERSION;
    if (mostly()) header.status = 0;
    if (mostly()) header.key = key;
    if (mostly()) header.window = window;
    if (mostly()) header.session = (letter.client + 1ull) << 32 | 7;
    if (mostly()) header.slot = client.slot;
    static constexpr __u8 kinds[] = {WIRE_HELLO,   WIRE_REQUEST, WIRE_REQUEST, WIRE_REQUEST,
                                     WIRE_REQUEST, WIRE_REQUEST, WIRE_HELLO,   WIRE_BYE};
    if (mostly()) header.kind = kinds[number(7)];
    if (mostly()) header.count = static_cast<__u8>(number(WIRE_MAX_OPERATIONS));
    if (header.kind != WIRE_REQUEST && mostly()) header.count = 0;
    // Nobody would end the session of a hello of any number, and the table would be full for good.
    if (header.kind == WIRE_HELLO) header.session = (letter.client + 1ull) << 32 | 7;
    // Two places with one number: each may have the session, and either ends it.
    if (number(header.kind == WIRE_BYE ? 1 : 20) == 1) ++letter.port;
    switch (number(5)) {
      case 5: break;
      case 4: header.sequence = client.sequence; break;  // once more
      case 3: header.sequence = client.sequence - number(70); break;
      case 2: header.sequence = client.sequence += 64; break;
      default: header.sequence = ++client.sequence;
    }
    const bool countable = header.count <= WIRE_MAX_OPERATIONS;
    for (unsigned i = 0; countable && i < header.count; ++i) {
      write_operation(&packet.operations[i], number, mostly);
    }
    letter.size = countable ? packet_bytes(packet) : sizeof packet;
    if (!mostly()) letter.size = std::size_t{number(255)} * sizeof packet / 255;
    if (countable && mostly()) seal(&packet);
    std::memcpy(letter.bytes, &packet, sizeof packet);
    return client.last = letter;
  }

  // An answer to one of them.
  void read(const Letter& letter) {
    wire_header header;
    std::memcpy(&header, letter.bytes, sizeof header);
    if (header.kind == (WIRE_HELLO | WIRE_REPLY) && header.status == WIRE_OK) {
      clients_[letter.client].slot = header.slot;
    }
  }

 private:
  struct Client {
    std::uint32_t slot = 0, sequence = 0xffffffc0;
    Letter last;
  };

  template <class Number, class Mostly>
  static void write_operation(wire_operation* one, Number number, Mostly mostly) {
    if (mostly()) one->code = static_cast<__u8>(number(WIRE_XOR) + 1);
    if (mostly()) one->width = number(2) == 2 ? 4 : 8;
    if (mostly()) one->flags = number(3) == 3 ? static_cast<__u8>(number(3)) : 0;
    // Few words, their edges, and what is around the window.
    if (mostly()) one->address = address + number(8) * 4 + number(3) * 4088;
    if (mostly()) one->operand = number(3);
    if (mostly()) one->compare = number(3);
    if (mostly()) one->stamp = number(3);
  }

  Client clients_[clients];
};

}  // namespace haul::atomics::test
