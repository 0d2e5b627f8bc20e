// The cache file first; measuring only where there is none.
#include "tune/background.hpp"

#include <pthread.h>

#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/os.hpp"
#include "mover/gate.hpp"
#include "mover/mover.hpp"
#include "tune/calibration_file.hpp"
#include "tune/measure.hpp"

namespace haul::tune {
namespace {

// Half a second of CPU in all: this thread's share, and the mover's, which spins while it is waited
// for (200 ms at most), through some 75 runs with their pauses (130 ms) and five wakings (50 ms).
constexpr std::uint64_t background_cpu_ns = 100'000'000;
constexpr std::uint64_t background_pause_ns = 1'000'000;
constexpr unsigned background_patience_ms = 200;

void store(const plan::Calibration& figures) noexcept {
  char path[path_bytes];
  const Error no_path = default_calibration_path(path, sizeof path);
  const Error failed = no_path.code == Code::ok ? store_calibration(path, figures) : no_path;
  if (failed.code != Code::ok) log(LogLevel::info, "%s", failed.sentence);
}

void* measure_quietly(void*) noexcept {
  os::name_thread("haul-tune");
  os::lowest_priority();
  const CalibrationLock lock;
  if (!lock.held()) return nullptr;  // another process is at it; its figures are there next time
  Watch watch;
  watch.cpu_limit_ns = background_cpu_ns;
  watch.pause_ns = background_pause_ns;
  watch.patience_ms = background_patience_ms;
  if (auto figures = measure(watch); figures) {
    set_calibration(*figures);
    store(*figures);
  } else {
    log(LogLevel::info, "%s", figures.error().sentence);
  }
  return nullptr;
}

bool load() noexcept {
  char path[path_bytes];
  if (default_calibration_path(path, sizeof path).code != Code::ok) return false;
  auto stored = load_calibration(path);
  if (!stored) return false;
  set_calibration(*stored);
  return true;
}

}  // namespace

void start_background() noexcept {
  if (load() || knob_number(Knob::tune_background) == 1) return;  // 1: "off"
  pthread_t thread;
  if (os::start_thread(&thread, measure_quietly, nullptr) == 0) pthread_detach(thread);
}

void load_stored() noexcept {
  load();
}

Code calibrate_now(void (*progress)(int percent, void* context), void* context,
                   Error* error) noexcept {
  Watch watch;
  watch.progress = progress;
  watch.context = context;
  watch.runs = max_runs;
  auto figures = measure(watch);
  if (!figures) {
    *error = figures.error();
    return error->code;
  }
  set_calibration(*figures);
  char path[path_bytes];
  *error = default_calibration_path(path, sizeof path);
  if (error->code == Code::ok) *error = store_calibration(path, *figures);
  return error->code;
}

}  // namespace haul::tune
