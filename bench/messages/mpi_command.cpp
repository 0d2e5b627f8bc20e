// Spawning with pipes, a time limit, and the one line that explains a failure.
#include "bench/messages/mpi_command.hpp"

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
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000, grace_s = 5;

// Both outputs until their ends; sends the signals when the time is over.
bool collect(pid_t pid, int out, int err, unsigned limit_s, CommandOutcome& outcome) {
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
int reap_in_time(pid_t pid) {
  int status = 0;
  for (const std::uint64_t deadline_ns = now_ns() + grace_s * second_ns; now_ns() < deadline_ns;) {
    if (waitpid(pid, &status, WNOHANG) == pid) return status;
    os::sleep_ns(second_ns / 1000);
  }
  kill(pid, SIGKILL);
  return tools::reap(pid);
}

}  // namespace

CommandOutcome run_command(const std::vector<std::string>& words,
                           const tools::Environment& environment, unsigned limit_s) {
  tools::Pipe out, err;
  CommandOutcome outcome;
  const pid_t pid = tools::Image(words, environment).spawn(out.write_end(), err.write_end());
  out.close_write_end();
  err.close_write_end();
  if (pid < 0) {
    outcome.status = 127;
    outcome.err = fmt::format("{} cannot be started; is it installed?\n", words.front());
    return outcome;
  }
  outcome.timed_out = !collect(pid, out.read_end(), err.read_end(), limit_s, outcome);
  const int status = reap_in_time(pid);
  outcome.status = tools::shell_status(status);
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
