#include "cli/service/service_log.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/os/os.hpp"
#include "cli/kit/terminal.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

// fd, or -1 and errno.
int open_log(const std::string& path) {
  return os::above_streams(
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
}

}  // namespace

ServiceLog::ServiceLog(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const int fd = open_log(path_);
  if (fd < 0) {
    throw tools::CommandFailure(
        fmt::format("cannot write {} ({}); give --log another path", path_, std::strerror(errno)));
  }
  file_ = os::Descriptor::of(fd);
}

ServiceLog::~ServiceLog() {
  file_.close();
}

void ServiceLog::take_standard_error() {
  if (!file_.valid()) return;
  taken_ = dup2(file_.get(), STDERR_FILENO) >= 0;
  file_.close();
}

void ServiceLog::reopen() {
  const int fd = open_log(path_);
  if (fd < 0) {
    line(LogLevel::warning, fmt::format("cannot open {} again ({}); it goes on in the old file",
                                        path_, std::strerror(errno)));
    return;
  }
  dup2(fd, STDERR_FILENO);
  os::close_fd(fd);
}

void ServiceLog::line(LogLevel level, const std::string& text) const {
  if (!taken_) {
    fmt::print(stderr, "{}{}\n", line_head(level), text);
    return;
  }
  const std::string whole = fmt::format("{:%Y-%m-%dT%H:%M:%S%z} haul[{}]: {}\n",
                                        fmt::localtime(std::time(nullptr)), getpid(), text);
  // A full disk is no reason to stop copying.
  if (write(STDERR_FILENO, whole.data(), whole.size()) < 0) return;
}

}  // namespace haul::cli
