// The program runs itself again under libhaul-malloc.so, so that it needs no environment.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  constexpr const char* mark = "HAUL_TEST_BORN";
  if (std::getenv(mark) == nullptr) {
    setenv(mark, "1", 1);
    setenv("LD_PRELOAD", HAUL_MALLOC_LIBRARY, 1);
    execv("/proc/self/exe", argv);
    std::perror("execv");
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
