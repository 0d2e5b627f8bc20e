// Two forks, a new session, and a pipe through which a failed start is told.
#include "cli/daemon.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "bench/failure.hpp"

namespace haul::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(10);
constexpr int poll_ms = 10;

bench::Failure cannot(const char* what) {
  return bench::Failure(
      fmt::format("cannot {} ({}); raise the limit (ulimit -u, -n), or leave out "
                  "--daemon and put it into the background yourself",
                  what, std::strerror(errno)));
}

void leave_everything(int keep) {
  if (chdir("/") != 0) _exit(1);
  const int null = open("/dev/null", O_RDWR);
  if (null < 0) _exit(1);
  for (int stream = 0; stream <= 2; ++stream) {
    if (null != stream) dup2(null, stream);
  }
  const auto kept = static_cast<unsigned>(keep);
  if (kept > 3) close_range(3, kept - 1, 0);
  close_range(kept + 1, ~0u, 0);
}

[[noreturn]] void be_the_service(const std::function<void()>& work, int report) {
  leave_everything(report);
  signal(SIGPIPE, SIG_IGN);
  int status = 0;
  try {
    work();
  } catch (const std::exception& failure) {
    const std::string sentence = failure.what();
    // Nobody reads once the start has succeeded.
    if (write(report, sentence.data(), sentence.size()) < 0) status = 1;
    status = 1;
  }
  std::_Exit(status);
}

// What came through the pipe: "" while nothing has; the writer's end counts as news too.
bool heard(int fd, std::string* sentence) {
  pollfd entry{fd, POLLIN, 0};
  if (poll(&entry, 1, poll_ms) <= 0) return false;
  char text[1024];
  for (;;) {
    const ssize_t bytes = read(fd, text, sizeof text);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return true;
    sentence->append(text, static_cast<std::size_t>(bytes));
  }
}

}  // namespace

void run_detached(const std::function<void()>& work, const std::function<bool()>& ready) {
  // Above the standard streams even where those are closed.
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw cannot("make a pipe");
  const int read_end = fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
  const int write_end = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
  close(ends[0]);
  close(ends[1]);
  if (read_end < 0 || write_end < 0) throw cannot("make a pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw cannot("make a process");
  if (child == 0) {
    // The one in between leads the session and ends, so that the service never gets a terminal.
    close(read_end);
    setsid();
    const pid_t service = fork();
    if (service == 0) be_the_service(work, write_end);
    _exit(service < 0 ? 1 : 0);
  }
  close(write_end);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const auto deadline = Clock::now() + patience;
  std::string sentence;
  while (Clock::now() < deadline) {
    if (heard(read_end, &sentence)) {
      close(read_end);
      throw bench::Failure(sentence.empty() ? "the service ended as soon as it began; run it "
                                              "without --daemon to see why"
                                            : sentence);
    }
    if (ready()) {
      close(read_end);
      return;
    }
  }
  close(read_end);
  throw bench::Failure(
      "the service was started and does not answer after 10 s; run it without --daemon to see why");
}

}  // namespace haul::cli
