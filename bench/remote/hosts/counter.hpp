// A process that counts as fast as its core lets it: the count shows what others do on that core
// (paper 002, V-C: the counter process).
#pragma once

#include <cstdint>

#include "bench/kit/processes.hpp"

namespace haul::bench {

class CountingProcess {
 public:
  // Starts it on that core; throws CommandFailure if it does not start. The calling thread is
  // pinned to `own_cpu` afterwards, because starting a process unpins it.
  CountingProcess(int cpu, int own_cpu);
  // Iterations so far.
  std::uint64_t count() const;

 private:
  SharedBlock block_;
  Child child_;
};

// For workers: die when the process that started this one dies.
void die_with_parent();

}  // namespace haul::bench
