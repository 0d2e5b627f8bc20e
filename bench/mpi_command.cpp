// Spawning with pipes, a time limit, and the one line that explains a failure.
#include "bench/mpi_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "base/clock.hpp"
#include "base/os.hpp"
#include "bench/failure.hpp"

namespace haul::bench {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000, grace_s = 5;

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0)
      throw Failure("no pipe can be had for a program's output; raise ulimit -n");
  }
  ~Pipe() {
    os::close_fd(ends_[0]);
    os::close_fd(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write_end() {
    os::close_fd(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

std::vector<std::string> merged(const Environment& environment) {
  std::vector<std::string> all;
  for (const auto& [name, value] : environment) all.push_back(fmt::format("{}={}", name, value));
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    bool replaced = false;
    for (const auto& [name, value] : environment) replaced |= text.starts_with(name + "=");
    if (!replaced) all.emplace_back(text);
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// posix_spawnp() would look in this process's PATH.
std::string find_program(const std::string& name, const std::vector<std::string>& environment) {
  if (name.find('/') != std::string::npos) return name;
  for (const std::string& variable : environment) {
    if (!variable.starts_with("PATH=")) continue;
    std::istringstream folders(variable.substr(5));
    for (std::string folder; std::getline(folders, folder, ':');) {
      std::string path = fmt::format("{}/{}", folder, name);
      if (access(path.c_str(), X_OK) == 0) return path;
    }
    break;
  }
  return name;
}

pid_t spawn(std::vector<std::string> words, const Environment& environment, int out, int err) {
  std::vector<std::string> variables = merged(environment);
  const std::string path = find_program(words.front(), variables);
  std::vector<char*> argv = pointers_to(words), envp = pointers_to(variables);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out, 1);
  posix_spawn_file_actions_adddup2(&files, err, 2);
  os::unpin_thread();  // children inherit the mask; this process only waits
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, path.c_str(), &files, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&files);
  return failed == 0 ? pid : -1;
}

// Both outputs until their ends; sends the signals when the time is over.
bool collect(pid_t pid, int out, int err, unsigned limit_s, Outcome& outcome) {
  std::array<pollfd, 2> ends{pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  const std::array<std::string*, 2> texts{&outcome.out, &outcome.err};
  std::uint64_t deadline_ns = now_ns() + limit_s * second_ns;
  bool in_time = true;
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) {
      kill(pid, in_time ? SIGTERM : SIGKILL);
      if (!in_time) break;  // who still holds the pipes is not ours
      in_time = false;
      deadline_ns = now + grace_s * second_ns;
    }
    const int wait_ms = static_cast<int>((deadline_ns - now) / 1'000'000) + 1;
    if (poll(ends.data(), ends.size(), wait_ms) < 0 && errno != EINTR) break;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      std::array<char, 4096> buffer{};
      const ssize_t got = read(ends[i].fd, buffer.data(), buffer.size());
      if (got > 0) texts[i]->append(buffer.data(), static_cast<std::size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR)) ends[i].fd = -1;
    }
  }
  return in_time;
}

// Its outputs have ended, so it is about to end, too; it is not waited for without a limit.
int reap(pid_t pid) {
  int status = 0;
  for (const std::uint64_t deadline_ns = now_ns() + grace_s * second_ns; now_ns() < deadline_ns;) {
    if (waitpid(pid, &status, WNOHANG) == pid) return status;
    os::sleep_ns(second_ns / 1000);
  }
  kill(pid, SIGKILL);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

Outcome run_command(const std::vector<std::string>& words, const Environment& environment,
                    unsigned limit_s) {
  Pipe out, err;
  Outcome outcome;
  const pid_t pid = spawn(words, environment, out.write_end(), err.write_end());
  out.close_write_end();
  err.close_write_end();
  if (pid < 0) {
    outcome.status = 127;
    outcome.err = fmt::format("{} cannot be started; is it installed?\n", words.front());
    return outcome;
  }
  outcome.timed_out = !collect(pid, out.read_end(), err.read_end(), limit_s, outcome);
  const int status = reap(pid);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

std::string reason_of(const Outcome& outcome) {
  if (outcome.timed_out)
    return "it did not end in time; is the machine busy? Ask for fewer sizes or ranks";
  std::string own, first;
  std::istringstream lines(outcome.err + "\n" + outcome.out);
  for (std::string line; std::getline(lines, line);) {
    std::erase_if(line, [](unsigned char c) { return c < ' ' || c > '~'; });
    const std::size_t at = line.find("error: ");
    if (at != std::string::npos && own.empty()) own = line.substr(at + 7);
    if (first.empty() && line.find_first_not_of(" -=*") != std::string::npos) first = line;
  }
  if (!own.empty()) return own;
  if (!first.empty()) return first;
  return fmt::format("it ended with status {} and no message", outcome.status);
}

}  // namespace haul::bench
