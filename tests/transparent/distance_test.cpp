// How far from a copy the first use of its destination is and the first write of its source, as
// `haul profile` measures it; and that memory which is watched for that is what it would be
// otherwise. (deferred_test.cpp runs under a profile, too, which samples each of its copies.)
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "transparent/support.hpp"

namespace transparent {
namespace {

using haul::preload::distance_classes;
using haul::preload::distance_never;
using haul::preload::DistanceTally;

constexpr std::size_t size = 4 * mib;

struct Sum {
  std::uint64_t use[distance_classes] = {}, write[distance_classes] = {};
  std::uint64_t uses = 0, writes = 0;
};
Sum sum_now() {
  Sum sum;
  const auto add = [](const DistanceTally& tally, std::uint64_t* classes, std::uint64_t& all) {
    for (std::size_t i = 0; i < distance_classes; ++i) {
      classes[i] += tally.counts[i].load();
      all += tally.counts[i].load();
    }
  };
  for (const haul::preload::Site& site : own_table().sites) {
    for (const auto& distances : site.distances) {
      add(distances.use, sum.use, sum.uses);
      add(distances.write, sum.write, sum.writes);
    }
  }
  return sum;
}

std::uint64_t peak_kib() {
  std::ifstream status("/proc/self/status");
  std::uint64_t kib = 0;
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) kib = std::strtoul(line.c_str() + 6, nullptr, 10);
  return kib;
}

// Where all memory comes with its pages, nothing is put aside. (The first test, so that nothing
// has been sampled before.)
TEST(Locked, ProcessesAreNotSampled) {
  EXPECT_EQ(run_child([] {
              if (mlockall(MCL_FUTURE) != 0) return;
              const std::uint64_t before = peak_kib();
              for (int turn = 0; turn < 4; ++turn) {
                const Memory from(mib), to(mib);
                from.fill(11);
                call_memcpy(to.data(), from.data(), from.size());
                CHILD_CHECK(to.holds(11, from.size()));
              }
              CHILD_CHECK(peak_kib() < before + 16 * 1024);
            }),
            0);
}

class Profile : public testing::Test {
 protected:
  void SetUp() override {
    if (!plan_is("profile")) return;
    // Is anything sampled at all? Needs rights, and Linux 6.8.
    const Memory from(size), to(size);
    from.fill(1);
    call_memcpy(to.data(), from.data(), size);
    ASSERT_TRUE(to.holds(1, size));
    from.fill(2);
    before_ = sum_now();
    if (before_.uses == 0)
      GTEST_SKIP() << "the kernel does not let this user have a userfaultfd that serves it";
    samples_ = true;
  }
  bool samples_ = false;
  Sum before_;
};

void pause_ms(unsigned ms) {
  usleep(ms * 1000);
}

TEST_F(Profile, TellsTheFirstUseAndTheFirstWrite) {
  if (!samples_) return;
  const Memory from(size), to(size);
  from.fill(3);
  call_memcpy(to.data(), from.data(), size);
  pause_ms(10);
  EXPECT_TRUE(to.holds(3, size));
  pause_ms(60);
  from.fill(4);
  const Sum now = sum_now();
  EXPECT_EQ(now.uses, before_.uses + 1);
  EXPECT_EQ(now.writes, before_.writes + 1);
  // Not below 4 ms, and not below 33 ms. (Reading the source is no use of it.)
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(now.use[i], before_.use[i]) << i;
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(now.write[i], before_.write[i]) << i;
  EXPECT_TRUE(to.holds(3, size));
}

TEST_F(Profile, MemoryThatIsGivenBackIsNeverUsed) {
  if (!samples_) return;
  {
    const Memory from(size), to(size);
    from.fill(5);
    call_memcpy(to.data(), from.data(), size);
  }
  const Sum now = sum_now();
  EXPECT_EQ(now.use[distance_never], before_.use[distance_never] + 1);
  EXPECT_EQ(now.write[distance_never], before_.write[distance_never] + 1);
}

TEST_F(Profile, APageThatNobodyTouchesComesBackAfterASecond) {
  if (!samples_) return;
  const Memory from(size), to(size);
  from.fill(6);
  call_memcpy(to.data(), from.data(), size);
  for (unsigned turn = 0; turn < 100 && sum_now().uses == before_.uses; ++turn) pause_ms(100);
  EXPECT_EQ(sum_now().use[distance_never - 1], before_.use[distance_never - 1] + 1);
  unsigned char present[size / 4096] = {};
  ASSERT_EQ(mincore(to.data(), size, present), 0);
  for (const unsigned char page : present) ASSERT_EQ(page & 1, 1);
  EXPECT_TRUE(to.holds(6, size));
}

std::size_t huge_bytes_at(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  std::size_t bytes = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<unsigned long>(address);
      inside = begin <= at && at < end;
    } else if (inside && line.rfind("AnonHugePages:", 0) == 0) {
      bytes += std::strtoul(line.c_str() + 14, nullptr, 10) * kib;
    }
  }
  return bytes;
}

