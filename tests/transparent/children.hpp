// Children of tests that run under a preloaded library: they may be killed, and say what is wrong.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>

namespace transparent {

// In a child: the condition holds, or the child ends and its test fails.
#define CHILD_CHECK(condition)                                                                    \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      std::fprintf(stderr, "%s:%d: %.300s is false (errno %d)\n", __FILE__, __LINE__, #condition, \
                   errno);                                                                        \
      _exit(1);                                                                                   \
    }                                                                                             \
  } while (false)

// How a child ended: its exit status, or 1000 + the signal. One that takes longer is killed.
inline int end_of(pid_t child, unsigned seconds = 60) {
  int status = 0;
  const std::time_t begun = std::time(nullptr);
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return -1;
    if (std::time(nullptr) - begun > static_cast<std::time_t>(seconds)) {
      std::fprintf(stderr, "child %d hangs and is killed\n", child);
      kill(child, SIGKILL);
    }
    usleep(500);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

template <class Body>
pid_t start_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    _exit(0);
  }
  return child;
}

template <class Body>
int run_child(Body body, unsigned seconds = 60) {
  return end_of(start_child(body), seconds);
}

}  // namespace transparent
