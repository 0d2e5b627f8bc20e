#include "cli/run_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "bench/failure.hpp"

namespace haul::cli {
namespace {

bool is_program(const std::string& file) {
  struct stat status {};
  return stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(file.c_str(), X_OK) == 0;
}

// The arguments and the environment as execve() takes them. Made before fork(), so that the child
// allocates nothing.
class Image {
 public:
  Image(const std::vector<std::string>& command, const Environment& changes) : command_(command) {
    for (char** one = environ; *one != nullptr; ++one) {
      const std::string text = *one;
      const std::string name = text.substr(0, text.find('='));
      bool changed = false;
      for (const auto& change : changes) changed = changed || change.first == name;
      if (!changed) environment_.push_back(text);
    }
    for (const auto& [name, value] : changes) {
      environment_.push_back(fmt::format("{}={}", name, value));
    }
    for (std::string& one : command_) arguments_.push_back(one.data());
    for (std::string& one : environment_) variables_.push_back(one.data());
    arguments_.push_back(nullptr);
    variables_.push_back(nullptr);
    file_ = find_program(command_.front());
  }
  int execute() {
    if (file_.empty()) {
      errno = ENOENT;
    } else {
      execve(file_.c_str(), arguments_.data(), variables_.data());
    }
    return errno;
  }

 private:
  std::vector<std::string> command_, environment_;
  std::vector<char*> arguments_, variables_;
  std::string file_;
};

// Tells the parent through `report` why the program could not be started; never returns.
[[noreturn]] void execute_or_tell(Image& image, int report) {
  const int error = image.execute();
  (void)!write(report, &error, sizeof error);
  _exit(127);
}

// A pipe that exec closes.
struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw bench::Failure(fmt::format(
          "cannot make a pipe ({}); close programs or raise the limit of open files (ulimit -n)",
          std::strerror(errno)));
    }
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(int end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
};

pid_t fork_or_fail() {
  const pid_t pid = fork();
  if (pid < 0) {
    throw bench::Failure(
        fmt::format("cannot start a process ({}); close programs or raise the limit of processes "
                    "(ulimit -u)",
                    std::strerror(errno)));
  }
  return pid;
}

// The errno of the child's exec; 0 if it worked.
int exec_error(Pipe& report) {
  report.close_end(1);
  int error = 0;
  ssize_t got;
  do {
    got = read(report.ends[0], &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  return got == sizeof error ? error : 0;
}

}  // namespace

std::string find_program(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  std::size_t at = 0;
  while (!name.empty() && at <= path.size()) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string directory = end == at ? "." : path.substr(at, end - at);
    std::string file = fmt::format("{}/{}", directory, name);
    if (is_program(file)) return file;
    at = end + 1;
  }
  return "";
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  return find_program(name, path == nullptr ? "/usr/bin:/bin" : path);
}

int become(const std::vector<std::string>& command, const Environment& environment) {
  return Image(command, environment).execute();
}

pid_t start_program(const std::vector<std::string>& command, const Environment& environment,
                    const sigset_t* signals) {
  Image image(command, environment);
  Pipe report;
  const pid_t parent = getpid();
  const pid_t pid = fork_or_fail();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);  // it died before it was watched
    if (signals != nullptr) sigprocmask(SIG_SETMASK, signals, nullptr);
    execute_or_tell(image, report.ends[1]);
  }
  const int error = exec_error(report);
  if (error == 0) return pid;
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  throw bench::Failure(fmt::format("cannot start {} ({}); check that it can be run by itself",
                                   command.front(), std::strerror(error)));
}

int shell_status(int wait_status) {
  if (WIFEXITED(wait_status)) return WEXITSTATUS(wait_status);
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : 1;
}

}  // namespace haul::cli
