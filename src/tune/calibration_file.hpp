// The calibration's file: where it lies, what is in it, and who may measure.
#pragma once

#include <cstddef>

#include "base/error.hpp"
#include "tune/trust.hpp"

namespace haul::tune {

inline constexpr std::size_t path_bytes = 512;

// Where this machine's figures lie: HAUL_TUNE_CACHE, else $XDG_CACHE_HOME/haul/, else
// $HOME/.cache/haul/; the name is keyed by the machine. An Error with code ok, or why there is no
// such place (no HOME): the figures are then not kept.
Error default_calibration_path(char* path, std::size_t size) noexcept;

// Reads and checks the file. An Error for one that is missing, corrupt, of another version, not
// readable, of figures that distrust() refuses. Says nothing to the log.
Expected<Measured> load_calibration(const char* path) noexcept;

// Replaces the file in one step. An Error with code ok, or why not; Code::again for figures that
// distrust() refuses.
Error store_calibration(const char* path, const Measured& measured) noexcept;

// One process of this user at a time measures in the background. Held from construction, if nobody
// else holds it and no fork is under way, to destruction.
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
