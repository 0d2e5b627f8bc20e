#include "mover/cores/survey.hpp"

#include <atomic>
#include <climits>

#include "base/os/os.hpp"
#include "base/thread/apart.hpp"

namespace haul {
namespace {

enum Progress : std::uint32_t { none, running, done };

constinit std::atomic<std::uint32_t> progress{none};
constinit Topology found;  // written by the survey before it raises `progress` to done

void look(void* /*unused*/) noexcept {
  if (const auto read = read_topology(""); read) {
    found = *read;
  } else if (const auto mask = guess_topology(); mask) {
    found = *mask;
  }
  // Release: pairs with surveyed().
  progress.store(done, std::memory_order_release);
  os::futex_wake(&progress, INT_MAX);
}

constexpr os::Apart survey{"haul-survey", look, nullptr};

}  // namespace

void start_survey() noexcept {
  std::uint32_t before = none;
  if (progress.compare_exchange_strong(before, running, std::memory_order_relaxed) &&
      os::start_apart(survey) != 0) {
    progress.store(none, std::memory_order_relaxed);  // next time a thread may be available
  }
}

bool await_survey(std::uint64_t timeout_ns) noexcept {
  if (progress.load(std::memory_order_relaxed) == running)
    os::futex_wait(&progress, running, timeout_ns);
  return progress.load(std::memory_order_relaxed) != running;
}

const Topology* surveyed() noexcept {
  return progress.load(std::memory_order_acquire) == done ? &found : nullptr;
}

void forget_survey() noexcept {
  if (progress.load(std::memory_order_relaxed) == running)
    progress.store(none, std::memory_order_relaxed);
}

}  // namespace haul
