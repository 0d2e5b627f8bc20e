// An asynchronous engine that dies, stalls or reports nonsense loses no request and no byte
// (execution/channel.hpp). What misbehaves is the engine `fault`, by its schedule.
#include <gtest/gtest.h>

#include "support.hpp"

namespace {

using namespace e2e;

void misbehave(const char* schedule) {
  always_mover();
  setenv("HAUL_PLAN_ENGINE", "fault", 1);
  setenv("HAUL_ENGINE_FAULT", schedule, 1);
  setenv("HAUL_MOVER_PATIENCE_MS", "200", 1);
}

haul_ticket submit_copy(const Buffer& to, const Buffer& from) {
  haul_request request = haul_request_copy(to.data(), from.data(), to.size());
  request.flags = HAUL_DEDICATED;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  return ticket;
}

void ends_without_help(const haul_ticket& ticket) {
  while (haul_test(ticket) == 0) sched_yield();
  CHILD_EQUAL(haul_test(ticket), 1);
}

class Misbehaving : public testing::TestWithParam<const char*> {};

TEST_P(Misbehaving, LosesNothing) {
  EXPECT_EQ(run_child([] {
              misbehave(GetParam());
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

INSTANTIATE_TEST_SUITE_P(Schedules, Misbehaving,
                         testing::Values("stall", "stall@7,delay=2", "stray", "stray@9,delay=4",
                                         "excess@1", "excess@11,delay=7", "die@5,delay=3"));

// What a waiter has been told is there is the program's: the CPU begins behind it.
TEST(Channel, WhatWasVisibleBeforeAStallIsNotWrittenAgain) {
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

TEST(Channel, AForkDuringAStallGivesBothTheBytes) {
  EXPECT_EQ(run_child([] {
              misbehave("stall@3");
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

TEST(Channel, AProcessEndsDuringAStall) {
  EXPECT_EQ(run_child([] {
              misbehave("stall");
              static const Buffer from(mib), to(mib);
              submit_copy(to, from);
              std::exit(0);
              return 1;
            }),
            0);
}

}  // namespace
