#include "base/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>

namespace haul {
namespace {

TEST(Error, EveryCodeHasAPhraseOfItsOwn) {
  std::set<std::string> phrases;
  for (int code = 0; code >= -11; --code) phrases.insert(describe(static_cast<Code>(code)));
  EXPECT_EQ(phrases.size(), 12u);
  EXPECT_EQ(phrases.count("unknown code"), 0u);
  EXPECT_STREQ(describe(static_cast<Code>(-12)), "unknown code");
  EXPECT_STREQ(describe(static_cast<Code>(1)), "unknown code");
  EXPECT_STREQ(describe(static_cast<Code>(INT_MIN)), "unknown code");
}

TEST(Error, MakeErrorFillsEveryFieldAndKeepsErrno) {
  errno = EXDEV;
  const Error error = make_error(Code::io, EIO, "cannot read %s: %s", "x", describe_errno(EIO));
  EXPECT_EQ(errno, EXDEV);
  EXPECT_EQ(error.code, Code::io);
  EXPECT_EQ(error.sys_errno, EIO);
  EXPECT_STREQ(error.sentence, "cannot read x: Input/output error");
}

TEST(Error, ALongSentenceIsCut) {
  const std::string text(1000, 'a');
  const Error error = make_error(Code::invalid, 0, "%s", text.c_str());
  EXPECT_EQ(std::string(error.sentence), std::string(Error::sentence_bytes - 1, 'a'));
}

TEST(Error, DescribeErrnoNeverGivesNull) {
  EXPECT_STREQ(describe_errno(ENOENT), "No such file or directory");
  EXPECT_STREQ(describe_errno(123456), "unknown error");
  EXPECT_STREQ(describe_errno(-1), "unknown error");
}

TEST(Error, TheLastErrorIsEachThreadsOwn) {
  set_last_error(make_error(Code::io, 0, "mine"));
  std::string others_before;
  std::string others_after;
  std::thread([&] {
    others_before = last_error_sentence();
    set_last_error(make_error(Code::io, 0, "the other's"));
    others_after = last_error_sentence();
  }).join();
  EXPECT_EQ(others_before, "");
  EXPECT_EQ(others_after, "the other's");
  EXPECT_STREQ(last_error_sentence(), "mine");
}

TEST(Error, TheLastErrorEndsEvenIfTheSentenceDoesNot) {
  Error error;
  memset(error.sentence, 'x', sizeof error.sentence);
  set_last_error(error);
  EXPECT_EQ(strlen(last_error_sentence()), Error::sentence_bytes - 1);
}

TEST(Expected, HoldsAValue) {
  Expected<std::string> expected(std::string("value"));
  ASSERT_TRUE(expected);
  EXPECT_EQ(*expected, "value");
  EXPECT_EQ(expected->size(), 5u);
  const Expected<std::string>& constant = expected;
  EXPECT_EQ(*constant, "value");
  EXPECT_EQ(constant->size(), 5u);
}

TEST(Expected, HoldsAnError) {
  const Expected<std::string> expected(make_error(Code::again, EAGAIN, "full"));
  ASSERT_FALSE(expected);
  EXPECT_EQ(expected.error().code, Code::again);
  EXPECT_EQ(expected.error().sys_errno, EAGAIN);
  EXPECT_STREQ(expected.error().sentence, "full");
}

TEST(Expected, MovesAndDestroysItsValueOnce) {
  auto counter = std::make_shared<int>(0);
  {
    Expected<std::shared_ptr<int>> first(counter);
    EXPECT_EQ(counter.use_count(), 2);
    Expected<std::shared_ptr<int>> second(std::move(first));
    EXPECT_EQ(counter.use_count(), 2);
    Expected<std::shared_ptr<int>> error(make_error(Code::io, 0, "x"));
    Expected<std::shared_ptr<int>> moved(std::move(error));
    EXPECT_FALSE(moved);
  }
  EXPECT_EQ(counter.use_count(), 1);
}

TEST(ExpectedDeathTest, TakingWhatIsNotThereTraps) {
  Expected<int> value(7);
  Expected<int> error(make_error(Code::io, 0, "x"));
  EXPECT_DEATH((void)error.value(), "");
  EXPECT_DEATH((void)value.error(), "");
}

}  // namespace
}  // namespace haul
