// Asynchronous engines, driven by a mover (MCI) and by the caller's own thread (SCI): the bytes are
// right, and one that dies, stalls or reports nonsense loses no request and no byte
// (execution/channel.hpp, drive.hpp). The engine is `fault`, which misbehaves by its schedule.
#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include "support.hpp"

namespace {

using namespace e2e;

enum class By { mover, caller };

void misbehave(const char* schedule, By who = By::mover) {
  always_mover();
  if (who == By::caller) setenv("HAUL_PLAN_MOVER", "caller", 1);
  setenv("HAUL_PLAN_ENGINE", "fault", 1);
  setenv("HAUL_ENGINE_FAULT", schedule, 1);
  setenv("HAUL_MOVER_PATIENCE_MS", "200", 1);
}

haul_ticket submit_copy(const Buffer& to, const Buffer& from, unsigned flags = 0) {
  haul_request request = haul_request_copy(to.data(), from.data(), to.size());
  request.flags = flags;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  return ticket;
}

// One copy, submitted.
class UnderWay {
 public:
  explicit UnderWay(std::size_t bytes, unsigned flags = 0) : from_(bytes), to_(bytes) {
    from_.fill(bytes);
    ticket_ = submit_copy(to_, from_, flags);
  }
  const haul_ticket& ticket() const { return ticket_; }
  void is_whole() const {
    CHILD_EQUAL(haul_test(ticket_), 1);
    CHILD_EQUAL(std::memcmp(to_.data(), from_.data(), to_.size()), 0);
  }

