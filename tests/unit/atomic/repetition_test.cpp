// What a session takes for a round trip when it had to ask again.
#include <gtest/gtest.h>

#include <vector>

#include "atomic/client/session.hpp"

namespace haul::atomics {
namespace {

constexpr std::uint64_t round_trip_ns = 10'000;

class Repetition : public testing::Test, public Outlet {
 protected:
  void SetUp() override {
    session.greet(now_ns);
    now_ns += round_trip_ns;
    answer(sent.back());
    ASSERT_EQ(session.state(), Session::State::open);
    ASSERT_EQ(session.round_trip_ns(), round_trip_ns);
  }
  void send(const WirePacket& packet) noexcept override { sent.push_back(packet); }
  void answer(const WirePacket& asked) {
    WirePacket packet = asked;
    packet.header.kind |= WIRE_REPLY;
    session.heard(packet, now_ns);
  }
  std::uint64_t ask() {
    haul_atomic_operation operation{};
    operation.code = HAUL_ATOMIC_ADD;
    operation.width = 8;
    std::uint64_t ticket = 0;
    EXPECT_EQ(session.submit(&operation, 1, 0, now_ns, &ticket), Code::ok);
    return ticket;
  }
  // It may have been an earlier one that was to be looked at then.
  void wait() {
    now_ns = session.next_ns();
    session.tick(now_ns);
  }
  void wait_for_repetition() {
    for (const std::size_t before = sent.size(); sent.size() == before;) wait();
  }
  void hear(const WirePacket& asked, std::uint64_t ticket) {
    answer(asked);
    ASSERT_EQ(session.collect(ticket, nullptr, 0), Code::ok);
  }

  std::vector<WirePacket> sent;
  std::uint64_t now_ns = 1;
  Session session{*this, {9, 0, 1, 7}, 5'000'000'000};
};

TEST_F(Repetition, WhatIsLostMakesNoRoundTripLonger) {
  // Uneven ones, so that what is answered soon does not show which it answers.
  for (int i = 0; i < 100; ++i) {
    std::uint64_t ticket = ask();
    now_ns += 10 * round_trip_ns;
    hear(sent.back(), ticket);
    ticket = ask();
    wait_for_repetition();
    now_ns += round_trip_ns;
    hear(sent.back(), ticket);
  }
  EXPECT_LT(session.round_trip_ns(), 10 * round_trip_ns);
}

TEST_F(Repetition, AnAnswerToTheFirstIsMeasuredFromThere) {
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t heard_ns = now_ns + (i % 2 == 0 ? 1'000'000 : 1'100'000), ticket = ask();
    const WirePacket first = sent.back();
    while (session.next_ns() < heard_ns) wait();
    now_ns = heard_ns;
    hear(first, ticket);
  }
  EXPECT_NEAR(static_cast<double>(session.round_trip_ns()), 1.05e6, 5e4);
  // So the slow one is waited for.
  EXPECT_LT(session.repeated(), 50u);
}

TEST_F(Repetition, IsOfTheSameConnectionAndIntact) {
  ask();
  wait_for_repetition();
  EXPECT_EQ(sent.back().header.cookie & 0xffff, 7u);
  EXPECT_TRUE(intact(sent.back(), packet_bytes(sent.back())));
}

}  // namespace
}  // namespace haul::atomics
