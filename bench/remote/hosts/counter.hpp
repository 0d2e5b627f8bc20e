// A process that counts as fast as its core lets it: what others do on that core shows in its
// count (paper 002, V-C: the counter process).
#pragma once

#include <cstdint>

#include "bench/kit/processes.hpp"

namespace haul::bench {

class CountingProcess {
 public:
  // On that core. Throws Failure if it does not start. The calling thread is pinned to `own_cpu`
  // afterwards: starting a process undoes it.
  CountingProcess(int cpu, int own_cpu);
  // Iterations so far.
  std::uint64_t count() const;

 private:
  SharedBlock block_;
  Child child_;
};

// Dies with whoever started this process: for workers.
void die_with_parent();

}  // namespace haul::bench
