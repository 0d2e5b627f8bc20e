// Which threads of this process spend CPU time on a copy: the caller, haul's movers, the kernel's
// workers, and threads that stand for a device.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "bench/kit/stats.hpp"
#include "bench/kit/work.hpp"

namespace haul::bench {

// What a span cost, in ns of CPU time. A mover counts while it spins, too: its core is nobody
// else's then. Soft interrupts belong to no thread: they count for whichever they interrupt, or for
// none.
struct CpuSpan {
  double caller_ns = 0, mover_ns = 0, kernel_ns = 0, device_ns = 0;
};

class CpuMeter {
 public:
  // By the calling thread alone, which is the caller.
  CpuMeter();

  // Finds the threads, which takes a tenth of a millisecond. A span does so itself, unless this has
  // been called since the last one: before what is to be in the caches is brought there.
  void look();
  // What `body` costs.
  template <class Body>
  CpuSpan span(Body&& body) {
    begin();
    body();
    return end();
  }
  // Within a span: what `body` takes of the caller's CPU time does not count, as it would compute
  // without a copy as well.
  template <class Body>
  void apart(Body&& body) {
    const double began_ns = caller_ns();
    body();
    apart_ns_ += caller_ns() - began_ns + clock_ns_;
  }

 private:
  enum class Kind : std::size_t { mover, kernel, device };
  struct Thread {
    pid_t id;
    Kind kind;
    double began_ns;
  };

  static double caller_ns();
  void begin();
  CpuSpan end();
  std::vector<Thread> others() const;

  pid_t self_;
  std::vector<Thread> threads_;
  bool looked_ = false;  // since the last span
  double began_ns_ = 0, apart_ns_ = 0;
  double clock_ns_ = 0;  // what reading the caller's clock costs it
};

}  // namespace haul::bench
