#include "base/thread/aide.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

#include "base/os/os.hpp"
#include "base/sanitizer.hpp"

namespace {

// Runs once, at the next time that a thread's mask is put back: amid make_aide(), when its thread
// has just been created.
using Step = void (*)();
constinit Step amid_making = nullptr;

}  // namespace

// In place of the C library's.
extern "C" int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  if (how == SIG_SETMASK && amid_making != nullptr) std::exchange(amid_making, nullptr)();
  return sigprocmask(how, set, before) == 0 ? 0 : errno;
}

namespace haul::os {
namespace {

constexpr std::uint64_t slice_ns = 100'000'000;

struct Work {
  std::atomic<std::uint32_t> begun{0}, may_end{0};
};

// Stays: its aide may look at it for a moment longer than the test.
Work& made() {
  return *new Work;
}

void do_work(void* argument) noexcept {
  Work& work = *static_cast<Work*>(argument);
  work.begun.store(1);
  futex_wake(&work.begun, 1);
  while (work.may_end.load() == 0) futex_wait(&work.may_end, 0, slice_ns);
}

void let_end(Work& work) {
  work.may_end.store(1);
  futex_wake(&work.may_end, 1);
}

void await_begin(Work& work) {
  while (work.begun.load() == 0) futex_wait(&work.begun, 0, slice_ns);
}

// Asks until it has ended what it was at.
int ask_patiently(Aide which, Work& work) {
  for (;;) {
    const int refused = ask_aide(which, do_work, &work);
    if (refused != -EBUSY) return refused;
    sleep_ns(100'000);
  }
}

// Each in a process of its own, which ends with its aides.
template <class Body>
void in_a_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Aide, WhereThereIsNoneNobodyDoesIt) {
  in_a_child([] {
    Work& work = made();
    EXPECT_EQ(ask_aide(Aide::tune, do_work, &work), -ESRCH);
    EXPECT_EQ(make_aide(Aide::files), 0);
    EXPECT_EQ(ask_aide(Aide::tune, do_work, &work), -ESRCH);
  });
}

TEST(Aide, DoesOnePieceOfWorkAfterTheOther) {
  in_a_child([] {
    ASSERT_EQ(make_aide(Aide::tune), 0);
    for (int turn = 0; turn < 100; ++turn) {
      Work &work = made(), &other = made();
      ASSERT_EQ(ask_patiently(Aide::tune, work), 0);
      EXPECT_EQ(ask_aide(Aide::tune, do_work, &other), -EBUSY);
      await_begin(work);
      EXPECT_EQ(make_aide(Aide::tune), 0);  // it is there
      let_end(work);
      Work& last = made();
      last.may_end.store(1);
      ASSERT_EQ(ask_patiently(Aide::tune, last), 0);  // so the former one is at rest
      await_begin(last);
      EXPECT_EQ(other.begun.load(), 0u);
    }
  });
}

TEST(Aide, ADismissedOneEndsWhenItsWorkIsDone) {
  in_a_child([] {
    for (int turn = 0; turn < 20; ++turn) {
      ASSERT_EQ(make_aide(Aide::distance), 0);
      Work& work = made();
      ASSERT_EQ(ask_aide(Aide::distance, do_work, &work), 0);
      await_begin(work);
      dismiss_aides();
      EXPECT_EQ(ask_aide(Aide::distance, do_work, &work), -EBUSY);
      let_end(work);
      while (ask_aide(Aide::distance, do_work, &work) == -EBUSY) sleep_ns(100'000);
      // It had been asked again in the instant before it ended, or it is gone.
      for (int refused = 0; refused != -ESRCH;) {
        refused = ask_aide(Aide::distance, do_work, &work);
        sleep_ns(100'000);
      }
    }
  });
}

TEST(Aide, OneThatIsMadeAgainStays) {
  in_a_child([] {
    ASSERT_EQ(make_aide(Aide::files), 0);
    Work& work = made();
    ASSERT_EQ(ask_aide(Aide::files, do_work, &work), 0);
    await_begin(work);
    dismiss_aides();
    ASSERT_EQ(make_aide(Aide::files), 0);
    let_end(work);
    Work& next = made();
    next.may_end.store(1);
    EXPECT_EQ(ask_patiently(Aide::files, next), 0);
    await_begin(next);
  });
}

// By name: a sanitizer's runtime may have a thread, too.
bool there_is_a_thread(const std::string& name) {
  bool found = false;
  DIR* const threads = opendir("/proc/self/task");
  while (const dirent* entry = readdir(threads)) {
    std::ifstream file("/proc/self/task/" + std::string(entry->d_name) + "/comm");
    std::string line;
    found = found || (std::getline(file, line) && line == name);
  }
  closedir(threads);
  return found;
}

TEST(Aide, OneThatIsDismissedWhileItIsMadeEnds) {
  in_a_child([] {
    amid_making = [] {
      dismiss_aides();
      sleep_ns(50'000'000);  // it has seen that by now, mostly; the test holds either way
    };
    ASSERT_EQ(make_aide(Aide::tune), 0);
    EXPECT_EQ(amid_making, nullptr);
    while (there_is_a_thread("haul-tune")) sleep_ns(1'000'000);
  });
}

volatile sig_atomic_t in_handlers_child = 0;

void fork_in_handler(int) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    in_handlers_child = 1;
    alarm(20);
    forget_aides();  // as haul's own fork handler does
    return;
  }
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Aide, TheChildOfAHandlerThatForksAmidTheMakingCanMakeOne) {
  if (accesses_are_checked)
    GTEST_SKIP() << "a sanitizer bears no threads in the child of such a process";
  in_a_child([] {
    signal(SIGUSR1, fork_in_handler);
    amid_making = [] { raise(SIGUSR1); };
    ASSERT_EQ(make_aide(Aide::tune), 0);
    EXPECT_EQ(amid_making, nullptr);
    if (in_handlers_child == 0) return;
    Work& work = made();
    work.may_end.store(1);
    EXPECT_EQ(make_aide(Aide::tune), 0);
    EXPECT_EQ(ask_patiently(Aide::tune, work), 0);
    await_begin(work);
  });
}

TEST(Aide, AForksChildHasNone) {
  if (accesses_are_checked)
    GTEST_SKIP() << "a sanitizer bears no threads in the child of such a process";
  in_a_child([] {
    ASSERT_EQ(make_aide(Aide::tune), 0);
    in_a_child([] {
      forget_aides();
      Work& work = made();
      EXPECT_EQ(ask_aide(Aide::tune, do_work, &work), -ESRCH);
      work.may_end.store(1);
      ASSERT_EQ(make_aide(Aide::tune), 0);
      EXPECT_EQ(ask_aide(Aide::tune, do_work, &work), 0);
      await_begin(work);
    });
  });
}

}  // namespace
}  // namespace haul::os
