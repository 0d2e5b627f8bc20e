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
  double ran_share = 0;             // share of the time for which the measuring thread wanted a CPU
  double stolen_share = 0;  // share of the CPUs' time that a virtual machine's host took away
  double spread = 0;        // how much the repeats of a figure differed
};

// Nothing if the file is of another version of haul, or cannot be read.
std::optional<CalibrationQuality> calibration_quality(const std::filesystem::path& file);

// The quality as a sentence.
std::string describe(const CalibrationQuality& quality);

// HAUL_TUNE_CACHE, else haul/ in the XDG cache directory; empty without HOME.
std::filesystem::path calibration_place();

// The files that exist; a place that cannot be read has none.
std::vector<CalibrationFile> calibration_files();

}  // namespace haul::cli
