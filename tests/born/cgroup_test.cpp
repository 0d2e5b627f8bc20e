// A memory cgroup: born-shared memory is charged to it as malloc's own is, and given back.
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "born/support.hpp"
#include "cgroup.hpp"

namespace {

using namespace born;

constexpr std::size_t limit = 96 * mib;

struct MemoryGroup : Cgroup {
  MemoryGroup()
      : Cgroup("memory", {{"memory.limit_in_bytes", std::to_string(limit)}},
               {{"memory.max", std::to_string(limit)}, {"memory.swap.max", "0"}}) {}
  long long used() const {
    const long long first = number("memory.usage_in_bytes");
    return first >= 0 ? first : number("memory.current");
  }
};

// Each test has a process of its own: once a process has shared memory, its children share none.
class BornCgroup : public testing::Test {
 protected:
  void SetUp() override {
    if (!group_) GTEST_SKIP() << "no memory cgroup can be made here";
  }
  // In that process; elsewhere the test is run there first.
  static bool is_here() {
    constexpr const char* name = "HAUL_TEST_BORN_CGROUP";
    if (std::getenv(name) != nullptr) return true;
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    const std::string filter = std::string("--gtest_filter=BornCgroup.") + test.name();
    EXPECT_EQ(run_child(
                  [&] {
                    setenv(name, "1", 1);
                    execl("/proc/self/exe", "born", filter.c_str(), "--gtest_brief=1", nullptr);
                    _exit(127);
                  },
                  60),
              0);
    return false;
  }
  const MemoryGroup group_;
};

unsigned char* filled(std::size_t bytes, unsigned char value) {
  auto* const block = static_cast<unsigned char*>(kept(std::malloc(bytes)));
  CHILD_CHECK(block != nullptr);
  std::memset(block, value, bytes);
  return block;
}

TEST_F(BornCgroup, WhatIsFreedMakesRoom) {
  if (!is_here()) return;
  EXPECT_EQ(run_child([&] {
              CHILD_CHECK(group_.join());
              // Of changing sizes, so that none serves the next as it is.
              for (unsigned char turn = 1; turn <= 24; ++turn) {
                const std::size_t bytes = (32 + turn * 7 % 33) * mib + turn * 4096u;
                unsigned char* const block = filled(bytes, turn);
                if (turn == 1) CHILD_CHECK(is_shared(block, bytes));
                CHILD_CHECK(all_are(block, bytes, turn));
                std::free(block);
              }
            }),
            0);
  EXPECT_LT(group_.used(), static_cast<long long>(8 * mib))
      << "the group pays for an ended process";
}

TEST_F(BornCgroup, ManyBlocksThatAreFreedMakeRoomForOne) {
  if (!is_here()) return;
  EXPECT_EQ(run_child([&] {
              CHILD_CHECK(group_.join());
              for (unsigned char turn = 1; turn <= 4; ++turn) {
                std::vector<unsigned char*> blocks;
                for (int i = 0; i < 35; ++i) blocks.push_back(filled(2 * mib, turn));
                for (unsigned char* block : blocks) std::free(block);
                unsigned char* const large = filled(70 * mib, turn);
                CHILD_CHECK(all_are(large, 70 * mib, turn));
                std::free(large);
              }
            }),
            0);
}

TEST_F(BornCgroup, WhoWantsMoreIsKilledAsWithMallocsOwn) {
  if (!is_here()) return;
  EXPECT_EQ(run_child([&] {
              CHILD_CHECK(group_.join());
              for (int i = 0; i < 8; ++i) CHILD_CHECK(is_shared(filled(24 * mib, 1)));
            }),
            1000 + SIGKILL);
  EXPECT_LT(group_.used(), static_cast<long long>(8 * mib)) << "the dead's memory is still charged";
  // Who is not in the group goes on.
  unsigned char* const block = filled(limit * 2, 3);
  EXPECT_TRUE(all_are(block, limit * 2, 3));
  std::free(block);
}

TEST_F(BornCgroup, AChildOfForkHasItsCopyWhereBothFit) {
  if (!is_here()) return;
  EXPECT_EQ(run_child([&] {
              CHILD_CHECK(group_.join());
              constexpr std::size_t bytes = 32 * mib;
              unsigned char* const block = filled(bytes, 5);
              CHILD_CHECK(is_shared(block, bytes));
              for (int turn = 0; turn < 5; ++turn) {  // each child's copy is given back
                CHILD_CHECK(run_child([&] {
                              CHILD_CHECK(all_are(block, bytes, 5));
                              std::memset(block, 6, bytes);
                            }) == 0);
                CHILD_CHECK(all_are(block, bytes, 5));
              }
            }),
            0);
}

}  // namespace
