// Each program's cases run once under each plan of the library, in a process of its own.
#include <gtest/gtest.h>

#include "transparent/support.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (transparent::under_preload()) {
    transparent::taken_over();  // finds the table, before children look for their own
    return RUN_ALL_TESTS();
  }
  // (GoogleTest has taken its arguments; the new process gets them by the environment.)
  if (!testing::GTEST_FLAG(filter).empty())
    setenv("GTEST_FILTER", testing::GTEST_FLAG(filter).c_str(), 1);
  if (testing::GTEST_FLAG(brief)) setenv("GTEST_BRIEF", "1", 1);
  int worst = 0;
  for (const char* plan :
       {"auto", "libc", "caller", "together", "deferred", "profile", "protected"}) {
    std::printf("plan %s\n", plan);
    const int status = transparent::run_under(plan, argv);
    if (status != 0) {
      std::printf("under plan %s: exit status %d\n", plan, status);
      worst = status;
    }
  }
  return worst;
}
