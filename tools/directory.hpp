// A temporary directory.
#pragma once

#include <string>

namespace haul::tools {

// Made below TMPDIR, else below /tmp, and removed with all that is in it. Throws CommandFailure if
// none can be made.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace haul::tools
