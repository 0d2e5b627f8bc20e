// haul clean: removes what haul may have left on this machine.
#include <fmt/format.h>

#include <memory>

#include "bench/failure.hpp"
#include "cli/calibration_files.hpp"
#include "cli/tree.hpp"

namespace haul::cli {
namespace {

namespace fs = std::filesystem;

void remove_one(const fs::path& path, const char* what, bool dry_run) {
  if (!dry_run) {
    std::error_code failed;
    fs::remove(path, failed);
    if (failed) {
      throw bench::Failure(fmt::format("cannot remove {} ({}); check the rights of its directory",
                                       path.string(), failed.message()));
    }
  }
  fmt::print("{} {}: {}\n", dry_run ? "would remove" : "removed", what, path.string());
}

void clean(bool dry_run) {
  std::vector<CalibrationFile> files = calibration_files();
  for (const CalibrationFile& file : files) {
    remove_one(file.path, file.temporary ? "an unfinished file" : "a calibration", dry_run);
  }
  // The directory is haul's own unless the user named a file; it goes when it is empty.
  fs::path place = calibration_place();
  std::error_code ignored;
  if (fs::is_directory(place, ignored) && (dry_run || fs::is_empty(place, ignored))) {
    remove_one(place, "the directory", dry_run);
  } else if (files.empty()) {
    fmt::print("nothing to remove\n");
  }
}

}  // namespace

void add_clean(Tree& tree) {
  CLI::App& app =
      tree.command("clean", "Remove what haul may have left: calibrations and unfinished files",
                   "haul names no shared memory and keeps no lock files, so that a killed program "
                   "leaves nothing "
                   "behind but, at most, an unfinished calibration file. This removes that, and "
                   "the calibrations "
                   "too; they are made anew when needed.");
  auto dry_run = std::make_shared<bool>(false);
  app.add_flag("--dry-run", *dry_run, "Only say what would be removed");
  app.callback([dry_run] { clean(*dry_run); });
}

}  // namespace haul::cli