TEST_F(Profile, HugePagesStayHuge) {
  constexpr std::size_t huge = 2 * mib;
  const Memory from(8 * mib), to(8 * mib);
  madvise(from.data(), from.size(), MADV_HUGEPAGE);
  madvise(to.data(), to.size(), MADV_HUGEPAGE);
  from.fill(7);
  call_memset(to.data(), 1, to.size());
  // (Waits for it, if it is deferred.)
  mprotect(to.data(), to.size(), PROT_READ | PROT_WRITE);
  const std::size_t source = huge_bytes_at(from.data()), destination = huge_bytes_at(to.data());
  for (unsigned turn = 0; turn < 2; ++turn) {  // one end and the other
    call_memcpy(to.data(), from.data(), to.size());
    EXPECT_TRUE(to.holds(7, to.size()));
    from.fill(7);
  }
  mprotect(to.data(), to.size(), PROT_READ | PROT_WRITE);  // (one mapping again)
  if (destination < huge || source < huge) GTEST_SKIP() << "the kernel gives no huge pages now";
  // (A deferred call protects its source page by page, so the huge ones at its ends are split.)
  if (!plan_is("deferred")) {
    EXPECT_EQ(huge_bytes_at(from.data()), source);
  }
  EXPECT_EQ(huge_bytes_at(to.data()), destination);
  if (samples_) {
    EXPECT_GE(sum_now().uses, before_.uses + 1);
  }
}

// Locked memory, memory of a file, and shared memory are what they would be, unsampled or not.
TEST_F(Profile, OtherMemoryIsLeftAlone) {
  const Memory from(size), locked(64 * kib);
  from.fill(8);
  if (mlock(locked.data(), locked.size()) == 0) {
    call_memcpy(locked.data(), from.data(), locked.size());
    EXPECT_TRUE(locked.holds(8, locked.size()));
  }
  void* const shared =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  call_memcpy(shared, from.data(), size);
  EXPECT_EQ(run_child([&] { CHILD_CHECK(std::memcmp(shared, from.data(), 64) == 0); }), 0);
  munmap(shared, size);
  if (samples_) {
    EXPECT_EQ(sum_now().uses, before_.uses);
  }
}

// What a child of a fork that nobody saw shares with its parent is copied, not moved.
TEST_F(Profile, AnUnseenForkHasThePages) {
  const Memory from(size), to(size);
  from.fill(9);
  call_memcpy(to.data(), from.data(), size);
  long child = SYS_fork;
  asm volatile("syscall" : "+a"(child) : : "rcx", "r11", "memory");
  if (child == 0) {
    long ends = SYS_exit;
    asm volatile("syscall" : "+a"(ends) : "D"(0) : "rcx", "r11", "memory");
  }
  EXPECT_EQ(end_of(static_cast<pid_t>(child)), 0);
  EXPECT_TRUE(to.holds(9, size));
}

// The kernel does not move a page between memory that is locked, or protected, and memory that is
// not.
TEST_F(Profile, MemoryMayBeLockedOrProtectedUnseen) {
  if (plan_is("protected")) return;  // where the kernel tells nobody
  for (int how = 0; how < 2; ++how) {
    const Memory from(size), to(size);
    from.fill(12);
    call_memcpy(to.data(), from.data(), size);
    if (how == 0) mlock(to.data(), 256 * kib);
    if (how == 1) {
      long result = SYS_mprotect;
      asm volatile("syscall"
                   : "+a"(result)
                   : "D"(to.data()), "S"(size), "d"(PROT_READ)
                   : "rcx", "r11", "memory");
      EXPECT_EQ(result, 0);
    }
    EXPECT_TRUE(to.holds(12, size)) << how;
  }
}

