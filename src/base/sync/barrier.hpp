// The slow side of an asymmetric barrier, so that the fast side (a submit, a completion) needs no
// fence. Both sides write one word and then look at another; the fast side keeps the two in order
// for the compiler alone, and the slow side calls this in between, which makes every running thread
// of the process execute a fence. So one of the two sees the other's store.
#pragma once

namespace haul {

// After it returns true, every other thread of the process has made its earlier stores visible and
// will see this thread's earlier stores. False where the kernel refuses membarrier: the caller then
// sleeps by time and looks again.
bool asymmetric_barrier() noexcept;

// Does the kernel allow membarrier? Asks it once.
bool asymmetric_barrier_works() noexcept;

}  // namespace haul
