#include "bench/remote/hosts/counter.hpp"

#include <signal.h>
#include <sys/prctl.h>

#include <atomic>

#include "base/os/os.hpp"

namespace haul::bench {
namespace {

struct CounterBlock {
  int cpu;
  // The counter has a cache line of its own, so that reading it disturbs nothing else.
  alignas(128) std::atomic<std::uint64_t> count;
};

}  // namespace

CountingProcess::CountingProcess(int cpu, int own_cpu) : block_(sizeof(CounterBlock)) {
  auto& block = block_.as<CounterBlock>();
  block.cpu = cpu;
  child_ = start_worker("count", 0, block_, {});
  std::vector<Child> none;
  await("the counting process", none, [&] {
    if (!child_.running()) child_.finish("the counting process");
    return block.count.load(std::memory_order_relaxed) > 0;
  });
  os::pin_thread(static_cast<unsigned>(own_cpu));
}

std::uint64_t CountingProcess::count() const {
  return block_.as<CounterBlock>().count.load(std::memory_order_relaxed);
}

void die_with_parent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void work_as_counter(unsigned, int block_fd) {
  die_with_parent();
  const SharedBlock shared(block_fd, sizeof(CounterBlock));
  auto& block = shared.as<CounterBlock>();
  os::pin_thread(static_cast<unsigned>(block.cpu));
  constexpr unsigned steps = 256;  // between two stores, about 100 ns
  for (std::uint64_t count = 0;;) {
    for (unsigned i = 0; i < steps; ++i) asm volatile("" : : "r"(i) : "memory");
    count += steps;
    block.count.store(count, std::memory_order_relaxed);
  }
}

}  // namespace haul::bench
