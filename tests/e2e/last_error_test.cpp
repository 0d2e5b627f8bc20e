// A program that links both libraries has one latest error a thread, whichever failed last.
#include <gtest/gtest.h>
#include <haul/atomic.h>
#include <haul/haul.h>

#include <string>
#include <thread>

namespace {

std::string after_atomic() {
  haul_atomic_node* node = nullptr;
  EXPECT_EQ(haul_atomic_node_open("carrier-pigeon", nullptr, &node), HAUL_EINVAL);
  return haul_last_error();
}

std::string after_haul() {
  EXPECT_EQ(haul_space_open(1, nullptr), HAUL_EINVAL);
  return haul_last_error();
}

TEST(LastError, IsOfWhicheverLibraryFailedLast) {
  EXPECT_EQ(std::string(haul_last_error()), "");
  for (int round = 0; round < 2; ++round) {
    EXPECT_NE(after_atomic().find("carrier-pigeon"), std::string::npos);
    EXPECT_NE(after_haul().find("space is NULL"), std::string::npos);
  }
  std::thread other([] { EXPECT_EQ(std::string(haul_last_error()), ""); });
  other.join();
  EXPECT_NE(std::string(haul_strerror(HAUL_EPEER)), haul_strerror(0));
}

}  // namespace
