// Packets that a responder must not execute: each refused or dropped for its own reason, counted
// under it, with nothing done to memory.
#include <functional>

#include "unit/atomic/service.hpp"

namespace haul::atomics::test {
namespace {

constexpr int dropped = -1;

class Refusals : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(asker.hello(service), WIRE_OK);
    for (unsigned event = 0; event < SERVE_EVENTS; ++event) before[event] = service.count(event);
  }
  // Only these have been counted since.
  void expect_counted(std::initializer_list<unsigned> events) {
    std::uint64_t wanted[SERVE_EVENTS];
    std::memcpy(wanted, before, sizeof wanted);
    for (const unsigned event : events) ++wanted[event];
    for (unsigned event = 0; event < SERVE_EVENTS; ++event) {
      EXPECT_EQ(service.count(event), wanted[event]) << "event " << event;
    }
  }
  // A packet that would add 1 but for `spoil`: dropped, or answered with this status.
  void expect(int status, unsigned event, const std::function<void(WirePacket*)>& spoil,
              bool sealed = true, std::size_t bytes = 0) {
    WirePacket packet = asker.request({operation(WIRE_ADD, 0, 1)});
    spoil(&packet);
    if (sealed) seal(&packet);
    const WirePacket asked = packet;
    const bool answered = service.tables.serve(&packet, bytes != 0 ? bytes : packet_bytes(packet),
                                               asker.source, service.now_s);
    EXPECT_EQ(answered, status != dropped);
    if (answered) {
      EXPECT_EQ(packet.header.status, status);
      EXPECT_EQ(packet.header.kind, asked.header.kind | WIRE_REPLY);
      EXPECT_EQ(packet.header.sequence, asked.header.sequence);
      EXPECT_EQ(packet.header.cookie, asked.header.cookie);
      EXPECT_EQ(packet.header.session, asked.header.session);
      EXPECT_TRUE(intact(packet, packet_bytes(asked)));
    }
    expect_counted({event});
    EXPECT_EQ(service.memory.word(0), 0u);
    EXPECT_TRUE(service.memory.fences_stand());
  }

  Service service;
  Asker asker{0x1111111122222222};
  std::uint64_t before[SERVE_EVENTS] = {};
};

TEST_F(Refusals, WithoutSpoilingItWouldBeServed) {
  WirePacket packet = asker.request({operation(WIRE_ADD, 0, 1)});
  ASSERT_TRUE(asker.ask(service, &packet));
  EXPECT_EQ(packet.header.status, WIRE_OK);
  EXPECT_EQ(service.memory.word(0), 1u);
  expect_counted({SERVED_PACKETS, SERVED_OPERATIONS});
}

const auto as_it_is = [](WirePacket*) {};

