// A client's session by itself: greeting, tickets, back-pressure, time-outs, ends.
#include "atomic/client/session.hpp"

#include <vector>

#include "unit/atomic/network.hpp"

// Sessions that live for 2^32 packets cannot be waited for: this opens the counter of one, in the
// way that the language leaves open (explicit instantiations may name private members).
namespace haul::atomics::test {
std::uint64_t& last_ticket_of(Session& session);
template <std::uint64_t Session::*Member>
struct OpenMember {
  friend std::uint64_t& last_ticket_of(Session& session) { return session.*Member; }
};
}  // namespace haul::atomics::test
namespace haul::atomics {
template struct test::OpenMember<&Session::last_ticket_>;
}

namespace haul::atomics::test {
namespace {

using State = Session::State;
using Found = Session::Found;
constexpr std::uint64_t second = 1'000'000'000;
const haul_atomic_operation add_one = ask_for(HAUL_ATOMIC_ADD, 0, 1);

class ClientSession : public testing::Test {
 protected:
  Service service;
  Network network{service, Weather{}, 1, 5 * second};
  Session& session() { return network.session(); }
  std::uint64_t executed() { return service.memory.word(0); }
};

TEST_F(ClientSession, NothingIsSubmittedBeforeTheGreeting) {
  std::uint64_t ticket = 7;
  EXPECT_EQ(session().state(), State::closed);
  EXPECT_EQ(session().submit(&add_one, 1, 0, 0, &ticket), Code::closed);
  session().greet(network.now_ns());
  EXPECT_EQ(session().state(), State::greeting);
  EXPECT_EQ(session().submit(&add_one, 1, 0, 0, &ticket), Code::closed);
  EXPECT_EQ(ticket, 7u);
}

TEST_F(ClientSession, AGreetingIsRepeatedAndGivenUpInTime) {
  network.is_cut = true;
  const std::uint64_t begun = network.now_ns();
  session().greet(begun);
  network.settle();
  EXPECT_EQ(session().state(), State::lost);
  EXPECT_EQ(session().reason(), Code::timed_out);
  EXPECT_GE(network.now_ns() - begun, 5 * second);
  EXPECT_LT(network.now_ns() - begun, 6 * second);
  EXPECT_GT(network.sent(), 10u);
}

TEST_F(ClientSession, GreetingsThatAreRefusedSayWhy) {
  struct Case {
    unsigned status;
    Code code;
  };
  const Case refusals[] = {{WIRE_NO_WINDOW, Code::permission},
                           {WIRE_NO_SESSION, Code::peer_gone},
                           {WIRE_FULL, Code::again},
                           {WIRE_TAKEN, Code::peer_gone},
                           {WIRE_OTHER_VERSION, Code::not_supported},
                           {WIRE_MALFORMED, Code::io},
                           {200, Code::io}};
  for (const Case& one : refusals) {
    struct Last final : Outlet {
      void send(const WirePacket& packet) noexcept override { last = packet; }
      WirePacket last{};
    } outlet;
    Session alone(outlet, {9, window_index, window_key, 0}, second);
    alone.greet(1);
    WirePacket answer = outlet.last;
    answer.header.kind |= WIRE_REPLY;
    answer.header.status = static_cast<__u8>(one.status);
    alone.heard(answer, 2);
    EXPECT_EQ(alone.state(), State::lost);
    EXPECT_EQ(alone.reason(), one.code) << one.status;
    std::uint64_t ticket = 0;
    EXPECT_EQ(alone.submit(&add_one, 1, 0, 3, &ticket), one.code);
    EXPECT_EQ(alone.next_ns(), ~std::uint64_t{0});
  }
}

TEST_F(ClientSession, TicketsAreKnownUntilTheyAreCollected) {
  network.open();
  EXPECT_EQ(session().find(0), Found::unknown);
  EXPECT_EQ(session().find(1), Found::unknown);
  const std::uint64_t ticket = network.submit({add_one, add_one}, 99);
  EXPECT_EQ(session().find(ticket), Found::unanswered);
  EXPECT_EQ(session().find(ticket + 64), Found::unknown);
  EXPECT_TRUE(session().anything_unanswered());
  network.settle();
  EXPECT_EQ(session().find(ticket), Found::answered);
  EXPECT_FALSE(session().anything_unanswered());
  haul_atomic_operation done[2]{};
  EXPECT_EQ(session().collect(ticket, done, 2), Code::ok);
  EXPECT_EQ(done[0].old, 0u);
  EXPECT_EQ(done[1].old, 1u);
  EXPECT_EQ(session().find(ticket), Found::unknown);
}

TEST_F(ClientSession, AnyAnswerIsCollectedWithItsTag) {
  network.open();
  std::map<std::uint64_t, std::uint64_t> tags;
  for (std::uint64_t tag = 100; tag < 110; ++tag) tags[network.submit({add_one}, tag)] = tag;
  haul_atomic_completion completion{};
  EXPECT_FALSE(session().collect_any(&completion));
  network.settle();
  while (session().collect_any(&completion)) {
    EXPECT_EQ(completion.tag, tags[completion.ticket]);
    EXPECT_EQ(completion.status, 0);
    EXPECT_EQ(completion.count, 1u);
    EXPECT_EQ(completion.statuses[0], 0);
    EXPECT_EQ(completion.old[0], completion.tag - 100);
    tags.erase(completion.ticket);
  }
  EXPECT_TRUE(tags.empty());
}

TEST_F(ClientSession, SixtyThreeAreTakenAndThenOneForEachCollected) {
  network.open();
  std::vector<std::uint64_t> tickets;
  for (int i = 0; i < HAUL_ATOMIC_MAX_OUTSTANDING; ++i)
    tickets.push_back(network.submit({add_one}));
  std::uint64_t ticket = 0;
  EXPECT_EQ(session().submit(&add_one, 1, 0, network.now_ns(), &ticket), Code::again);
  network.settle();
  // Answered is not collected.
  EXPECT_EQ(session().submit(&add_one, 1, 0, network.now_ns(), &ticket), Code::again);
  for (std::uint64_t i = 0; i < 500; ++i) {
    // Whichever is collected makes room for one.
    const std::size_t which = (i * 7) % tickets.size();
    network.settle();
    ASSERT_EQ(session().collect(tickets[which], nullptr, 0), Code::ok);
    tickets[which] = network.submit({add_one});
    ASSERT_EQ(session().submit(&add_one, 1, 0, network.now_ns(), &ticket), Code::again);
  }
  network.settle();
  EXPECT_EQ(executed(), 563u);
}

TEST_F(ClientSession, OneThatIsNeverCollectedDoesNotStopTheOthers) {
  network.open();
  const std::uint64_t forgotten = network.submit({add_one});
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t ticket = network.submit({add_one});
    network.settle();
    ASSERT_EQ(session().collect(ticket, nullptr, 0), Code::ok);
  }
  EXPECT_EQ(executed(), 301u);
  haul_atomic_operation done{};
  EXPECT_EQ(session().collect(forgotten, &done, 1), Code::ok);
  EXPECT_EQ(done.old, 0u);
}

TEST_F(ClientSession, WhatIsNotAnsweredTimesOutAndTheSessionGoesOn) {
  network.open();
  network.is_cut = true;
  const std::uint64_t begun = network.now_ns();
  const std::uint64_t ticket = network.submit({add_one, add_one});
  network.until([&] { return session().find(ticket) == Found::answered; });
  EXPECT_GE(network.now_ns() - begun, 5 * second);
  EXPECT_LT(network.now_ns() - begun, 6 * second);
  EXPECT_GT(session().repeated(), 10u);
  haul_atomic_operation done[2]{};
  EXPECT_EQ(session().collect(ticket, done, 2), Code::timed_out);
  EXPECT_EQ(done[0].status, HAUL_ETIMEDOUT);
  EXPECT_EQ(done[1].status, HAUL_ETIMEDOUT);
  EXPECT_EQ(session().next_ns(), ~std::uint64_t{0});
  network.is_cut = false;
  EXPECT_EQ(session().state(), State::open);
  const std::uint64_t next = network.submit({add_one});
  network.until([&] { return session().find(next) == Found::answered; });
  EXPECT_EQ(session().collect(next, done, 1), Code::ok);
}

TEST_F(ClientSession, AnAnswerBehindTheTimeOutIsNotTaken) {
  struct Kept final : Outlet {
    void send(const WirePacket& packet) noexcept override { packets.push_back(packet); }
    std::vector<WirePacket> packets;
  } outlet;
  Session alone(outlet, {0x900000001, window_index, window_key, 0}, second);
  const auto answer = [&](WirePacket packet) {
    EXPECT_TRUE(service.tables.serve(&packet, packet_bytes(packet), 1, service.now_s));
    return packet;
  };
  alone.greet(1);
  alone.heard(answer(outlet.packets.back()), 2);
  std::uint64_t ticket = 0;
  ASSERT_EQ(alone.submit(&add_one, 1, 0, 3, &ticket), Code::ok);
  const WirePacket question = outlet.packets.back();
  alone.tick(2 * second);
  haul_atomic_operation done{};
  ASSERT_EQ(alone.find(ticket), Found::answered);
  alone.heard(answer(question), 2 * second + 1);
  EXPECT_EQ(alone.collect(ticket, &done, 1), Code::timed_out);
  // Nor by whoever has its place next.
  for (int i = 0; i < 63; ++i) {
    ASSERT_EQ(alone.submit(&add_one, 1, 0, 2 * second, &ticket), Code::ok);
  }
  alone.heard(answer(question), 2 * second + 2);
  haul_atomic_completion any{};
  EXPECT_FALSE(alone.collect_any(&any));
}

TEST_F(ClientSession, AStrangersAnswersAreNotTaken) {
  network.open();
  const std::uint64_t ticket = network.submit({add_one});
  WirePacket answer{};
  answer.header.magic = WIRE_MAGIC;
  answer.header.kind = WIRE_REQUEST | WIRE_REPLY;
  answer.header.count = 1;
  answer.header.sequence = static_cast<__u32>(ticket);
  answer.header.session = 12345;  // not its number
  seal(&answer);
  session().heard(answer, network.now_ns());
  EXPECT_EQ(session().find(ticket), Found::unanswered);
  network.settle();
  EXPECT_EQ(session().find(ticket), Found::answered);
}

TEST_F(ClientSession, IsLostWhenTheResponderForgetsIt) {
  network.open();
  std::vector<std::uint64_t> tickets;
  for (int i = 0; i < 5; ++i) tickets.push_back(network.submit({add_one}));
  // Restarted, with its windows.
  ASSERT_TRUE(service.tables.open(4));
  network.settle();
  EXPECT_EQ(session().state(), State::lost);
  EXPECT_EQ(session().reason(), Code::peer_gone);
  for (const std::uint64_t ticket : tickets) {
    haul_atomic_operation done{};
    ASSERT_EQ(session().find(ticket), Found::answered);
    EXPECT_EQ(session().collect(ticket, &done, 1), Code::peer_gone);
    EXPECT_EQ(done.status, HAUL_EPEER);
  }
  std::uint64_t ticket = 0;
  EXPECT_EQ(session().submit(&add_one, 1, 0, 0, &ticket), Code::peer_gone);
  EXPECT_EQ(executed(), 0u);
}

TEST_F(ClientSession, OutlivesItsWindow) {
  network.open();
  service.tables.remove_window(window_index);
  const std::uint64_t ticket = network.submit({add_one});
  network.settle();
  EXPECT_EQ(session().collect(ticket, nullptr, 0), Code::stale);
  EXPECT_EQ(session().state(), State::open);
}

TEST_F(ClientSession, LeavingFailsWhatIsUnanswered) {
  network.open();
  const std::uint64_t answered = network.submit({add_one});
  network.settle();
  const std::uint64_t under_way = network.submit({add_one});
  session().leave();
  EXPECT_EQ(session().state(), State::lost);
  EXPECT_EQ(session().collect(answered, nullptr, 0), Code::ok);
  EXPECT_EQ(session().collect(under_way, nullptr, 0), Code::closed);
  network.settle();
  // Its slot is free again.
  for (int client = 0; client < 4; ++client) {
    network.renew();
    network.open();
  }
}

TEST_F(ClientSession, TakesTheStatusesOfItsOperations) {
  network.open();
  haul_atomic_operation guarded = ask_for(HAUL_ATOMIC_READ, 8);
  guarded.flags = HAUL_ATOMIC_GUARDED;
  guarded.token = 4;
  service.memory.word(8) = 5ull << 32;
  haul_atomic_operation linked = ask_for(HAUL_ATOMIC_READ, 16);
  linked.flags = HAUL_ATOMIC_LINK;
  linked.compare = 1;
  const haul_atomic_operation asked[] = {ask_for(HAUL_ATOMIC_READ, 1 << 20),
                                         ask_for(HAUL_ATOMIC_READ, 3),
                                         ask_for(77, 0),
                                         guarded,
                                         linked,
                                         add_one};
  std::uint64_t ticket = 0;
  ASSERT_EQ(session().submit(asked, 6, 0, network.now_ns(), &ticket), Code::ok);
  network.settle();
  haul_atomic_operation done[6]{};
  EXPECT_EQ(session().collect(ticket, done, 6), Code::ok);
  const int wanted[] = {HAUL_EFAULT, HAUL_EINVAL, HAUL_EINVAL, HAUL_ESTALE, 0, HAUL_EAGAIN};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(done[i].status, wanted[i]) << i;
}

TEST_F(ClientSession, NumbersWrap) {
  network.open();
  last_ticket_of(session()) = 0xffffff80;
  for (int round = 0; round < 8; ++round) {
    std::vector<std::uint64_t> tickets;
    for (int i = 0; i < 40; ++i) tickets.push_back(network.submit({add_one}));
    network.settle();
    for (const std::uint64_t ticket : tickets) {
      ASSERT_EQ(session().collect(ticket, nullptr, 0), Code::ok) << ticket;
    }
  }
  EXPECT_GT(last_ticket_of(session()), 1ull << 32);
  EXPECT_EQ(executed(), 320u);
}

TEST_F(ClientSession, RoundTripsAreMeasured) {
  network.open();
  EXPECT_GT(session().round_trip_ns(), 0u);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t ticket = network.submit({add_one});
    network.settle();
    ASSERT_EQ(session().collect(ticket, nullptr, 0), Code::ok);
  }
  // The simulated network's, both ways.
  EXPECT_EQ(session().round_trip_ns(), 10'000u);
  EXPECT_EQ(session().repeated(), 0u);
}

}  // namespace
}  // namespace haul::atomics::test
