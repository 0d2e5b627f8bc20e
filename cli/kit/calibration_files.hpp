// The calibration files that haul may have left on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace haul::cli {

struct CalibrationFile {
  std::filesystem::path path;
  bool temporary;  // left by a process that was killed while it wrote
};

// When the figures of a file were measured, and how well.
struct CalibrationQuality {
  std::uint64_t measured_at_s = 0;  // Unix time
  double ran_share = 0;             // of the time for which the measuring thread wanted a CPU
  double stolen_share = 0;          // of the CPUs' time, by a virtual machine's host
  double spread = 0;                // between a figure's repeats
};

// None where the file is not of this version of haul, or cannot be read.
std::optional<CalibrationQuality> calibration_quality(const std::filesystem::path& file);

// The same as a sentence.
std::string describe(const CalibrationQuality& quality);

// What HAUL_TUNE_CACHE says, else haul/ in the XDG cache directory; empty without HOME.
std::filesystem::path calibration_place();

// The files there are; an unreadable place holds none.
std::vector<CalibrationFile> calibration_files();

}  // namespace haul::cli
