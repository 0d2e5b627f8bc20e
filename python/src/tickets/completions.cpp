#include "python/src/tickets/completions.hpp"

#include <haul/haul.h>

#include <array>
#include <atomic>
#include <vector>

#include "python/src/errors/failure.hpp"

namespace haul_python {
namespace {

// Shorter copies end before an event loop could be asked.
constexpr std::size_t numbered_from_bytes = 64 << 10;

std::atomic<std::uint64_t> next_queue{1};
// A number, since threads that follow each other may have the same addresses.
thread_local const std::uint64_t this_queue = next_queue.fetch_add(1, std::memory_order_relaxed);
thread_local bool this_thread_awaits = false;
thread_local bool anyone_waits = false;
thread_local std::vector<std::uint64_t> taken;
std::atomic<std::uint64_t> next_number{1};

// Moves what has arrived from the queue to `taken`, so that the queue's 1024 places never run out.
// (Nobody who comes later waits for what has ended already.)
void take_arrived() {
  std::array<haul_completion, 64> entries;
  for (;;) {
    const int count = haul_reap(entries.data(), entries.size());
    for (int i = 0; i < count; ++i) {
      if (anyone_waits && entries[static_cast<std::size_t>(i)].user_data != 0) {
        taken.push_back(entries[static_cast<std::size_t>(i)].user_data);
      }
    }
    if (count < static_cast<int>(entries.size())) return;
  }
}

int queue() {
  const int descriptor = haul::check(haul_reap_eventfd());
  this_thread_awaits = true;
  return descriptor;
}

std::vector<std::uint64_t> reap() {
  take_arrived();
  return std::exchange(taken, {});
}

}  // namespace

std::uint64_t completion_for(std::size_t bytes) {
  if (!this_thread_awaits || bytes < numbered_from_bytes) return 0;
  take_arrived();
  return next_number.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t queue_of_this_thread() {
  return this_queue;
}

void define_completions(nb::module_& module) {
  module.def("_queue", &queue,
             "The descriptor of this thread's completion queue, which is used from now on.");
  module.def(
      "_anyone_waits", [](bool waits) { anyone_waits = waits; }, nb::arg("waits"),
      "Whether anybody listens for this thread's numbers: else _reap() forgets them.");
  module.def(
      "_arm", [] { return haul::check(haul_reap_arm()) == 1 || !taken.empty(); },
      "Arms the descriptor. True: entries are waiting already.");
  module.def(
      "_reap",
      [] {
        nb::list numbers;
        for (std::uint64_t number : reap()) numbers.append(number);
        return numbers;
      },
      nb::sig("def _reap() -> list[int]"),
      "The numbers of tickets of this thread that have ended since the last call.");
}

}  // namespace haul_python
