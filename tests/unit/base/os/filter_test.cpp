// Filters that kill and filters that refuse, each in a child of its own.
#include "base/os/filter.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>

namespace haul {
namespace {

enum class Answer : int { refuses = 10, kills = 11, no_filter = 12 };

// Allows what kernels have, and does `action` to the rest.
bool install(std::uint32_t action) {
  constexpr std::uint32_t first_unknown = 0x1000;
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first_unknown, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// What a process says of itself under such a filter.
int answer_under(std::uint32_t action) {
  const pid_t child = fork();
  if (child == 0) {
    if (!install(action)) _exit(static_cast<int>(Answer::no_filter));
    _exit(static_cast<int>(os::filter_kills() ? Answer::kills : Answer::refuses));
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Filter, ThereIsNone) {
  EXPECT_FALSE(os::filter_kills()) << "(or the tests themselves run under one)";
}

TEST(Filter, OneThatKillsIsToldFromOneThatRefuses) {
#if defined(__SANITIZE_THREAD__) && defined(__clang__)
  GTEST_SKIP() << "ThreadSanitizer of Clang 14 takes a clone() that shares memory for a fork";
#endif
  const int killed = answer_under(SECCOMP_RET_KILL_PROCESS);
  if (killed == static_cast<int>(Answer::no_filter))
    GTEST_SKIP() << "system call filters are refused here";
  EXPECT_EQ(killed, static_cast<int>(Answer::kills));
  EXPECT_EQ(answer_under(SECCOMP_RET_KILL_THREAD), static_cast<int>(Answer::kills));
  EXPECT_EQ(answer_under(SECCOMP_RET_ERRNO | 1), static_cast<int>(Answer::refuses));
}

}  // namespace
}  // namespace haul
