// A cgroup's CPU quota takes the mover its CPU amid a chunk, most of the time: whoever waits for it
// waits for the next period, and goes on.
#include <gtest/gtest.h>

#include "cgroup.hpp"
#include "e2e/support.hpp"

namespace {

using namespace e2e;

// Its members get a twentieth of a CPU.
class Quota : public Cgroup {
 public:
  Quota()
      : Cgroup("cpu", {{"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "5000"}},
               {{"cpu.max", "5000 100000"}}) {}
};

int copies_and_ends(const Quota& quota, bool range) {
  always_mover();
  constexpr std::size_t bytes = 16 * mib;
  const Buffer src(bytes), dst(bytes);
  src.fill(1);
  copy_works(mib, 2);
  CHILD_CHECK(quota.join());
  for (int round = 0; round < 5; ++round) {
    dst.clear();
    haul_request request = haul_request_copy(dst.data(), src.data(), bytes);
    request.flags = HAUL_DEDICATED;
    haul_ticket ticket{};
    CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
    CHILD_EQUAL(range ? haul_wait_range(ticket, 0, bytes) : haul_wait(ticket), 0);
    CHILD_EQUAL(std::memcmp(dst.data(), src.data(), bytes), 0);
    if (round == 2) CHILD_EQUAL(run_child([] { return 0; }), 0);
  }
  CHILD_EQUAL(haul_shutdown(), 0);
  return 0;
}

TEST(CpuQuota, WhoWaitsGoesOn) {
  const Quota quota;
  if (!quota) GTEST_SKIP() << "no cgroup with a CPU quota can be made here";
  EXPECT_EQ(run_child([&quota] { return copies_and_ends(quota, false); }), 0);
}

TEST(CpuQuota, WhoWaitsForARangeGoesOn) {
  const Quota quota;
  if (!quota) GTEST_SKIP() << "no cgroup with a CPU quota can be made here";
  EXPECT_EQ(run_child([&quota] { return copies_and_ends(quota, true); }), 0);
}

}  // namespace
