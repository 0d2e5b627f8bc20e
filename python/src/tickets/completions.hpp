// What `await ticket` hears from: the calling thread's completion queue.
//
// A thread that has awaited once has its large copies enter their ends in its queue from then on,
// each by a number of its own (Ticket::completion()). python/haul/_await.py arms the queue's
// descriptor in the event loop, and takes the numbers out when it is readable. Tickets without a
// number, and those of other threads, are looked at now and then.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

namespace haul_python {

namespace nb = nanobind;

// A number for requests of so many bytes that this thread is about to submit with HAUL_COMPLETE; 0:
// they go without.
std::uint64_t completion_for(std::size_t bytes);

// Stands for the calling thread's queue: numbers of other threads' are not heard in it.
std::uint64_t queue_of_this_thread();

// Defines _queue(), _arm() and _reap().
void define_completions(nb::module_& module);

}  // namespace haul_python
