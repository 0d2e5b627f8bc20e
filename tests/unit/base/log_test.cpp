#include "base/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/knobs.hpp"
#include "unit/base/temp_dir.hpp"

namespace haul {
namespace {

class Log : public testing::Test {
 protected:
  Log() : level_("HAUL_LOG_LEVEL", nullptr) { reread_knobs(); }
  ~Log() override { reread_knobs(); }

  static void set_level(const char* level) {
    setenv("HAUL_LOG_LEVEL", level, 1);
    reread_knobs();
  }

  test::ScopedEnv level_;
};

std::string captured(LogLevel level, const char* text) {
  testing::internal::CaptureStderr();
  log(level, "%s", text);
  return testing::internal::GetCapturedStderr();
}

TEST_F(Log, ALineSaysWhoHowBadAndWhat) {
  EXPECT_EQ(captured(LogLevel::error, "a"), "haul: error: a\n");
  EXPECT_EQ(captured(LogLevel::warning, "b"), "haul: warning: b\n");
  set_level("debug");
  EXPECT_EQ(captured(LogLevel::info, "c"), "haul: info: c\n");
  EXPECT_EQ(captured(LogLevel::debug, "d"), "haul: debug: d\n");
}

TEST_F(Log, WarningsAreTheDefaultLimit) {
  EXPECT_TRUE(log_enabled(LogLevel::warning));
  EXPECT_FALSE(log_enabled(LogLevel::info));
  EXPECT_EQ(captured(LogLevel::info, "c"), "");
}

TEST_F(Log, TheKnobMovesTheLimit) {
  set_level("error");
  EXPECT_FALSE(log_enabled(LogLevel::warning));
  EXPECT_TRUE(log_enabled(LogLevel::error));
  EXPECT_EQ(captured(LogLevel::warning, "b"), "");
  set_level("info");
  EXPECT_TRUE(log_enabled(LogLevel::info));
  EXPECT_FALSE(log_enabled(LogLevel::debug));
}

TEST_F(Log, ControlBytesCannotBreakTheLine) {
  EXPECT_EQ(captured(LogLevel::error, "a\nb\x1b[31m\x7f\tc"), "haul: error: a?b?[31m??c\n");
  EXPECT_EQ(captured(LogLevel::error, "gr\xc3\xbc\xc3\x9f"), "haul: error: gr\xc3\xbc\xc3\x9f\n");
}

TEST_F(Log, ALongLineIsCutButEnds) {
  const std::string line = captured(LogLevel::error, std::string(5000, 'x').c_str());
  EXPECT_LT(line.size(), 1000u);
  EXPECT_GT(line.size(), 500u);
  EXPECT_EQ(line.back(), '\n');
  EXPECT_EQ(line[line.size() - 2], 'x');
}

TEST_F(Log, ErrnoStaysEvenIfStandardErrorIsClosed) {
  const int saved = dup(STDERR_FILENO);
  ASSERT_GE(saved, 0);
  close(STDERR_FILENO);
  errno = EXDEV;
  log(LogLevel::error, "nobody reads this");
  const int after = errno;
  dup2(saved, STDERR_FILENO);
  close(saved);
  EXPECT_EQ(after, EXDEV);
}

TEST_F(Log, OneLineIsOneWrite) {
  // A packet pipe keeps each write apart.
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_DIRECT | O_CLOEXEC), 0);
  const int saved = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  log(LogLevel::error, "%d and %s", 42, "text");
  dup2(saved, STDERR_FILENO);
  close(saved);
  char buffer[256];
  const ssize_t length = read(ends[0], buffer, sizeof buffer);
  close(ends[0]);
  close(ends[1]);
  ASSERT_GT(length, 0);
  EXPECT_EQ(std::string(buffer, static_cast<std::size_t>(length)), "haul: error: 42 and text\n");
}

}  // namespace
}  // namespace haul
