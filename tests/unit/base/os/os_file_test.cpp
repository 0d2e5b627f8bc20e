#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/os/os.hpp"
#include "unit/base/temp_dir.hpp"

namespace haul {
namespace {

using test::TempDir;

std::string contents(const std::string& path) {
  char buffer[256];
  const ssize_t length = os::read_file(path.c_str(), buffer, sizeof buffer);
  return length < 0 ? "error" : std::string(buffer, static_cast<std::size_t>(length));
}

unsigned mode_of(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

std::size_t entries(const std::string& directory) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

TEST(ReadFile, WholeOrCut) {
  TempDir dir;
  dir.write("f", "0123456789");
  char buffer[16];
  errno = EXDEV;
  EXPECT_EQ(os::read_file((dir / "f").c_str(), buffer, sizeof buffer), 10);
  EXPECT_STREQ(buffer, "0123456789");
  EXPECT_EQ(os::read_file((dir / "f").c_str(), buffer, 5), 4);
  EXPECT_STREQ(buffer, "0123");
  EXPECT_EQ(os::read_file((dir / "f").c_str(), buffer, 1), 0);
  EXPECT_STREQ(buffer, "");
  EXPECT_EQ(os::read_file((dir / "f").c_str(), buffer, 0), -EINVAL);
  EXPECT_EQ(errno, EXDEV);
}

TEST(ReadFile, FailuresAreErrnosAndAnEmptyText) {
  TempDir dir;
  char buffer[16] = "stale";
  errno = EXDEV;
  EXPECT_EQ(os::read_file((dir / "none").c_str(), buffer, sizeof buffer), -ENOENT);
  EXPECT_STREQ(buffer, "");
  EXPECT_EQ(os::read_file(dir.path().c_str(), buffer, sizeof buffer), -EISDIR);
  EXPECT_EQ(errno, EXDEV);
}

TEST(ReadFile, AFifoDoesNotHang) {
  TempDir dir;
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  char buffer[16];
  EXPECT_EQ(os::read_file((dir / "fifo").c_str(), buffer, sizeof buffer), 0);
}

TEST(ReadFile, AnEndlessDeviceIsCut) {
  char buffer[4096];
  EXPECT_EQ(os::read_file("/dev/zero", buffer, sizeof buffer), 4095);
}

TEST(WriteFile, CreatesAndReplaces) {
  TempDir dir;
  errno = EXDEV;
  ASSERT_EQ(os::write_file((dir / "f").c_str(), "first", 5), 0);
  EXPECT_EQ(contents(dir / "f"), "first");
  EXPECT_EQ(mode_of(dir / "f"), 0600u);
  ASSERT_EQ(os::write_file((dir / "f").c_str(), "2", 1), 0);
  EXPECT_EQ(contents(dir / "f"), "2");
  ASSERT_EQ(os::write_file((dir / "f").c_str(), "", 0), 0);
  EXPECT_EQ(contents(dir / "f"), "");
  EXPECT_EQ(entries(dir.path()), 1u) << "no temporary file stays";
  EXPECT_EQ(errno, EXDEV);
}

TEST(WriteFile, MakesTwoDirectoriesAndNoMore) {
  TempDir dir;
  EXPECT_EQ(os::write_file((dir / "a/f").c_str(), "x", 1), 0);
  EXPECT_EQ(mode_of(dir / "a"), 0700u);
  EXPECT_EQ(os::write_file((dir / "b/c/f").c_str(), "x", 1), 0);
  EXPECT_EQ(mode_of(dir / "b"), 0700u);
  EXPECT_EQ(os::write_file((dir / "d/e/f/f").c_str(), "x", 1), -ENOENT);
  EXPECT_FALSE(std::filesystem::exists(dir / "d"));
}

TEST(WriteFile, ANameWithoutDirectoryGoesToTheWorkingOne) {
  TempDir dir;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  EXPECT_EQ(os::write_file("f", "x", 1), 0);
  std::filesystem::current_path(before);
  EXPECT_EQ(contents(dir / "f"), "x");
}

TEST(WriteFile, ADirectoryInItsPlaceStays) {
  TempDir dir;
  std::filesystem::create_directory(dir / "f");
  EXPECT_EQ(os::write_file((dir / "f").c_str(), "x", 1), -EISDIR);
  EXPECT_TRUE(std::filesystem::is_directory(dir / "f"));
  EXPECT_EQ(entries(dir.path()), 1u);
}

TEST(WriteFile, AFileInTheDirectorysPlaceIsAnError) {
  TempDir dir;
  dir.write("a", "");
  EXPECT_EQ(os::write_file((dir / "a/f").c_str(), "x", 1), -ENOTDIR);
}

TEST(WriteFile, ATemporaryOfAKilledProcessIsNoObstacle) {
  TempDir dir;
  dir.write("f." + std::to_string(gettid()) + ".tmp", "half");
  EXPECT_EQ(os::write_file((dir / "f").c_str(), "x", 1), 0);
  EXPECT_EQ(contents(dir / "f"), "x");
  EXPECT_EQ(entries(dir.path()), 1u);
}

TEST(WriteFile, TooLongAPathIsAnError) {
  const std::string path = "/" + std::string(5000, 'a');
  EXPECT_EQ(os::write_file(path.c_str(), "x", 1), -ENAMETOOLONG);
}

TEST(WriteFile, AFileSystemThatTakesNoFilesIsAnError) {
  EXPECT_LT(os::write_file("/proc/self/haul-test", "x", 1), 0);
}

TEST(WriteFile, ALinkIsReplacedAndWhatItNamesIsNot) {
  TempDir dir;
  dir.write("target", "old");
  ASSERT_EQ(symlink((dir / "target").c_str(), (dir / "link").c_str()), 0);
  EXPECT_EQ(os::write_file((dir / "link").c_str(), "new", 3), 0);
  EXPECT_EQ(contents(dir / "link"), "new");
  EXPECT_EQ(contents(dir / "target"), "old");
}

TEST(WriteFile, AReadOnlyDirectoryIsAnError) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes anywhere";
  TempDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 0500), 0);
  EXPECT_EQ(os::write_file((dir / "f").c_str(), "x", 1), -EACCES);
  chmod(dir.path().c_str(), 0700);
}

}  // namespace
}  // namespace haul
