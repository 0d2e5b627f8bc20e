// A responder's tables with one window, and a client that writes its packets by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <memory>

#include "atomic/responder/tables.hpp"
#include "atomic/wire/wire_packet.hpp"

namespace haul::atomics::test {

inline constexpr std::uint64_t window_key = 0x1234567890abcdef;
inline constexpr std::uint64_t window_address = 0x7f2a4c000000;
inline constexpr unsigned window_index = 3;

// Memory between two pages that must stay as they are.
class Memory {
 public:
  static constexpr std::size_t page = 4096, fence = 0xa5;
  explicit Memory(std::size_t pages)
      : pages_(pages), bytes_(new (std::align_val_t{page}) unsigned char[(pages + 2) * page]) {
    std::memset(bytes_.get(), fence, (pages + 2) * page);
    std::memset(begin(), 0, pages * page);
  }
  char* begin() { return reinterpret_cast<char*>(bytes_.get()) + page; }
  std::uint64_t& word(std::size_t offset) {
    return *reinterpret_cast<std::uint64_t*>(begin() + offset);
  }
  bool fences_stand() const {
    for (std::size_t i = 0; i < page; ++i) {
      if (bytes_[i] != fence || bytes_[(pages_ + 1) * page + i] != fence) return false;
    }
    return true;
  }

 private:
  struct Free {
    void operator()(unsigned char* bytes) const {
      operator delete[](bytes, std::align_val_t{page});
    }
  };
  std::size_t pages_;
  std::unique_ptr<unsigned char[], Free> bytes_;
};

struct Service {
  explicit Service(unsigned sessions = 4, std::size_t window_bytes = 2 * Memory::page)
      : memory((window_bytes + Memory::page - 1) / Memory::page) {
    EXPECT_TRUE(tables.open(sessions));
    tables.add_window(window_index, {window_key, window_address, window_bytes}, memory.begin());
  }
  std::uint64_t count(unsigned event) const { return tables.count_of(event); }

  Tables tables;
  Memory memory;
  std::uint32_t now_s = 1000;
};

inline wire_operation operation(unsigned code, std::uint64_t offset, std::uint64_t operand = 0,
                                std::uint64_t compare = 0, unsigned width = 8, unsigned flags = 0,
                                std::uint32_t stamp = 0) {
  wire_operation made{};
  made.code = static_cast<__u8>(code);
  made.width = static_cast<__u8>(width);
  made.flags = static_cast<__u8>(flags);
  made.stamp = stamp;
  made.address = window_address + offset;
  made.operand = operand;
  made.compare = compare;
  return made;
}

// One client. Its packets are sealed as they leave it; a test may change them and seal again.
struct Asker {
  std::uint64_t id, source;
  std::uint32_t slot = 0, sequence = 0;

  explicit Asker(std::uint64_t id_, std::uint64_t source_ = 0x0a0000010001)
      : id(id_), source(source_) {}

  WirePacket packet(unsigned kind) const {
    WirePacket made{};
    made.header.magic = WIRE_MAGIC;
    made.header.version = WIRE_VERSION;
    made.header.kind = static_cast<__u8>(kind);
    made.header.session = id;
    made.header.slot = slot;
    made.header.window = window_index;
    made.header.cookie = 77;
    made.header.key = window_key;
    seal(&made);
    return made;
  }
  WirePacket request(std::initializer_list<wire_operation> operations) {
    WirePacket made = packet(WIRE_REQUEST);
    made.header.sequence = ++sequence;
    for (const wire_operation& one : operations) {
      made.operations[made.header.count++] = one;
    }
    seal(&made);
    return made;
  }
  bool ask(Service& service, WirePacket* packet) const {
    return service.tables.serve(packet, packet_bytes(*packet), source, service.now_s);
  }
  // Its status.
  unsigned hello(Service& service) {
    WirePacket asked = packet(WIRE_HELLO);
    EXPECT_TRUE(ask(service, &asked));
    EXPECT_TRUE(intact(asked, header_bytes));
    EXPECT_EQ(asked.header.kind, WIRE_HELLO | WIRE_REPLY);
    if (asked.header.status == WIRE_OK) slot = asked.header.slot;
    return asked.header.status;
  }
  void bye(Service& service) const {
    WirePacket asked = packet(WIRE_BYE);
    EXPECT_TRUE(ask(service, &asked));
  }
  // Asks it all at once; the answer, which must be one.
  WirePacket run(Service& service, std::initializer_list<wire_operation> operations) {
    WirePacket asked = request(operations);
    const WirePacket before = asked;
    EXPECT_TRUE(ask(service, &asked));
    EXPECT_TRUE(intact(asked, packet_bytes(before)));
    EXPECT_EQ(asked.header.kind, WIRE_REQUEST | WIRE_REPLY);
    EXPECT_EQ(asked.header.sequence, before.header.sequence);
    EXPECT_EQ(asked.header.cookie, before.header.cookie);
    return asked;
  }
};

}  // namespace haul::atomics::test
