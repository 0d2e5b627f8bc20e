// Answers that a session finds in a completion map, and all that it may find there besides.
#include "atomic/wire/completion.h"

#include "unit/atomic/network.hpp"

namespace haul::atomics::test {
namespace {

using Found = Session::Found;

class CompletionMap : public testing::Test, public Outlet {
 protected:
  void SetUp() override {
    session.greet(1);
    WirePacket answer = last;
    answer.header.kind |= WIRE_REPLY;
    session.heard(answer, 2);
    ASSERT_EQ(session.state(), Session::State::open);
  }
  void send(const WirePacket& packet) noexcept override { last = packet; }
  std::uint64_t submit(std::size_t count = 1) {
    haul_atomic_operation operations[HAUL_ATOMIC_MAX_BATCH];
    for (auto& one : operations) one = ask_for(HAUL_ATOMIC_ADD, 0, 1);
    std::uint64_t ticket = 0;
    EXPECT_EQ(session.submit(operations, count, 0, 10, &ticket), Code::ok);
    return ticket;
  }
  // As the program would.
  void fill(std::uint64_t ticket, std::uint64_t old, unsigned status = WIRE_OK,
            unsigned phase = COMPLETION_DONE) {
    completion_entry& entry = slot->entries[ticket % WIRE_RESULTS];
    for (unsigned i = 0; i < WIRE_MAX_OPERATIONS; ++i) {
      entry.old[i] = old + i;
      entry.result[i] = WIRE_DONE;
    }
    entry.status = static_cast<__u8>(status);
    entry.state = completion_state(static_cast<std::uint32_t>(ticket), phase);
  }

  WirePacket last{};
  std::unique_ptr<completion_slot> slot = std::make_unique<completion_slot>();
  Session session{*this, {9, window_index, window_key, 0}, 1'000'000'000};
};

TEST_F(CompletionMap, TheSlotFitsItsElement) {
  EXPECT_LE(sizeof(completion_slot), std::size_t{COMPLETION_SLOT_BYTES});
}

TEST_F(CompletionMap, AnAnswerIsFound) {
  const std::uint64_t ticket = submit(16);
  session.look(*slot, 20);
  EXPECT_EQ(session.find(ticket), Found::unanswered);
  fill(ticket, 40);
  session.look(*slot, 30);
  ASSERT_EQ(session.find(ticket), Found::answered);
  haul_atomic_operation done[16]{};
  EXPECT_EQ(session.collect(ticket, done, 16), Code::ok);
  for (unsigned i = 0; i < 16; ++i) EXPECT_EQ(done[i].old, 40 + i);
}

TEST_F(CompletionMap, OneThatIsBeingFilledIsNotRead) {
  const std::uint64_t ticket = submit();
  fill(ticket, 40, WIRE_OK, COMPLETION_FILLING);
  session.look(*slot, 20);
  EXPECT_EQ(session.find(ticket), Found::unanswered);
}

TEST_F(CompletionMap, AnEarlierAnswerOfItsPlaceIsNotTaken) {
  for (int i = 0; i < 3; ++i) {
    std::uint64_t tickets[63];
    for (std::uint64_t& ticket : tickets) ticket = submit();
    // Late duplicates of the round before are there, all of this round is not yet.
    session.look(*slot, 20);
    for (const std::uint64_t ticket : tickets) {
      ASSERT_EQ(session.find(ticket), Found::unanswered) << ticket;
      fill(ticket, ticket);
    }
    session.look(*slot, 30);
    for (const std::uint64_t ticket : tickets) {
      haul_atomic_operation done{};
      ASSERT_EQ(session.find(ticket), Found::answered) << ticket;
      EXPECT_EQ(session.collect(ticket, &done, 1), Code::ok);
      EXPECT_EQ(done.old, ticket);
    }
  }
}

TEST_F(CompletionMap, AnAnswerHeardBothWaysIsOne) {
  const std::uint64_t ticket = submit();
  WirePacket answer = last;
  answer.header.kind |= WIRE_REPLY;
  answer.operations[0].operand = 7;
  session.heard(answer, 20);
  fill(ticket, 8);
  session.look(*slot, 30);
  haul_atomic_operation done{};
  EXPECT_EQ(session.collect(ticket, &done, 1), Code::ok);
  EXPECT_EQ(done.old, 7u);
  session.look(*slot, 40);
  session.heard(answer, 50);
  EXPECT_EQ(session.find(ticket), Found::unknown);
}

TEST_F(CompletionMap, ARefusalIsFoundToo) {
  const std::uint64_t first = submit(), other = submit();
  fill(first, 0, WIRE_NO_WINDOW);
  session.look(*slot, 20);
  EXPECT_EQ(session.collect(first, nullptr, 0), Code::stale);
  EXPECT_EQ(session.find(other), Found::unanswered);
  fill(other, 0, WIRE_NO_SESSION);
  const std::uint64_t third = submit();
  session.look(*slot, 30);
  EXPECT_EQ(session.state(), Session::State::lost);
  EXPECT_EQ(session.collect(other, nullptr, 0), Code::peer_gone);
  EXPECT_EQ(session.collect(third, nullptr, 0), Code::peer_gone);
}

TEST_F(CompletionMap, ResultsOfEachOperationAreTaken) {
  const std::uint64_t ticket = submit(3);
  fill(ticket, 5);
  slot->entries[ticket % WIRE_RESULTS].result[1] = WIRE_OUTSIDE;
  session.look(*slot, 20);
  haul_atomic_operation done[3]{};
  EXPECT_EQ(session.collect(ticket, done, 3), Code::ok);
  EXPECT_EQ(done[0].old, 5u);
  EXPECT_EQ(done[1].status, HAUL_EFAULT);
  EXPECT_EQ(done[1].old, 0u);
  EXPECT_EQ(done[2].old, 7u);
}

}  // namespace
}  // namespace haul::atomics::test
