// Spawning with pipes, a time limit, and the one line that explains a failure.
#include "bench/kit/command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000, grace_s = 5;

// Reads both outputs to their ends; sends the signals when the time is over.
bool collect(pid_t pid, int out, int err, unsigned limit_s, CommandOutcome& outcome) {
  std::array<pollfd, 2> ends{pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  const std::array<std::string*, 2> texts{&outcome.out, &outcome.err};
  std::uint64_t deadline_ns = now_ns() + limit_s * second_ns;
  bool in_time = true;
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) {
      kill(pid, in_time ? SIGTERM : SIGKILL);
      if (!in_time) break;  // other processes still hold the pipes, and they are not ours to kill
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

double ns_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
}

// Its outputs have ended, so the process is about to end too; but it is not waited for without a
// limit. The first sleeps are short, since they count as its time.
void reap_in_time(pid_t pid, CommandOutcome& outcome) {
  constexpr std::uint64_t first_sleep_ns = 20'000, longest_sleep_ns = 1'000'000;
  int status = 0;
  rusage used{};
  std::uint64_t sleep_ns = first_sleep_ns;
  pid_t found = 0;
  for (const std::uint64_t deadline_ns = now_ns() + grace_s * second_ns; now_ns() < deadline_ns;) {
    if ((found = wait4(pid, &status, WNOHANG, &used)) == pid) break;
    os::sleep_ns(sleep_ns);
    sleep_ns = std::min(2 * sleep_ns, longest_sleep_ns);
  }
  if (found != pid) {
    kill(pid, SIGKILL);
    while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR) {
    }
  }
  outcome.status = tools::shell_status(status);
  outcome.cpu_ns = ns_of(used.ru_utime) + ns_of(used.ru_stime);
  outcome.peak_bytes = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
}

}  // namespace

CommandOutcome run_command(const std::vector<std::string>& words,
                           const tools::Environment& environment, unsigned limit_s) {
  tools::Pipe out, err;
  CommandOutcome outcome;
  const std::uint64_t begun = now_ns();
  const pid_t pid = tools::Image(words, environment).spawn(out.write_end(), err.write_end());
  out.close_write_end();
  err.close_write_end();
  if (pid < 0) {
    outcome.status = 127;
    outcome.err = fmt::format("{} cannot be started; is it installed?\n", words.front());
    return outcome;
  }
  outcome.timed_out = !collect(pid, out.read_end(), err.read_end(), limit_s, outcome);
  reap_in_time(pid, outcome);
  outcome.wall_ns = static_cast<double>(now_ns() - begun);
  return outcome;
}

std::string reason_of(const CommandOutcome& outcome) {
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
