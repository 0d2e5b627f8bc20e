// Where the lines of a service go: to standard error, or to a file in its place.
#pragma once

#include <string>

#include "base/log.hpp"
#include "base/os/descriptor.hpp"

namespace haul::cli {

class ServiceLog {
 public:
  // `path`: of the file, a full one; "" if there is none. It is made (mode 0600) or appended to.
  // Throws tools::CommandFailure if it cannot be written.
  explicit ServiceLog(std::string path);
  ~ServiceLog();
  ServiceLog(const ServiceLog&) = delete;
  ServiceLog& operator=(const ServiceLog&) = delete;

  bool has_file() const { return !path_.empty(); }
  // From now on whatever the process writes to standard error goes to the file. Until then a start
  // that fails says so where it was started.
  void take_standard_error();
  // Goes on in a new file at the path, as after a rotation. If that fails it goes on in the old
  // one, and says so there. Any thread.
  void reopen();
  // A line, by one write: with the time and the process in a file, with the level in systemd's
  // journal, which adds the rest. Any thread.
  void line(LogLevel level, const std::string& text) const;

 private:
  std::string path_;
  os::Descriptor file_;  // until it is standard error
  bool taken_ = false;
};

}  // namespace haul::cli
