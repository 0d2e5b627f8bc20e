// The slow side of an asymmetric barrier: the fast side (a submit, a completion) then needs no
// fence.
#pragma once

namespace haul {

// After it returns true, every other thread of the process has made its earlier stores visible and
// will see this thread's earlier stores. False where the kernel refuses membarrier: the caller then
// sleeps by time and looks again.
bool asymmetric_barrier() noexcept;

// Is membarrier to be had? Asks the kernel once.
bool asymmetric_barrier_works() noexcept;

}  // namespace haul
