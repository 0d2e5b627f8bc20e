// The calibration's file: where it lies, what is in it, and who may measure.
#pragma once

#include <cstddef>

#include "base/error.hpp"
#include "tune/trust.hpp"

namespace haul::tune {

inline constexpr std::size_t path_bytes = 512;

// Writes the path of this machine's figures to `path`: HAUL_TUNE_CACHE, else a file in
// $XDG_CACHE_HOME/haul/, else in $HOME/.cache/haul/, named by the machine's key. An Error with code
// ok, or why there is no such place (no HOME): the figures are then not kept.
Error default_calibration_path(char* path, std::size_t size) noexcept;

// Reads and checks the file. An Error if it is missing, corrupt, of another version or unreadable,
// or has figures that distrust() refuses. Logs nothing.
Expected<Measured> load_calibration(const char* path) noexcept;

// Replaces the file in one step. An Error with code ok, or why not; Code::again for figures that
// distrust() refuses.
Error store_calibration(const char* path, const Measured& measured) noexcept;

// Lets one process of a user at a time measure in the background. Held from construction, unless
// another process holds it or a fork is under way, to destruction.
class CalibrationLock {
 public:
  CalibrationLock() noexcept;
  ~CalibrationLock();
  CalibrationLock(const CalibrationLock&) = delete;
  CalibrationLock& operator=(const CalibrationLock&) = delete;
  bool held() const noexcept { return held_; }

 private:
  bool held_ = false;
};

}  // namespace haul::tune
