// Programs that restrict their own system calls, and die by one that they did not expect.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cstddef>

#include "transparent/support.hpp"

namespace {

using namespace transparent;

enum class Asked { by_prctl, by_syscall, for_all_threads };

// These alone are allowed; any other kills the process.
bool allow_little(Asked asked) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (asked == Asked::by_prctl) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
  const unsigned flags = asked == Asked::for_all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0;
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter) == 0;
}

// From the second turn on the pages are there. A child ends by exit_group(), as its destructors
// would make system calls.
void copies_without_a_word(const Memory& from, const Memory& to) {
  for (int turn = 0; turn < 3; ++turn) {
    call_memcpy(to.data(), from.data(), 4 * mib);
    if (!to.holds(5, 4 * mib)) syscall(SYS_exit_group, 1);
    call_memset(to.data(), turn, 4 * mib);
  }
}

// A mover that sleeps, or wakes for a moment to look around, makes system calls of its own.
void pass_the_time() {
  timespec begun, now;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1'000'000 < 400);
}

TEST(Filters, AProgramMayLockItselfInBeforeItsFirstCopy) {
  for (const Asked asked : {Asked::by_prctl, Asked::by_syscall, Asked::for_all_threads}) {
    EXPECT_EQ(run_child([&] {
                const Memory from(4 * mib), to(4 * mib);
                from.fill(5);
                if (!allow_little(asked)) _exit(77);
                copies_without_a_word(from, to);
                _exit(0);
              }),
              0)
        << static_cast<int>(asked);
  }
}

// The mover, too, has to keep to a filter for all threads.
TEST(Filters, AProgramMayLockItselfInAfterCopies) {
  for (const Asked asked : {Asked::by_prctl, Asked::by_syscall, Asked::for_all_threads}) {
    EXPECT_EQ(run_child([&] {
                for (int turn = 0; turn < 6; ++turn) copy_works(4 * mib);
                const Memory from(4 * mib), to(4 * mib);
                from.fill(5);
                if (!allow_little(asked)) _exit(77);
                copies_without_a_word(from, to);
                pass_the_time();
                copies_without_a_word(from, to);
                _exit(0);
              }),
              0)
        << static_cast<int>(asked);
  }
}

// There, exit() of one thread is all that is left to end a process.
TEST(Filters, StrictModeIsSurvived) {
  for (const bool by_prctl : {true, false}) {
    for (const bool copied_before : {false, true}) {
      EXPECT_EQ(run_child(
                    [&] {
                      if (copied_before) copy_works(4 * mib);
                      const Memory from(4 * mib), to(4 * mib);
                      from.fill(5);
                      const long result =
                          by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)
                                   : syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, nullptr);
                      if (result != 0) syscall(SYS_exit, 77);
                      copies_without_a_word(from, to);
                      syscall(SYS_exit, 0);
                    },
                    20),
                0);
    }
  }
}

// These two are libc's as far as a program can tell.
TEST(Filters, PrctlAndSyscallAreAsEver) {
  char name[16] = {};
  EXPECT_EQ(prctl(PR_SET_NAME, "locked-in"), 0);
  EXPECT_EQ(prctl(PR_GET_NAME, name), 0);
  EXPECT_STREQ(name, "locked-in");
  EXPECT_EQ(syscall(SYS_getpid), getpid());
  errno = 0;
  EXPECT_EQ(syscall(SYS_close, -1), -1);
  EXPECT_EQ(errno, EBADF);
  void* const at = reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, 4096, PROT_READ | PROT_WRITE,
                                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L));
  ASSERT_NE(at, MAP_FAILED) << "six arguments";
  EXPECT_EQ(munmap(at, 4096), 0);
  copy_works();
}

}  // namespace
