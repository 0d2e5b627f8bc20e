// The choice of a way against made-up times: it finds what is fastest, and goes on looking.
#include "preload/mem/choice.hpp"
#include "sizes.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <memory>

namespace haul::preload {
namespace {

// How often each way was taken in so many calls, each of which takes what `ns` says of it.
template <class Ns>
std::map<Way, unsigned> taken(Site& site, Pages pages, std::size_t length, Operation operation,
                              unsigned calls, Ns ns) {
  std::map<Way, unsigned> count;
  for (unsigned i = 0; i < calls; ++i) {
    const Way way = choose(&site, pages, length, operation);
    ++count[way];
    note(&site, pages, length, way, ns(way));
  }
  return count;
}

// In a process that has spent so long in large calls that trials begin.
struct Choice : testing::Test {
  Choice() { note(site.get(), Pages::unasked, mib, Way::libc, 100'000'000); }
  std::unique_ptr<Site> site = std::make_unique<Site>();
};

TEST_F(Choice, BeginsWithTheUsual) {
  EXPECT_EQ(choose(site.get(), Pages::missing, 2 * mib, Operation::copy), Way::caller);
  EXPECT_EQ(choose(site.get(), Pages::there, 2 * mib, Operation::copy), Way::libc);
  EXPECT_EQ(choose(nullptr, Pages::missing, 2 * mib, Operation::copy), Way::caller);
  EXPECT_EQ(choose(nullptr, Pages::there, 64 * mib, Operation::copy), Way::libc);
}

TEST_F(Choice, FindsThatSharingIsFaster) {
  const auto count = taken(*site, Pages::missing, 8 * mib, Operation::copy, 1000,
                           [](Way way) { return way == Way::together ? 500'000u : 1'000'000u; });
  EXPECT_GE(count.at(Way::together), 950u);
  EXPECT_GE(count.at(Way::caller), 3u) << "it tries the other one now and then";
  EXPECT_GE(count.at(Way::libc), 1u) << "from the 64th call on";
}

TEST_F(Choice, FindsThatSharingIsSlower) {
  const auto count = taken(*site, Pages::missing, 8 * mib, Operation::copy, 1000,
                           [](Way way) { return way == Way::together ? 2'000'000u : 1'000'000u; });
  EXPECT_GE(count.at(Way::caller), 950u);
  EXPECT_GE(count.at(Way::together), 3u);
}

TEST_F(Choice, FindsThatLibcIsFastestOfAll) {
  const auto count = taken(*site, Pages::missing, 8 * mib, Operation::copy, 1000, [](Way way) {
    return way == Way::libc ? 400'000u : way == Way::caller ? 1'000'000u : 800'000u;
  });
  EXPECT_GE(count.at(Way::libc), 900u) << "it is tried by the 64th call";
}

TEST_F(Choice, FollowsWhatChanges) {
  const auto fast_together = [](Way way) { return way == Way::together ? 300'000u : 1'000'000u; };
  const auto slow_together = [](Way way) { return way == Way::together ? 9'000'000u : 1'000'000u; };
  taken(*site, Pages::there, 16 * mib, Operation::copy, 1000, fast_together);
  const auto count = taken(*site, Pages::there, 16 * mib, Operation::copy, 4000, slow_together);
  EXPECT_GE(count.at(Way::libc), 3000u);
  // What is not used is tried at times, and a trial that is faster counts for half.
  EXPECT_GE(
      taken(*site, Pages::there, 16 * mib, Operation::copy, 6000, fast_together).at(Way::together),
      2000u);
}

// As when a child has just been forked, and every page is copied first.
TEST_F(Choice, GetsOverMomentsThatAreSlowForAllWays) {
  unsigned slow = 1;
  const auto late = [&](Way way) { return slow * (way == Way::libc ? 2'000'000u : 1'000'000u); };
  const auto call = [&](unsigned calls) {
    return taken(*site, Pages::missing, 8 * mib, Operation::copy, calls, late);
  };
  call(200);
  for (unsigned moment = 0; moment < 20; ++moment) {
    slow = 5;
    call(6);
    slow = 1;
    EXPECT_LE(call(100)[Way::libc], 10u) << "after slow moment " << moment;
  }
}

TEST_F(Choice, TriesWhatLosesMuchMoreRarely) {
  const auto trials = [&](Pages pages, unsigned ns) {
    return taken(*site, pages, 8 * mib, Operation::copy, 4000,
                 [&](Way way) { return way == Way::together ? ns : 1'000'000u; })[Way::together];
  };
  const unsigned near = trials(Pages::missing, 1'200'000), far = trials(Pages::there, 6'000'000);
  EXPECT_GE(near, 2 * far);
  EXPECT_GE(far, 2u);
  EXPECT_LE(far * 5'000'000ull, 4000ull * 1'000'000 / 50) << "a fiftieth of the time, and no more";
}

TEST_F(Choice, MemoryThatIsThereIsLibcsWhereItIsSmallOrFilled) {
  const auto any = [](Way) { return 1'000'000u; };
  EXPECT_EQ(taken(*site, Pages::there, 2 * mib, Operation::copy, 600, any).at(Way::libc), 600u);
  EXPECT_EQ(taken(*site, Pages::there, 64 * mib, Operation::fill, 600, any).at(Way::libc), 600u);
}

TEST_F(Choice, SizesAndPagesAreJudgedApart) {
  const auto together = [](Way way) { return way == Way::together ? 1'000u : 1'000'000u; };
  taken(*site, Pages::missing, 8 * mib, Operation::copy, 100, together);
  EXPECT_EQ(choose(site.get(), Pages::missing, 80 * mib, Operation::copy), Way::caller);
  EXPECT_EQ(choose(site.get(), Pages::there, 8 * mib, Operation::copy), Way::libc);
}

// One deferred call can cost several others, so a short program makes none.
TEST_F(Choice, DefersAfterADozenCallsWhereTheUseIsFarOff) {
  const auto late = [](Way way) { return way == Way::deferred ? 100'000u : 1'000'000u; };
  DistanceTally& use = site->distances[size_class(16 * mib)].use;
  EXPECT_EQ(taken(*site, Pages::there, 16 * mib, Operation::fill, 40, late).count(Way::deferred),
            0u)
      << "nothing is known of the use";
  use.counts[distance_class(500'000'000)].store(3);
  EXPECT_EQ(taken(*site, Pages::missing, 16 * mib, Operation::copy, 12, late).count(Way::deferred),
            0u);
  EXPECT_GE(taken(*site, Pages::missing, 16 * mib, Operation::copy, 1, late).count(Way::deferred),
            1u);
}

// A fixed way is for good, hence a child.
TEST_F(Choice, MayBeFixed) {
  const pid_t child = fork();
  if (child == 0) {
    bool always = true;
    fix_way(Way::together);
    for (int i = 0; i < 300; ++i)
      always = always && choose(i % 2 == 0 ? site.get() : nullptr, Pages::there, mib,
                                Operation::fill) == Way::together;
    _exit(always ? 0 : 1);
  }
  int status = 1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace haul::preload
