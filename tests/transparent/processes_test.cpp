// fork(), vfork() and exec around large calls.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/syscall.h>

#include <string>
#include <thread>

#include "transparent/support.hpp"

namespace {

using namespace transparent;

TEST(Processes, AChildCopiesAsItsParentDoes) {
  EXPECT_EQ(run_child([] {
              CHILD_CHECK(run_child([] { copy_works(); }) == 0);
              copy_works();
              for (int turn = 0; turn < 5; ++turn) {
                CHILD_CHECK(run_child([] {
                              for (int again = 0; again < 3; ++again) copy_works(4 * mib);
                              CHILD_CHECK(run_child([] { copy_works(); }) == 0);
                            }) == 0);
                copy_works(4 * mib);
              }
            }),
            0);
}

TEST(Processes, AForkMayFallIntoOtherThreadsCopies) {
  EXPECT_EQ(run_child([] {
              static std::atomic<bool> stop{false};
              std::thread busy[2];
              for (std::thread& thread : busy)
                thread = std::thread([] {
                  while (!stop.load()) copy_works(3 * mib);
                });
              for (int turn = 0; turn < 20; ++turn)
                CHILD_CHECK(run_child([] { copy_works(); }) == 0);
              stop.store(true);
              for (std::thread& thread : busy) thread.join();
            }),
            0);
}

// Without the handlers of pthread_atfork(), and so without anything but what is safe in a handler.
TEST(Processes, AChildByTheSystemCallAloneCopies) {
  EXPECT_EQ(run_child([] {
              copy_works();
              const pid_t child = static_cast<pid_t>(syscall(SYS_fork));
              if (child == 0) {
                copy_works();
                _exit(0);
              }
              CHILD_CHECK(end_of(child) == 0);
              copy_works();
            }),
            0);
}

TEST(Processes, VforkAndExecWork) {
  EXPECT_EQ(
      run_child([] {
        copy_works();
        static const Memory from(2 * mib), to(2 * mib);
        from.fill(3);
        for (int turn = 0; turn < 10; ++turn) {
          const pid_t child = vfork();
          if (child == 0) {
            // It writes to its parent's memory.
            call_memcpy(to.data(), from.data(), 2 * mib);
            execl("/bin/true", "true", nullptr);
            _exit(2);
          }
          CHILD_CHECK(to.holds(3, 2 * mib));
          CHILD_CHECK(end_of(child) == 0);
          copy_works();
        }
        char name[] = "true";
        char* arguments[] = {name, nullptr};
        pid_t spawned = 0;
        CHILD_CHECK(posix_spawn(&spawned, "/bin/true", nullptr, nullptr, arguments, environ) == 0);
        CHILD_CHECK(end_of(spawned) == 0);
      }),
      0);
}

// Set in the new program.
constexpr const char* executed = "HAUL_TEST_EXECUTED";

TEST(Processes, TheNextProgramOfAProcessIsTakenOverToo) {
  if (std::getenv(executed) != nullptr) {
    copy_works();
    return;
  }
  EXPECT_EQ(run_child([] {
              copy_works(4 * mib);
              setenv(executed, "yes", 1);
              execl("/proc/self/exe", "self",
                    "--gtest_filter=Processes.TheNextProgramOfAProcessIsTakenOverToo", nullptr);
            }),
            0);
}

// The mover's thread, and whatever the library keeps, lets a program end however it does.
TEST(Processes, EndHoweverTheyDo) {
  EXPECT_EQ(run_child([] {
              copy_works(4 * mib);
              std::exit(3);
            }),
            3);
  EXPECT_EQ(run_child([] {
              std::thread([] { copy_works(4 * mib); }).detach();
              copy_works(4 * mib);
              std::quick_exit(4);
            }),
            4);
  EXPECT_EQ(run_child([] {
              std::atexit([] { copy_works(4 * mib); });
              copy_works(4 * mib);
              std::exit(5);
            }),
            5);
}

}  // namespace
