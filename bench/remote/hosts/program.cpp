#include "bench/remote/hosts/program.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "tools/program.hpp"

namespace haul::bench {

Program::Program(const Namespace& where, int cpu, std::vector<std::string> words) {
  tools::Image image(std::move(words), {});
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  pid_ = tools::fork_process();
  if (pid_ > 0) return;
  // This is the child of a program with threads, so it may make system calls only.
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) dup2(nowhere, fd);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && setns(where.fd(), CLONE_NEWNET) == 0 &&
      sched_setaffinity(0, sizeof cpus, &cpus) == 0)
    image.execute();
  _exit(127);
}

Program::~Program() {
  tools::kill_and_reap(pid_);
}

bool Program::running() const {
  return tools::is_running(pid_);
}

}  // namespace haul::bench
