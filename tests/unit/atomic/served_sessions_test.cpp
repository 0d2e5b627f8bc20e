// What a responder remembers of its clients: sessions that begin, end, are taken over; results that
// are replayed and never executed twice.
#include "unit/atomic/service.hpp"

namespace haul::atomics::test {
namespace {

constexpr std::uint64_t other_place = 0x0a0000020002;

TEST(ServedSessions, AHelloAskedAgainIsTheSameSession) {
  Service service;
  Asker asker(5);
  ASSERT_EQ(asker.hello(service), WIRE_OK);
  const std::uint32_t slot = asker.slot;
  asker.run(service, {operation(WIRE_ADD, 0, 1)});
  ASSERT_EQ(asker.hello(service), WIRE_OK);
  EXPECT_EQ(asker.slot, slot);
  // What it has done is still known.
  --asker.sequence;
  EXPECT_EQ(asker.run(service, {operation(WIRE_ADD, 0, 1)}).operations[0].operand, 0u);
  EXPECT_EQ(service.memory.word(0), 1u);
  EXPECT_EQ(service.count(REPLAYED), 1u);
}

TEST(ServedSessions, ADuplicateIsAnsweredAsTheFirst) {
  Service service;
  Asker asker(5);
  ASSERT_EQ(asker.hello(service), WIRE_OK);
  service.memory.word(8) = 40;
  const WirePacket question =
      asker.request({operation(WIRE_ADD, 8, 2), operation(WIRE_SWAP, 8, 7),
                     operation(WIRE_CAS, 8, 9, 8, 8, WIRE_LINK), operation(WIRE_ADD, 3, 1),
                     operation(WIRE_ADD, 4, 1, 0, 4)});
  WirePacket first = question;
  ASSERT_TRUE(asker.ask(service, &first));
  for (int i = 0; i < 3; ++i) {
    WirePacket again = question;
    ASSERT_TRUE(asker.ask(service, &again));
    EXPECT_EQ(std::memcmp(&again, &first, packet_bytes(first)), 0);
  }
  EXPECT_EQ(service.memory.word(8), 7u);
  EXPECT_EQ(service.count(SERVED_PACKETS), 1u);
  EXPECT_EQ(service.count(REPLAYED), 3u);
}

TEST(ServedSessions, ADuplicateOfAnotherLengthIsNone) {
  Service service;
  Asker first(5), second(6);
  // A slot that somebody else's results have been in.
  Service one_slot(1);
  ASSERT_EQ(first.hello(one_slot), WIRE_OK);
  one_slot.memory.word(0) = 0x5ec2e7;
  first.run(one_slot, {operation(WIRE_READ, 0), operation(WIRE_READ, 0)});
  first.bye(one_slot);
  ASSERT_EQ(second.hello(one_slot), WIRE_OK);
  one_slot.memory.word(0) = 1;
  second.run(one_slot, {operation(WIRE_READ, 0)});
  --second.sequence;
  WirePacket longer = second.request({operation(WIRE_READ, 0), operation(WIRE_READ, 0)});
  EXPECT_FALSE(second.ask(one_slot, &longer));
  EXPECT_EQ(one_slot.count(DROPPED_OLD), 1u);
}

TEST(ServedSessions, AnOldSequenceIsDropped) {
  Service service;
  Asker asker(5);
  ASSERT_EQ(asker.hello(service), WIRE_OK);
  WirePacket late = asker.request({operation(WIRE_ADD, 0, 1)});
  asker.sequence += WIRE_RESULTS - 1;
  asker.run(service, {operation(WIRE_ADD, 0, 1)});
  EXPECT_FALSE(asker.ask(service, &late));
  EXPECT_EQ(service.count(DROPPED_OLD), 1u);
  EXPECT_EQ(service.memory.word(0), 1u);
}

TEST(ServedSessions, SequencesWrap) {
  Service service;
  Asker asker(5);
  ASSERT_EQ(asker.hello(service), WIRE_OK);
  asker.sequence = 0xffffff00;
  for (std::uint64_t i = 0; i < 512; ++i) {
    const WirePacket question = asker.request({operation(WIRE_ADD, 0, 1)});
    for (int duplicate = 0; duplicate < 2; ++duplicate) {
      WirePacket packet = question;
      ASSERT_TRUE(asker.ask(service, &packet)) << i;
      ASSERT_EQ(packet.operations[0].operand, i);
    }
    if (i < WIRE_RESULTS) continue;
    // The one 64 before it, on whichever side of the wrap.
    asker.sequence -= WIRE_RESULTS + 1;
    WirePacket late = asker.request({operation(WIRE_ADD, 0, 1)});
    EXPECT_FALSE(asker.ask(service, &late)) << i;
    asker.sequence += WIRE_RESULTS;
  }
  EXPECT_EQ(service.memory.word(0), 512u);
}

TEST(ServedSessions, TwoClientsWithOneNumberAreKeptApart) {
  Service service;
  Asker first(5), second(5, other_place);
  ASSERT_EQ(first.hello(service), WIRE_OK);
  EXPECT_EQ(second.hello(service), WIRE_TAKEN);
  EXPECT_EQ(service.count(REFUSED_TAKEN), 1u);
  second.slot = first.slot;
  EXPECT_EQ(second.run(service, {operation(WIRE_ADD, 0, 1)}).header.status, WIRE_NO_SESSION);
  EXPECT_EQ(first.run(service, {operation(WIRE_ADD, 0, 1)}).header.status, WIRE_OK);
  // Nor can it end the other's.
  second.bye(service);
  EXPECT_EQ(first.run(service, {operation(WIRE_ADD, 0, 1)}).header.status, WIRE_OK);
  EXPECT_EQ(service.memory.word(0), 2u);
}

TEST(ServedSessions, AFullTableRefusesUntilOneLeaves) {
  for (const unsigned slots : {1u, 3u, 8u}) {
    Service service(slots);
    std::vector<Asker> askers;
    for (unsigned i = 0; i < slots; ++i) {
      askers.emplace_back(std::uint64_t{i + 1} << 32 | 9);
      ASSERT_EQ(askers.back().hello(service), WIRE_OK) << i;
    }
    Asker late(0x7700000001);
    EXPECT_EQ(late.hello(service), WIRE_FULL);
    EXPECT_EQ(service.count(REFUSED_FULL), 1u);
    // They have slots of their own.
    for (Asker& asker : askers) asker.run(service, {operation(WIRE_ADD, 0, 1)});
    EXPECT_EQ(service.memory.word(0), slots);
    askers.back().bye(service);
    EXPECT_EQ(late.hello(service), WIRE_OK);
    EXPECT_EQ(askers.back().run(service, {operation(WIRE_ADD, 0, 1)}).header.status,
              WIRE_NO_SESSION);
    EXPECT_EQ(service.memory.word(0), slots);
  }
}

TEST(ServedSessions, AnIdleOneIsTakenOverAfterAMinuteAndItsStragglersRefused) {
  Service service(1);
  Asker idle(5), next(6, other_place);
  ASSERT_EQ(idle.hello(service), WIRE_OK);
  idle.run(service, {operation(WIRE_ADD, 0, 1)});
  const WirePacket straggler = idle.request({operation(WIRE_ADD, 0, 100)});
  service.now_s += SESSION_IDLE_S;
  EXPECT_EQ(next.hello(service), WIRE_FULL);
  ++service.now_s;
  ASSERT_EQ(next.hello(service), WIRE_OK);
  for (int i = 0; i < 3; ++i) {
    WirePacket packet = straggler;
    ASSERT_TRUE(idle.ask(service, &packet));
    EXPECT_EQ(packet.header.status, WIRE_NO_SESSION);
  }
  // Sequence 1 of the slot's new owner is no duplicate of sequence 1 of the old one.
  EXPECT_EQ(next.run(service, {operation(WIRE_ADD, 0, 1)}).operations[0].operand, 1u);
  EXPECT_EQ(service.memory.word(0), 2u);
  idle.bye(service);
  EXPECT_EQ(next.run(service, {operation(WIRE_ADD, 0, 1)}).header.status, WIRE_OK);
}

TEST(ServedSessions, AnIdleOneStaysWhileOthersAreFree) {
  // Numbers that lead to the same slot first.
  Service service(3);
  Asker idle(std::uint64_t{3} << 32 | 1), next(std::uint64_t{6} << 32 | 2, other_place);
  ASSERT_EQ(idle.hello(service), WIRE_OK);
  service.now_s += 10 * SESSION_IDLE_S;
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(next.hello(service), WIRE_OK);
    EXPECT_NE(next.slot & 0xffff, idle.slot & 0xffff);
    next.bye(service);
  }
  EXPECT_EQ(idle.run(service, {operation(WIRE_ADD, 0, 1)}).header.status, WIRE_OK);
}

TEST(ServedSessions, AClockThatIsATickBehindTakesNothingAway) {
  Service service(1);
  Asker busy(5), next(6, other_place);
  ASSERT_EQ(busy.hello(service), WIRE_OK);
  --service.now_s;  // another processor's
  EXPECT_EQ(next.hello(service), WIRE_FULL);
  EXPECT_EQ(busy.run(service, {operation(WIRE_ADD, 0, 1)}).header.status, WIRE_OK);
}

TEST(ServedSessions, WhoAsksIsNotIdle) {
  Service service(1);
  Asker busy(5), next(6, other_place);
  ASSERT_EQ(busy.hello(service), WIRE_OK);
  for (int i = 0; i < 5; ++i) {
    service.now_s += SESSION_IDLE_S - 1;
    EXPECT_EQ(busy.run(service, {operation(WIRE_ADD, 0, 1)}).header.status, WIRE_OK);
    EXPECT_EQ(next.hello(service), WIRE_FULL);
  }
  // The clock may be at its wrap.
  service.now_s = 0xfffffff0;
  EXPECT_EQ(busy.run(service, {operation(WIRE_ADD, 0, 1)}).header.status, WIRE_OK);
  service.now_s += 0x20;
  EXPECT_EQ(next.hello(service), WIRE_FULL);
}

TEST(ServedSessions, LateDuplicatesOfAFinishedSessionExecuteNothing) {
  // The network has kept copies of all that a client sent, and delivers them when it has gone: its
  // hello begins a session again, in which its requests must not count as new.
  Service service;
  Asker asker(5);
  const WirePacket hello = asker.packet(WIRE_HELLO);
  ASSERT_EQ(asker.hello(service), WIRE_OK);
  std::vector<WirePacket> sent;
  for (int i = 0; i < 10; ++i) {
    sent.push_back(asker.request({operation(WIRE_ADD, 0, 1)}));
    WirePacket packet = sent.back();
    ASSERT_TRUE(asker.ask(service, &packet));
  }
  asker.bye(service);
  WirePacket again = hello;
  ASSERT_TRUE(asker.ask(service, &again));
  for (WirePacket& packet : sent) asker.ask(service, &packet);
  EXPECT_EQ(service.memory.word(0), 10u);
}

TEST(ServedSessions, AClientFindsItsSlotThoughAnEarlierOneIsFree) {
  Service service(4);
  // Both numbers lead to slot 1 first; the second one is pushed on.
  Asker first(0x100000001), second(0x100000002);
  ASSERT_EQ(first.hello(service), WIRE_OK);
  ASSERT_EQ(second.hello(service), WIRE_OK);
  ASSERT_NE(first.slot & 0xffff, second.slot & 0xffff);
  first.bye(service);
  const std::uint32_t slot = second.slot;
  ASSERT_EQ(second.hello(service), WIRE_OK);
  EXPECT_EQ(second.slot, slot);
}

TEST(ServedSessions, AGoodbyeIsAnsweredWhoeverSaysIt) {
  Service service;
  Asker stranger(9);
  WirePacket bye = stranger.packet(WIRE_BYE);
  ASSERT_TRUE(stranger.ask(service, &bye));
  EXPECT_EQ(bye.header.kind, WIRE_BYE | WIRE_REPLY);
  stranger.slot = 0xffffffff;
  stranger.bye(service);
}

TEST(ServedSessions, ManyOnesThroughFewSlots) {
  Service service(4);
  for (std::uint64_t i = 1; i <= 200'000; ++i) {
    // Past the 65536 generations that a slot's packets can name.
    Asker asker(i << 32 | 1, i);
    ASSERT_EQ(asker.hello(service), WIRE_OK);
    ASSERT_EQ(asker.run(service, {operation(WIRE_ADD, 0, 1)}).header.status, WIRE_OK);
    asker.bye(service);
  }
  EXPECT_EQ(service.memory.word(0), 200'000u);
}

}  // namespace
}  // namespace haul::atomics::test
