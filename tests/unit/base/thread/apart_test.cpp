#include "base/thread/apart.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/os/os.hpp"
#include "unit/base/temp_dir.hpp"

namespace haul::os {
namespace {

class Mounts : public testing::Test {
 protected:
  bool unkillable(const std::string& table) {
    dir_.write("mountinfo", table);
    return has_unkillable_mounts((dir_ / "mountinfo").c_str());
  }
  static std::string line(const std::string& place, const std::string& type) {
    return "36 35 98:0 / " + place + " rw,noatime master:1 - " + type + " source rw\n";
  }
  test::TempDir dir_;
};

TEST_F(Mounts, FuseAndItsKindAreKnown) {
  for (const char* type : {"fuse", "fuse.sshfs", "fuse.lxcfs", "fuseblk", "virtiofs"})
    EXPECT_TRUE(unkillable(line("/", "ext4") + line("/mnt", type))) << type;
}

TEST_F(Mounts, OthersAreNone) {
  EXPECT_FALSE(unkillable(""));
  EXPECT_FALSE(unkillable(line("/", "ext4") + line("/home", "nfs4") + line("/fuse.sshfs", "tmpfs") +
                          line("/sys/fs/fuse/connections", "fusectl")));
  EXPECT_FALSE(has_unkillable_mounts("/proc/nonexistent"));
}

// Whatever the place at which one reading of the table ends and the next begins.
TEST_F(Mounts, ATypeMayLieOnTheSeam) {
  const std::string last = line("/mnt", "fuse.sshfs");
  for (std::size_t before = 4096 - last.size() - 2; before < 4100; ++before)
    EXPECT_TRUE(unkillable(std::string(before, 'x') + last)) << before;
}

TEST(OwnDescriptors, TheProgramsAreNotInIt) {
  const int fd = open("/dev/null", O_RDONLY);
  ASSERT_GE(fd, 0);
  std::thread apart([fd] {
    if (!own_descriptors()) return;
    struct stat status {};
    EXPECT_NE(fstat(fd, &status), 0);
    EXPECT_NE(fstat(STDERR_FILENO, &status), 0);
    // One that is opened there lies above the standard streams, and is not the program's.
    char text[16];
    EXPECT_GT(read_file("/proc/self/stat", text, sizeof text), 0);
  });
  apart.join();
  struct stat status {};
  EXPECT_EQ(fstat(fd, &status), 0);
  close(fd);
}

TEST(OwnDescriptors, AFileIsWrittenThere) {
  test::TempDir dir;
  std::thread apart([&] {
    own_descriptors();
    EXPECT_EQ(write_file((dir / "deep/file").c_str(), "text", 4), 0);
  });
  apart.join();
  char text[16];
  EXPECT_EQ(read_file((dir / "deep/file").c_str(), text, sizeof text), 4);
}

constinit std::atomic<std::uint32_t> ran{0};
void note(void* argument) noexcept {
  ran.store(*static_cast<std::uint32_t*>(argument), std::memory_order_release);
  futex_wake(&ran, 1);
}
constinit std::uint32_t number = 7;
constexpr Apart noting{"haul-test", note, &number};

TEST(StartApart, TheWorkIsDone) {
  ASSERT_EQ(start_apart(noting), 0);
  for (int turn = 0; turn < 200 && ran.load() == 0; ++turn) futex_wait(&ran, 0, 100'000'000);
  EXPECT_EQ(ran.load(std::memory_order_acquire), 7u);
}

}  // namespace
}  // namespace haul::os
