// The calibration files that haul may have left on this machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace haul::cli {

struct CalibrationFile {
  std::filesystem::path path;
  bool temporary;  // left by a process that was killed while it wrote
};

// What HAUL_TUNE_CACHE says, else haul/ in the XDG cache directory; empty without HOME.
std::filesystem::path calibration_place();

// The files there are; an unreadable place holds none.
std::vector<CalibrationFile> calibration_files();

}  // namespace haul::cli
