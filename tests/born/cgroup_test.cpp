// A memory cgroup: born-shared memory is charged to it as malloc's own is, and given back.
#include <cstdlib>
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

#define SKIP_WITHOUT(group) \
  if (!(group)) GTEST_SKIP() << "no memory cgroup can be made here"

unsigned char* filled(std::size_t bytes, unsigned char value) {
  auto* const block = static_cast<unsigned char*>(kept(std::malloc(bytes)));
  CHILD_CHECK(block != nullptr);
  std::memset(block, value, bytes);
  return block;
}

TEST(BornCgroup, WhatIsFreedMakesRoom) {
  const MemoryGroup group;
  SKIP_WITHOUT(group);
  EXPECT_EQ(run_child([&] {
              CHILD_CHECK(group.join());
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
  EXPECT_LT(group.used(), static_cast<long long>(8 * mib)) << "the group pays for an ended process";
}

TEST(BornCgroup, ManyBlocksThatAreFreedMakeRoomForOne) {
  const MemoryGroup group;
  SKIP_WITHOUT(group);
  EXPECT_EQ(run_child([&] {
              CHILD_CHECK(group.join());
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

TEST(BornCgroup, WhoWantsMoreIsKilledAsWithMallocsOwn) {
  const MemoryGroup group;
  SKIP_WITHOUT(group);
  EXPECT_EQ(run_child([&] {
              CHILD_CHECK(group.join());
              for (int i = 0; i < 8; ++i) filled(24 * mib, 1);
            }),
            1000 + SIGKILL);
  EXPECT_LT(group.used(), static_cast<long long>(8 * mib)) << "the dead's memory is still charged";
  // Who is not in the group goes on.
  unsigned char* const block = filled(limit * 2, 3);
  EXPECT_TRUE(all_are(block, limit * 2, 3));
  std::free(block);
}

TEST(BornCgroup, AChildOfForkHasItsCopyWhereBothFit) {
  const MemoryGroup group;
  SKIP_WITHOUT(group);
  EXPECT_EQ(run_child([&] {
              CHILD_CHECK(group.join());
              constexpr std::size_t bytes = 32 * mib;
              unsigned char* const block = filled(bytes, 5);
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
