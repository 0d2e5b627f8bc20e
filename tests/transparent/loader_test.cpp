// Calls that are made before libc's functions are known to the library, and while the loader's lock
// is held. The objects that make them are early.cpp and slow_start.cpp.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>

#include "transparent/early.hpp"
#include "transparent/support.hpp"

namespace {

using namespace transparent;

TEST(Loader, ACallInAnotherLibrarysResolverIsRight) {
  EXPECT_EQ(early_answer(), 42) << "the resolver saw wrong bytes";
}

TEST(Loader, ACallInAnotherLibrarysConstructorIsRight) {
  EXPECT_EQ(early_faults(), 0);
}

// dlopen() holds the loader's lock while a constructor runs, and this one waits for a thread that
// copies.
TEST(Loader, AThreadMayCopyWhileAConstructorWaitsForIt) {
  EXPECT_EQ(run_child(
                [] {
                  void* const object = dlopen(HAUL_TEST_SLOW_START, RTLD_NOW);
                  CHILD_CHECK(object != nullptr);
                  const auto* copied = static_cast<const int*>(dlsym(object, "slow_start_copied"));
                  CHILD_CHECK(copied != nullptr && *copied == 1);
                },
                20),
            0);
}

TEST(Loader, LibrariesMayComeAndGoAroundCopies) {
  EXPECT_EQ(run_child(
                [] {
                  std::thread busy([] {
                    for (int turn = 0; turn < 50; ++turn) copy_works();
                  });
                  for (int turn = 0; turn < 50; ++turn) {
                    void* const object = dlopen(HAUL_TEST_SLOW_START, RTLD_NOW);
                    CHILD_CHECK(object != nullptr);
                    dlclose(object);
                  }
                  busy.join();
                },
                20),
            0);
}

}  // namespace
