#include "python/src/tickets/abandoned.hpp"

#include <atomic>
#include <iterator>
#include <vector>

#include "python/src/errors/failure.hpp"
#include "python/src/errors/without_gil.hpp"

namespace haul_python {
namespace {

constexpr std::uint64_t slice_ns = 50'000'000;

struct Abandoned {
  nb::ft_mutex mutex;
  std::vector<RequestsInFlight> all;
  std::atomic<bool> any{false};
  std::atomic<bool> interpreter_ends{false};
};

// Never destroyed: tickets may die after everything else.
Abandoned& abandoned() {
  static auto* one = new Abandoned;
  return *one;
}

void wait_for(const RequestsInFlight& requests) {
  const WithoutGil released;
  haul_wait(requests.first);
  for (const haul_ticket& other : requests.others) haul_wait(other);
}

// Takes those that have ended. (Their memory is let go by the caller, without the lock: objects'
// own code runs then.)
std::vector<RequestsInFlight> take_ended() {
  std::vector<RequestsInFlight> ended;
  std::vector<RequestsInFlight> pending;
  Abandoned& ours = abandoned();
  nb::ft_lock_guard guard(ours.mutex);
  for (RequestsInFlight& requests : ours.all)
    (requests.test() != 0 ? ended : pending).push_back(std::move(requests));
  ours.all = std::move(pending);
  ours.any.store(!ours.all.empty(), std::memory_order_relaxed);
  return ended;
}

// Signals are heard: who presses Ctrl-C gets KeyboardInterrupt, and the memory is never let go.
void finish() {
  abandoned().interpreter_ends.store(true);
  for (;;) {
    take_ended();
    haul_ticket next;
    {
      nb::ft_lock_guard guard(abandoned().mutex);
      if (abandoned().all.empty()) return;
      next = abandoned().all.front().first;
      for (const haul_ticket& other : abandoned().all.front().others) {
        if (haul_test(other) == 0) next = other;
      }
    }
    {
      const WithoutGil released;
      haul_wait_for(next, slice_ns);
    }
    let_signals_raise();
  }
}

}  // namespace

void abandon(RequestsInFlight requests) {
  if (abandoned().interpreter_ends.load()) {
    wait_for(requests);
    return;
  }
  nb::ft_lock_guard guard(abandoned().mutex);
  abandoned().all.push_back(std::move(requests));
  abandoned().any.store(true, std::memory_order_relaxed);
}

void look_at_abandoned() {
  if (abandoned().any.load(std::memory_order_relaxed)) take_ended();
}

void define_abandoned(nb::module_& module) {
  module.def("_finish", &finish);
}

}  // namespace haul_python