 private:
  Buffer from_, to_;
  haul_ticket ticket_;
};

class Misbehaving : public testing::TestWithParam<std::tuple<const char*, By>> {};

TEST_P(Misbehaving, LosesNothing) {
  EXPECT_EQ(run_child([] {
              misbehave(std::get<0>(GetParam()), std::get<1>(GetParam()));
              for (unsigned turn = 0; turn < 12; ++turn) {
                const std::size_t length = (turn % 4 + 1) * 700 * kib + 13 * turn;
                const Buffer from(length), to(length);
                from.fill(turn);
                const haul_ticket ticket = submit_copy(to, from);
                if (turn % 2 == 0) ends_without_help(ticket);
                CHILD_EQUAL(haul_wait(ticket), 0);
                CHILD_EQUAL(std::memcmp(to.data(), from.data(), length), 0);
              }
              return 0;
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, Misbehaving,
    testing::Combine(testing::Values("", "delay=9", "seed=4,delay=30,p_partial=20,p_fail=10",
                                     "stall", "stall@7,delay=2", "stray", "stray@9,delay=4",
                                     "excess@1", "excess@11,delay=7", "die@5,delay=3"),
                     testing::Values(By::mover, By::caller)));

// What a waiter has been told is there is the program's: the CPU begins behind it.
TEST(Visible, WhatWasVisibleBeforeAStallIsNotWrittenAgain) {
  EXPECT_EQ(run_child([] {
              misbehave("delay=3,stall@1");
              const Buffer from(4 * mib), to(4 * mib);
              from.fill(1);
              const haul_ticket ticket = submit_copy(to, from);
              for (std::size_t good = 0; good < 8 * kib; sched_yield())  // (nobody helps)
                CHILD_EQUAL(haul_progress(ticket, &good), 0);
              const auto own = static_cast<unsigned char>(~from[17]);
              to.data()[17] = own;
              CHILD_EQUAL(haul_wait(ticket), 0);
              CHILD_EQUAL(to[17], own);
              to.data()[17] = from[17];
              CHILD_EQUAL(std::memcmp(to.data(), from.data(), 4 * mib), 0);
              return 0;
            }),
            0);
}

class Channel : public testing::TestWithParam<By> {};
INSTANTIATE_TEST_SUITE_P(By, Channel, testing::Values(By::mover, By::caller));

TEST_P(Channel, AForkDuringAStallGivesBothTheBytes) {
  EXPECT_EQ(run_child([] {
              misbehave("stall@3", GetParam());
              const Buffer from(4 * mib), to(4 * mib);
              from.fill(2);
              const haul_ticket ticket = submit_copy(to, from);
              const auto is_whole = [&] {
                CHILD_EQUAL(haul_wait(ticket), 0);
                CHILD_EQUAL(std::memcmp(to.data(), from.data(), 4 * mib), 0);
                // And the engine's channel is fit for use, or known not to be.
                const Buffer again(mib), source(mib);
                source.fill(3);
                CHILD_EQUAL(haul_wait(submit_copy(again, source)), 0);
                CHILD_EQUAL(std::memcmp(again.data(), source.data(), mib), 0);
                return 0;
              };
              const pid_t child = start_child(is_whole);
              is_whole();
              return end_of(child);
            }),
            0);
}

TEST_P(Channel, AProcessEndsDuringAStall) {
  EXPECT_EQ(run_child([] {
              misbehave("stall", GetParam());
              static const Buffer from(mib), to(mib);
              submit_copy(to, from);
              std::exit(0);
              return 1;
            }),
            0);
}

TEST_P(Channel, TheCallerGoesOn) {
  EXPECT_EQ(run_child([] {
              misbehave("delay=100000us", GetParam());
              const UnderWay copy(mib);
              CHILD_EQUAL(haul_test(copy.ticket()), 0);
              ends_without_help(copy.ticket());
              copy.is_whole();
              return 0;
            }),
            0);
}

// A thread that asked and then does something else; another one waits.
TEST_P(Channel, AnyThreadMayWait) {
  EXPECT_EQ(run_child([] {
              misbehave("delay=20", GetParam());
              const UnderWay copy(3 * mib + 5);
              std::thread([&] { CHILD_EQUAL(haul_wait(copy.ticket()), 0); }).join();
              copy.is_whole();
              return 0;
            }),
            0);
}

TEST_P(Channel, AThreadThatAskedMayEnd) {
  EXPECT_EQ(run_child([] {
              misbehave("delay=20", GetParam());
              std::optional<UnderWay> copy;
              std::thread([&] { copy.emplace(3 * mib); }).join();
              ends_without_help(copy->ticket());
              copy->is_whole();
              return 0;
            }),
            0);
}

// More than the channel holds, fences among them; whoever only reaps drives all of them.
TEST_P(Channel, ReapingDrives) {
  EXPECT_EQ(run_child([] {
              misbehave("seed=6,delay=12", GetParam());
              constexpr int links = 40;
              std::vector<std::unique_ptr<Buffer>> chain;
              for (int i = 0; i <= links; ++i)
                chain.push_back(std::make_unique<Buffer>(500 * kib + 3));
              chain[0]->fill(6);
              for (std::size_t i = 0; i + 1 < chain.size(); ++i)
                submit_copy(*chain[i + 1], *chain[i], HAUL_COMPLETE | HAUL_FENCE);
              haul_completion entries[8];
              for (int reaped = 0; reaped < links;) {
                const int count = haul_reap(entries, 8);
                CHILD_CHECK(count >= 0);
                for (int i = 0; i < count; ++i) CHILD_EQUAL(entries[i].status, 0);
                reaped += count;
              }
              for (const auto& buffer : chain)
                CHILD_EQUAL(std::memcmp(buffer->data(), chain[0]->data(), buffer->size()), 0);
              return 0;
            }),
            0);
}

TEST_P(Channel, AnEventLoopIsWoken) {
  EXPECT_EQ(run_child([] {
              misbehave("delay=3000us", GetParam());
              const UnderWay copy(mib, HAUL_COMPLETE);
              pollfd event{haul_reap_eventfd(), POLLIN, 0};
              const int armed = haul_reap_arm();
              CHILD_CHECK(armed >= 0);
              if (armed == 0) CHILD_EQUAL(poll(&event, 1, 10'000), 1);
              haul_completion entry{};
              CHILD_EQUAL(haul_reap(&entry, 1), 1);
              copy.is_whole();
              return 0;
            }),
            0);
}

// Whoever polls a notification word looks at no ticket: the caller copies at once.
TEST_P(Channel, ANotificationComesByItself) {
  EXPECT_EQ(run_child([] {
              misbehave("delay=5", GetParam());
              const Buffer from(mib), to(mib);
              from.fill(8);
              haul_request request = haul_request_copy(to.data(), from.data(), to.size());
              std::uint64_t word = 0;
              request.notify = &word;
              request.notify_value = 9;
              haul_ticket ticket{};
              CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
              while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) != 9) sched_yield();
              CHILD_EQUAL(std::memcmp(to.data(), from.data(), to.size()), 0);
              return 0;
            }),
            0);
}

TEST(Scheme, IsNamed) {
  for (const By who : {By::mover, By::caller}) {
    EXPECT_EQ(run_child([who] {
                misbehave("", who);
                haul_plan told{};
                told.size = sizeof told;
                const Buffer from(mib), to(mib);
                const haul_request request = haul_request_copy(to.data(), from.data(), mib);
                CHILD_EQUAL(haul_explain(&request, &told), 0);
                CHILD_EQUAL(std::strcmp(told.engine, "fault"), 0);
                CHILD_EQUAL(std::strcmp(told.scheme, who == By::mover ? "MCNI" : "SCNI"), 0);
                return 0;
              }),
              0);
  }
}

}  // namespace
