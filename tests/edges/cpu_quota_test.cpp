// A cgroup's CPU quota takes the mover its CPU amid a chunk, most of the time: whoever waits for it
// waits for the next period, and goes on.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

bool write_number(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fputs(text.c_str(), file) >= 0;
  return std::fclose(file) == 0 && written;
}

// A cgroup whose members get a twentieth of a CPU; empty where none can be made.
class Quota {
 public:
  Quota() {
    const std::string name = "/haul-edges-" + std::to_string(getpid());
    for (const std::string root : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}) {
      const std::string at = root + name;
      if (mkdir(at.c_str(), 0755) != 0) continue;
      const bool first = write_number(at + "/cpu.cfs_period_us", "100000") &&
                         write_number(at + "/cpu.cfs_quota_us", "5000");
      if (first || write_number(at + "/cpu.max", "5000 100000")) {
        path_ = at;
        return;
      }
      rmdir(at.c_str());
    }
  }
  ~Quota() {
    for (int turn = 0; !path_.empty() && rmdir(path_.c_str()) != 0 && turn < 1000; ++turn)
      sleep_ms(5);
  }
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  explicit operator bool() const { return !path_.empty(); }
  // The calling process, all threads of it that there are and will be.
  bool join() const { return write_number(path_ + "/cgroup.procs", std::to_string(getpid())); }

 private:
  std::string path_;
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
