// How long a caller polls before the next yield, by what the last one told.
#include "fabric/endpoint/waiting/poll_backoff.hpp"

#include <gtest/gtest.h>

namespace haul::fabric {
namespace {

constexpr std::uint32_t least = PollBackoff::least_polls, most = PollBackoff::most_polls;

// In microseconds, at 25 ns a poll, after some yields that took as long.
double polls_for_us(std::uint64_t away_ns) {
  constexpr std::uint64_t poll_ns = 25;
  std::uint32_t polls = 256;
  for (int i = 0; i < 10; ++i) polls = PollBackoff::limit_after(polls, polls * poll_ns, away_ns);
  return polls * poll_ns / 1000.0;
}

TEST(PollBackoff, IsLongerTheDearerAYieldIs) {
  EXPECT_NEAR(polls_for_us(200), 20, 1);         // nobody else wants the core
  EXPECT_LT(polls_for_us(5'000), 2);             // somebody who waits, too
  EXPECT_NEAR(polls_for_us(4'000'000), 100, 1);  // somebody who used his whole time slice
}

TEST(PollBackoff, LearnsAtOnceThatAYieldIsDear) {
  EXPECT_EQ(PollBackoff::limit_after(least, least * 25, 3'000'000), 4000u);
  EXPECT_EQ(PollBackoff::limit_after(least, least * 25, 300), 2 * least) << "slowly otherwise";
}

TEST(PollBackoff, StaysWithinItsBounds) {
  for (const std::uint64_t away : {std::uint64_t{0}, std::uint64_t{10'000}, UINT64_MAX}) {
    for (const std::uint64_t polled : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX}) {
      for (const std::uint32_t polls : {0u, least, most}) {
        const std::uint32_t next = PollBackoff::limit_after(polls, polled, away);
        EXPECT_GE(next, least);
        EXPECT_LE(next, most);
      }
    }
  }
}

}  // namespace
}  // namespace haul::fabric
