#include "bench/transparent/late_calls.hpp"

#include "base/machine/huge_pages.hpp"
#include "bench/kit/buffer.hpp"
#include "bench/kit/processes.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/work.hpp"
#include "bench/transparent/new_memory.hpp"

namespace haul::bench {
namespace {

struct LateCallOrder {
  std::size_t bytes;
  bool huge_source;
  double compute_ns;
  LateCallTimes times;
};

constexpr unsigned calls = 9;

}  // namespace

LateCallTimes time_late_calls(std::size_t bytes, bool huge_source, double compute_ns,
                              const tools::Environment& environment) {
  const SharedBlock block(sizeof(LateCallOrder));
  auto& order = block.as<LateCallOrder>();
  order = {bytes, huge_source, compute_ns, {}};
  Child child = start_worker("late-calls", 0, block, environment);
  child.finish("a process that copies, computes and reads");
  return order.times;
}

void work_as_late_caller(unsigned, int block_fd) {
  const SharedBlock block(block_fd, sizeof(LateCallOrder));
  auto& order = block.as<LateCallOrder>();
  using Copy = void*(void* dst, const void* src, std::size_t length);
  // Through a pointer that the compiler knows nothing about, as another file's call.
  Copy* volatile unknown = std::memcpy;
  Copy* const copy = unknown;
  NewMemory source(order.bytes, true);
  std::uint64_t seed = 1;
  write_content(source.data(), order.bytes, seed);
  if (order.huge_source)
    os::collapse_to_huge(reinterpret_cast<std::uintptr_t>(source.data()), order.bytes);
  const std::uint64_t steps = order.compute_ns == 0 ? 0 : compute_steps(order.compute_ns);
  Samples call_ns, total_ns, touch_ns;
  for (unsigned i = 0; i < calls; ++i) {
    write_content(source.data(), order.bytes, ++seed);
    {
      NewMemory to(order.bytes, false);
      total_ns.push_back(timed_ns([&] {
        call_ns.push_back(timed_ns([&] { copy(to.data(), source.data(), order.bytes); }));
        if (steps != 0) keep(compute(steps));
        keep(vector_sum(to.data(), order.bytes));
      }));
      check_content(to.data(), order.bytes, seed);
    }
    NewMemory to(order.bytes, false);
    copy(to.data(), source.data(), order.bytes);
    touch_ns.push_back(timed_ns([&] {
      keep(static_cast<std::uint64_t>(
          *static_cast<volatile std::byte*>(to.data() + order.bytes / 2)));
    }));
    check_content(to.data(), order.bytes, seed);
  }
  order.times = {median(call_ns), median(total_ns), median(touch_ns)};
}

}  // namespace haul::bench
