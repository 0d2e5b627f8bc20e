// Images, pipes and children.
#include "tools/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/os/os.hpp"
#include "tools/failure.hpp"

namespace haul::tools {
namespace {

constexpr const char* usual_path = "/usr/bin:/bin";

bool is_program(const std::string& file) {
  struct stat status {};
  return stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(file.c_str(), X_OK) == 0;
}

// The array of pointers that exec wants, ended by a null pointer.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> changed_environment(const Environment& changes) {
  std::vector<std::string> all;
  for (const auto& [name, value] : changes) all.push_back(fmt::format("{}={}", name, value));
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    const std::string_view name = text.substr(0, text.find('='));
    const bool changed = std::any_of(changes.begin(), changes.end(),
                                     [&](const auto& change) { return change.first == name; });
    if (!changed) all.emplace_back(text);
  }
  return all;
}

std::string path_of(const std::vector<std::string>& environment) {
  for (const std::string& variable : environment) {
    if (variable.starts_with("PATH=")) return variable.substr(5);
  }
  return usual_path;
}

// The errno of the child's failed exec; 0 if exec worked.
int exec_error(Pipe& report) {
  report.close_write_end();
  int error = 0;
  ssize_t got;
  do {
    got = read(report.read_end(), &error, sizeof error);
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
  return find_program(name, path == nullptr ? usual_path : path);
}

Image::Image(std::vector<std::string> command, const Environment& changes)
    : command_(std::move(command)),
      environment_(changed_environment(changes)),
      arguments_(pointers_to(command_)),
      variables_(pointers_to(environment_)),
      file_(find_program(command_.front(), path_of(environment_))) {}

int Image::execute() {
  if (file_.empty()) return ENOENT;
  execve(file_.c_str(), arguments_.data(), variables_.data());
  return errno;
}

pid_t Image::spawn(int out, int err) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  const int outputs[] = {out, err};
  for (int i = 0; i < 2; ++i) {
    if (outputs[i] == nowhere)
      posix_spawn_file_actions_addopen(&files, i + 1, "/dev/null", O_WRONLY, 0);
    else if (outputs[i] != inherited)
      posix_spawn_file_actions_adddup2(&files, outputs[i], i + 1);
  }
  os::unpin_thread();
  pid_t pid = -1;
  errno = file_.empty() ? ENOENT
                        : posix_spawn(&pid, file_.c_str(), &files, nullptr, arguments_.data(),
                                      variables_.data());
  posix_spawn_file_actions_destroy(&files);
  return errno == 0 ? pid : -1;
}

Pipe::Pipe() {
  int low[2] = {-1, -1};
  if (pipe2(low, O_CLOEXEC) == 0) {
    for (int end = 0; end < 2; ++end) ends_[end] = fcntl(low[end], F_DUPFD_CLOEXEC, 3);
  }
  const int why = errno;
  os::close_fd(low[0]);
  os::close_fd(low[1]);
  if (ends_[0] >= 0 && ends_[1] >= 0) return;
  close_end(0);
  close_end(1);
  throw CommandFailure(fmt::format(
      "cannot make a pipe ({}); close programs or raise the limit of open files (ulimit -n)",
      std::strerror(why)));
}

Pipe::~Pipe() {
  close_end(0);
  close_end(1);
}

void Pipe::close_end(int end) {
  os::close_fd(ends_[end]);
  ends_[end] = -1;
}

pid_t fork_process() {
  const pid_t pid = fork();
  if (pid < 0) {
    throw CommandFailure(
        fmt::format("cannot start a process ({}); close programs or raise the limit of processes "
                    "(ulimit -u)",
                    std::strerror(errno)));
  }
  return pid;
}

pid_t start_program(const std::vector<std::string>& command, const Environment& environment,
                    const sigset_t* signals) {
  Image image(command, environment);
  Pipe report;
  const pid_t parent = getpid();
  const pid_t pid = fork_process();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);  // the parent died before this child could watch it
    if (signals != nullptr) sigprocmask(SIG_SETMASK, signals, nullptr);
    const int error = image.execute();
    (void)!write(report.write_end(), &error, sizeof error);
    _exit(127);
  }
  const int error = exec_error(report);
  if (error == 0) return pid;
  reap(pid);
  throw CommandFailure(fmt::format("cannot start {} ({}); check that it can be run by itself",
                                   command.front(), std::strerror(error)));
}

bool is_running(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

int reap(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void kill_and_reap(pid_t child) {
  kill(child, SIGKILL);
  reap(child);
}

int shell_status(int wait_status) {
  if (WIFEXITED(wait_status)) return WEXITSTATUS(wait_status);
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : 1;
}

}  // namespace haul::tools
