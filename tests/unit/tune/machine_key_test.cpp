#include "tune/machine_key.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "unit/base/temp_dir.hpp"

namespace haul::tune {
namespace {

class MachineKey : public testing::Test {
 protected:
  MachineKey() {
    dir_.write("sys/devices/system/cpu/online", "0-3\n");
    dir_.write(cache_ + "level", "3\n");
    dir_.write(cache_ + "size", "32768K\n");
    dir_.write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
  }
  std::uint64_t key() const { return compute_machine_key(dir_.path().c_str()); }

  const std::string cache_ = "sys/devices/system/cpu/cpu0/cache/index0/";
  test::TempDir dir_;
};

TEST_F(MachineKey, IsTheSameEachTime) {
  EXPECT_EQ(key(), key());
  EXPECT_NE(key(), 0u);
}

TEST_F(MachineKey, ChangesWithWhatMakesTheMachine) {
  const std::uint64_t before = key();
  dir_.write("etc/machine-id", "1123456789abcdef0123456789abcdef\n");
  const std::uint64_t other_id = key();
  EXPECT_NE(other_id, before);
  dir_.write("sys/devices/system/cpu/online", "0-4\n");
  const std::uint64_t other_count = key();
  EXPECT_NE(other_count, other_id);
  dir_.write(cache_ + "size", "16384K\n");
  EXPECT_NE(key(), other_count);
}

TEST_F(MachineKey, DoesNotChangeWithTheAffinityMask) {
  const std::uint64_t before = key();
  dir_.write("proc/self/status", "Cpus_allowed_list:\t0-1\n");
  EXPECT_EQ(key(), before);
}

TEST_F(MachineKey, MissingOrOversizedFilesStillGiveAKey) {
  test::TempDir empty;
  const std::uint64_t key_of_nothing = compute_machine_key(empty.path().c_str());
  EXPECT_NE(key_of_nothing, 0u);
  EXPECT_NE(key_of_nothing, key());
  dir_.write("etc/machine-id", std::string(100000, 'f'));
  EXPECT_NE(key(), 0u);
}

TEST(RealMachineKey, AllThreadsAgree) {
  std::vector<std::uint64_t> keys(4);
  std::vector<std::thread> threads;
  for (std::uint64_t& key : keys) threads.emplace_back([&key] { key = machine_key(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::uint64_t key : keys) EXPECT_EQ(key, compute_machine_key(""));
}

TEST(Hash, IsFnv1a) {
  // The published test vectors of 64-bit FNV-1a.
  EXPECT_EQ(hash(hash_seed, "", 0), 0xcbf29ce484222325u);
  EXPECT_EQ(hash(hash_seed, "a", 1), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash(hash_seed, "foobar", 6), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace haul::tune