TEST_F(Refusals, ShorterThanItsHeader) {
  expect(dropped, DROPPED_SHORT, as_it_is, true, header_bytes - 1);
}
TEST_F(Refusals, ShorterThanItsOperations) {
  expect(dropped, DROPPED_SHORT, as_it_is, true, header_bytes + sizeof(wire_operation) - 1);
}
TEST_F(Refusals, LongerThanItsOperations) {
  expect(dropped, DROPPED_SHORT, as_it_is, true, header_bytes + sizeof(wire_operation) + 1);
}
TEST_F(Refusals, MoreOperationsThanThereCanBe) {
  expect(
      dropped, DROPPED_SHORT, [](WirePacket* packet) { packet->header.count = 17; }, false,
      sizeof(WirePacket));
}
TEST_F(Refusals, AnotherMagic) {
  expect(dropped, DROPPED_MAGIC, [](WirePacket* packet) { packet->header.magic ^= 1; });
}
TEST_F(Refusals, AnotherVersionIsToldOurs) {
  expect(WIRE_OTHER_VERSION, REFUSED_VERSION,
         [](WirePacket* packet) { packet->header.version = 2; });
}
TEST_F(Refusals, AReplyOfAnyKind) {
  std::uint64_t count = 0;
  for (const unsigned kind : {WIRE_REQUEST, WIRE_HELLO, WIRE_BYE}) {
    WirePacket packet = asker.packet(kind | WIRE_REPLY);
    EXPECT_FALSE(asker.ask(service, &packet));
    EXPECT_EQ(service.count(REFUSED_MALFORMED), ++count);
  }
}
TEST_F(Refusals, AStatusInAQuestion) {
  expect(dropped, REFUSED_MALFORMED, [](WirePacket* packet) { packet->header.status = WIRE_FULL; });
}
TEST_F(Refusals, AnUnknownKind) {
  expect(WIRE_MALFORMED, REFUSED_MALFORMED, [](WirePacket* packet) { packet->header.kind = 4; });
}
TEST_F(Refusals, NoKind) {
  expect(WIRE_MALFORMED, REFUSED_MALFORMED, [](WirePacket* packet) { packet->header.kind = 0; });
}
TEST_F(Refusals, ARequestWithoutOperations) {
  expect(WIRE_MALFORMED, REFUSED_MALFORMED, [](WirePacket* packet) { packet->header.count = 0; });
}
TEST_F(Refusals, AHelloWithOperations) {
  expect(WIRE_MALFORMED, REFUSED_MALFORMED,
         [](WirePacket* packet) { packet->header.kind = WIRE_HELLO; });
}
TEST_F(Refusals, AByeWithOperations) {
  expect(WIRE_MALFORMED, REFUSED_MALFORMED,
         [](WirePacket* packet) { packet->header.kind = WIRE_BYE; });
}
TEST_F(Refusals, AHelloOfNobody) {
  for (const std::uint64_t nobody : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    WirePacket packet = Asker(nobody).packet(WIRE_HELLO);
    ASSERT_TRUE(asker.ask(service, &packet));
    EXPECT_EQ(packet.header.status, WIRE_MALFORMED);
  }
  expect_counted({REFUSED_MALFORMED, REFUSED_MALFORMED});
}
TEST_F(Refusals, AWrongKey) {
  expect(WIRE_NO_WINDOW, REFUSED_WINDOW, [](WirePacket* packet) { packet->header.key ^= 1; });
}
TEST_F(Refusals, AWindowThatIsNotThere) {
  expect(WIRE_NO_WINDOW, REFUSED_WINDOW, [](WirePacket* packet) { packet->header.window ^= 1; });
}
TEST_F(Refusals, AWindowBeyondAll) {
  expect(WIRE_NO_WINDOW, REFUSED_WINDOW,
         [](WirePacket* packet) { packet->header.window = max_windows; });
}
TEST_F(Refusals, TheKeyOfNoWindow) {
  expect(WIRE_NO_WINDOW, REFUSED_WINDOW, [](WirePacket* packet) {
    packet->header.window = 0;
    packet->header.key = 0;
  });
}
TEST_F(Refusals, AWindowThatWasRemoved) {
  service.tables.remove_window(window_index);
  expect(WIRE_NO_WINDOW, REFUSED_WINDOW, as_it_is);
}
TEST_F(Refusals, AWindowThatWasRemovedAndTheSessionWithIt) {
  // Restarted: what there was is not known any more.
  service.tables.remove_window(window_index);
  expect(WIRE_NO_SESSION, REFUSED_WINDOW, [](WirePacket* packet) { packet->header.session ^= 1; });
}
TEST_F(Refusals, ASessionOfAnotherNumber) {
  expect(WIRE_NO_SESSION, REFUSED_SESSION, [](WirePacket* packet) { packet->header.session ^= 1; });
}
TEST_F(Refusals, ASessionOfNobody) {
  expect(WIRE_NO_SESSION, REFUSED_SESSION, [](WirePacket* packet) {
    packet->header.session = 0;
    packet->header.slot = (packet->header.slot & 0xffff) == 0 ? 1 : 0;
  });
}
TEST_F(Refusals, AnotherSlot) {
  expect(WIRE_NO_SESSION, REFUSED_SESSION, [](WirePacket* packet) { packet->header.slot ^= 1; });
}
TEST_F(Refusals, ASlotBeyondAll) {
  expect(WIRE_NO_SESSION, REFUSED_SESSION,
         [](WirePacket* packet) { packet->header.slot |= 0xffff; });
}
TEST_F(Refusals, AnotherGenerationOfItsSlot) {
  expect(WIRE_NO_SESSION, REFUSED_SESSION,
         [](WirePacket* packet) { packet->header.slot ^= 0x10000; });
}
TEST_F(Refusals, AnotherSource) {
  asker.source ^= 1;
  expect(WIRE_NO_SESSION, REFUSED_SESSION, as_it_is);
}

TEST_F(Refusals, EveryFlippedBitIsNoticed) {
  WirePacket good = asker.request({operation(WIRE_ADD, 0, 1)});
  const std::size_t bytes = packet_bytes(good);
  for (std::size_t bit = 0; bit < 8 * bytes; ++bit) {
    WirePacket packet = good;
    reinterpret_cast<unsigned char*>(&packet)[bit / 8] ^=
        static_cast<unsigned char>(1u << (bit % 8));
    EXPECT_FALSE(service.tables.serve(&packet, bytes, asker.source, service.now_s)) << bit;
  }
  EXPECT_EQ(service.memory.word(0), 0u);
  // The magic and the count have reasons of their own.
  EXPECT_EQ(service.count(DROPPED_MAGIC), 32u);
  EXPECT_EQ(service.count(DROPPED_SHORT), 8u);
  EXPECT_EQ(service.count(DROPPED_CHECKSUM), 8 * bytes - 40);
}

TEST_F(Refusals, APacketOfZerosIsNotRight) {
  WirePacket packet{};
  EXPECT_FALSE(service.tables.serve(&packet, header_bytes, asker.source, service.now_s));
  packet.header.magic = WIRE_MAGIC;
  EXPECT_FALSE(service.tables.serve(&packet, header_bytes, asker.source, service.now_s));
  expect_counted({DROPPED_MAGIC, DROPPED_CHECKSUM});
}

TEST_F(Refusals, SwappedWordsAreNoticed) {
  WirePacket packet = asker.request({operation(WIRE_CAS, 0, 5, 0)});
  std::swap(packet.operations[0].operand, packet.operations[0].compare);
  EXPECT_FALSE(asker.ask(service, &packet));
  expect_counted({DROPPED_CHECKSUM});
}

}  // namespace
}  // namespace haul::atomics::test
