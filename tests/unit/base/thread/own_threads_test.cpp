// haul's threads among a process's.
#include "base/thread/own_threads.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "base/os/os.hpp"
#include "base/sanitizer.hpp"

namespace haul {
namespace {

int end_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// In a child, as its only thread once its main thread has ended.
template <class Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child != 0) return end_of(child);
  const auto run = [](void* own) -> void* {
    // The main thread is a zombie soon.
    os::sleep_ns(100'000'000);
    _exit((*static_cast<Body*>(own))());
  };
  pthread_t thread;
  if (pthread_create(&thread, nullptr, run, &body) != 0) _exit(100);
  syscall(SYS_exit, 0);
  return -1;
}

TEST(OwnThreads, AProgramsThreadIsNone) {
  EXPECT_FALSE(os::only_own_threads());
}

TEST(OwnThreads, TheMainThreadIsNone) {
  const pid_t child = fork();
  if (child == 0) {
    os::SignalMask before;
    os::block_signals(&before);
    os::name_thread("haul-one");
    _exit(os::only_own_threads() ? 1 : 0);
  }
  EXPECT_EQ(end_of(child), 0);
}

// Ends when step is 2.
std::atomic<std::uint32_t> step{0};
void live_as(const char* name) {
  os::name_thread(name);
  step = 1;
  while (step == 1) os::sleep_ns(1'000'000);
}

TEST(OwnThreads, AreToldByTheirNames) {
  if (accesses_are_checked) GTEST_SKIP() << "a sanitizer has a thread of its own beside them";
  EXPECT_EQ(in_child([] {
              os::SignalMask before;
              os::block_signals(&before);
              os::name_thread("haul-one");
              if (!os::only_own_threads()) return 1;
              pthread_t other;
              const auto body = [](void*) -> void* {
                live_as("another");
                return nullptr;
              };
              if (os::start_thread(&other, body, nullptr) != 0) return 2;
              while (step == 0) os::sleep_ns(1'000'000);
              if (os::only_own_threads()) return 3;
              if (os::end_process_elsewhere()) return 4;
              step = 2;
              os::join_thread(other);
              return os::only_own_threads() ? 0 : 5;
            }),
            0);
}

// The threads of a program inherit its name.
TEST(OwnThreads, AreNotThoseOfAProgramCalledAsTheyAre) {
  EXPECT_EQ(in_child([] {
              pthread_t other;
              const auto body = [](void*) -> void* {
                live_as("haul-frames");
                return nullptr;
              };
              if (pthread_create(&other, nullptr, body, nullptr) != 0) return 1;
              while (step == 0) os::sleep_ns(1'000'000);
              os::SignalMask before;
              os::block_signals(&before);
              os::name_thread("haul-one");
              if (os::only_own_threads()) return 2;
              step = 2;
              os::join_thread(other);
              return 0;
            }),
            0);
}

// A program that blocks all signals, of which a thread takes one by sigwait().
TEST(OwnThreads, AreNotThoseThatInheritTheNameAndTheMaskOfMain) {
  const pid_t child = fork();
  if (child == 0) {
    os::SignalMask before;
    os::block_signals(&before);
    os::name_thread("haul-frames");
    pthread_t other;
    const auto body = [](void*) -> void* { _exit(os::only_own_threads() ? 2 : 0); };
    if (pthread_create(&other, nullptr, body, nullptr) != 0) _exit(1);
    syscall(SYS_exit, 0);
  }
  EXPECT_EQ(end_of(child), 0);
}

TEST(OwnThreads, AreNotThoughtToBeAloneWithoutDescriptorsToLook) {
  EXPECT_EQ(in_child([] {
              os::SignalMask before;
              os::block_signals(&before);
              os::name_thread("haul-one");
              const int lowest = open("/dev/null", O_RDONLY);
              close(lowest);
              rlimit limit;
              getrlimit(RLIMIT_NOFILE, &limit);
              for (const int room : {0, 1}) {
                limit.rlim_cur = static_cast<rlim_t>(lowest + room);
                if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
                if (os::only_own_threads()) return 2;
              }
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace haul
