#include "bench/program.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "bench/failure.hpp"

namespace haul::bench {

Program::Program(const Namespace& where, int cpu, std::vector<std::string> words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  pid_ = fork();
  if (pid_ < 0) throw Failure("no process could be started; raise ulimit -u");
  if (pid_ > 0) return;
  // The child of a program with threads: system calls alone.
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) dup2(nowhere, fd);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && setns(where.fd(), CLONE_NEWNET) == 0 &&
      sched_setaffinity(0, sizeof cpus, &cpus) == 0)
    execvp(argv[0], argv.data());
  _exit(127);
}

Program::~Program() {
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Program::running() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

bool is_installed(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    folder.append("/").append(name);
    if (access(folder.c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace haul::bench