// A daemon closes what it did not open, and forks.
TEST_F(Profile, DescriptorsMayBeClosedBeforeAFork) {
  EXPECT_EQ(run_child([] {
              const Memory from(size), to(size);
              from.fill(13);
              call_memcpy(to.data(), from.data(), size);
              syscall(SYS_close_range, 3u, ~0u, 0u);
              const pid_t child = start_child([&] { CHILD_CHECK(to.holds(13, size)); });
              CHILD_CHECK(end_of(child) == 0);
              CHILD_CHECK(to.holds(13, size));
            }),
            0);
}

TEST_F(Profile, APartOfAHugePageMayBeGivenBackUnseen) {
  if (plan_is("protected")) return;  // where the kernel tells nobody
  constexpr std::size_t huge = 2 * mib;
  const Memory from(4 * huge), to(4 * huge);
  madvise(to.data(), to.size(), MADV_HUGEPAGE);
  from.fill(14);
  for (int turn = 0; turn < 2; ++turn) {
    call_memcpy(to.data(), from.data(), to.size());
    // In the first and in the last huge page.
    const auto first = (reinterpret_cast<std::uintptr_t>(to.data()) + huge - 1) & ~(huge - 1);
    const auto last = (reinterpret_cast<std::uintptr_t>(to.data()) + to.size()) & ~(huge - 1);
    for (const std::uintptr_t page : {first + 8 * kib, last - 64 * kib}) {
      EXPECT_EQ(drop_unseen(reinterpret_cast<void*>(page), 4096), 0);
      EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(page + 8), 0u);
      std::memcpy(reinterpret_cast<void*>(page),
                  from.data() + (page - reinterpret_cast<std::uintptr_t>(to.data())), 4096);
    }
    EXPECT_TRUE(to.holds(14, to.size()));
  }
}

TEST_F(Profile, ACloneHasThePages) {
  const Memory from(size), to(size), stack(64 * kib);
  from.fill(15);
  call_memcpy(to.data(), from.data(), size);
  const pid_t child = clone(
      [](void* memory) { return static_cast<const Memory*>(memory)->holds(15, size) ? 0 : 1; },
      stack.data() + stack.size(), SIGCHLD, const_cast<Memory*>(&to));
  EXPECT_EQ(end_of(child), 0);
  EXPECT_TRUE(to.holds(15, size));
}

TEST_F(Profile, ManyThreadsCopyAndTouch) {
  EXPECT_EQ(run_child([] {
              const auto copies = [](std::uint64_t seed) {
                const Memory from(mib);
                for (std::uint64_t turn = 0; turn < 40; ++turn) {
                  const Memory to(mib);
                  from.fill(seed + turn);
                  call_memcpy(to.data(), from.data(), mib);
                  std::thread other([&] { CHILD_CHECK(to.holds(seed + turn, mib)); });
                  CHILD_CHECK(to.holds(seed + turn, mib));
                  other.join();
                }
              };
              std::thread one(copies, 100), two(copies, 200), three(copies, 300);
              copies(400);
              one.join();
              two.join();
              three.join();
            }),
            0);
}

// auto defers where the first use is far off, in a program that has copied for a while. (Ten calls
// tell whether this user's calls are watched at all; where they are not, the test ends there.)
TEST(Auto, DefersWhereTheFirstUseIsFarOff) {
  if (!plan_is("auto")) return;
  const auto deferred = [] { return counted(&own_table(), static_cast<int>(Way::deferred)).calls; };
  const Memory from(16 * mib);
  from.fill(10);
  const std::uint64_t refused_before = refused(NotShared::no_userfault);
  const auto watches = [] { return sum_now().uses != 0; };
  copy_for_a_while();
  for (unsigned turn = 0; turn < 100 && deferred() == 0 && (turn < 10 || watches()); ++turn) {
    const Memory to(16 * mib);
    const auto begun = std::chrono::steady_clock::now();
    call_memcpy(to.data(), from.data(), to.size());
    const auto ms = (std::chrono::steady_clock::now() - begun) / std::chrono::milliseconds(1);
    pause_ms(static_cast<unsigned>(40 + 10 * ms));
    ASSERT_TRUE(to.holds(10, to.size()));
  }
  if (deferred() == 0 && sum_now().uses == 0) {
    EXPECT_EQ(refused(NotShared::no_userfault), refused_before);
    GTEST_SKIP() << "the kernel does not let this user have a userfaultfd that serves it";
  }
  EXPECT_GT(deferred(), 0u);
}

}  // namespace
}  // namespace transparent
