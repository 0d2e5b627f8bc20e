// Two forks, a new session, and a pipe that reports a failed start.
#include "cli/service/daemon.hpp"

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

#include "tools/failure.hpp"
#include "tools/program.hpp"

namespace haul::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(10);
constexpr int poll_ms = 10;

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
    // Once the start has succeeded nobody reads the pipe.
    if (write(report, sentence.data(), sentence.size()) < 0) status = 1;
    status = 1;
  }
  std::_Exit(status);
}

// Reads what came through the pipe. True if there is news: the end of the writer counts, even
// without a sentence.
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
  tools::Pipe report;
  std::fflush(nullptr);
  const pid_t child = tools::fork_process();
  if (child == 0) {
    // The process in between leads the session and ends, so that the service can never get a
    // terminal.
    report.close_read_end();
    setsid();
    const pid_t service = fork();
    if (service == 0) be_the_service(work, report.write_end());
    _exit(service < 0 ? 1 : 0);
  }
  report.close_write_end();
  tools::reap(child);
  const auto deadline = Clock::now() + patience;
  std::string sentence;
  while (Clock::now() < deadline) {
    if (heard(report.read_end(), &sentence)) {
      throw tools::CommandFailure(sentence.empty()
                                      ? "the service ended as soon as it began; run it "
                                        "without --daemon to see why"
                                      : sentence);
    }
    if (ready()) return;
  }
  throw tools::CommandFailure(
      "the service was started and does not answer after 10 s; run it without --daemon to see why");
}

}  // namespace haul::cli
