// haul clean: removes what haul may have left on this machine.
#include <fmt/format.h>

#include <cerrno>
#include <memory>

#include "base/net/socket.hpp"
#include "base/os/os.hpp"
#include "cli/kit/calibration_files.hpp"
#include "cli/kit/tree.hpp"
#include "request/service_socket.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

namespace fs = std::filesystem;

void remove_one(const fs::path& path, const char* what, bool dry_run) {
  if (!dry_run) {
    std::error_code failed;
    fs::remove(path, failed);
    if (failed) {
      throw tools::CommandFailure(
          fmt::format("cannot remove {} ({}); check the permissions of its directory",
                      path.string(), failed.message()));
    }
  }
  fmt::print("{} {}: {}\n", dry_run ? "would remove" : "removed", what, path.string());
}

// Sockets of services that were killed. (The next service replaces them, too.)
std::vector<fs::path> stale_sockets() {
  std::vector<fs::path> all;
  char path[socket_path_bytes];
  for (unsigned place = 0; service_socket_path(place, path); ++place) {
    std::error_code ignored;
    if (!fs::is_socket(fs::symlink_status(path, ignored))) continue;
    const int fd = os::connect_to(path);
    if (fd == -ECONNREFUSED) all.emplace_back(path);
    os::close_fd(fd);
  }
  return all;
}

void clean(bool dry_run) {
  std::vector<CalibrationFile> files = calibration_files();
  const std::vector<fs::path> sockets = stale_sockets();
  for (const fs::path& socket : sockets)
    remove_one(socket, "a socket that nobody listens to", dry_run);
  for (const CalibrationFile& file : files) {
    remove_one(file.path, file.temporary ? "an unfinished file" : "a calibration", dry_run);
  }
  // The directory is haul's own unless the user named a file; it goes when it is empty.
  fs::path place = calibration_place();
  std::error_code ignored;
  if (fs::is_directory(place, ignored) && (dry_run || fs::is_empty(place, ignored))) {
    remove_one(place, "the directory", dry_run);
  } else if (files.empty() && sockets.empty()) {
    fmt::print("nothing to remove\n");
  }
}

}  // namespace

void add_clean(Tree& tree) {
  CLI::App& app = tree.command(
      "clean", "Remove what haul may have left: calibrations, unfinished files, dead sockets",
      "haul names no shared memory and keeps no lock files, so that a killed program "
      "leaves nothing behind but, at most, an unfinished calibration file, and a "
      "killed service its socket. This removes those, and the calibrations too; they "
      "are made again when needed.");
  auto dry_run = std::make_shared<bool>(false);
  app.add_flag("--dry-run", *dry_run, "Only say what would be removed");
  app.callback([dry_run] { clean(*dry_run); });
}

}  // namespace haul::cli
