// Who spends CPU time on operations: the home's processes, or the kernel in soft interrupts.
#pragma once

#include <sys/types.h>

#include "bench/remote/hosts/atomic_stage.hpp"

namespace haul::bench {

// Adds up over several spans. The kernel counts soft interrupts by its tick (4 ms), so a total of
// less than a second or so is coarse; and a thread's time includes the interrupts that hit it.
class CpuTime {
 public:
  // server: the process that responds; 0: haul's responder threads in this process.
  explicit CpuTime(Cores cores, pid_t server = 0) : cores_(cores), server_(server) {}
  void begin() { began_ = now(); }
  void end();
  // home_process_share, home_softirq_share, client_softirq_share: of one core.
  void write_to(Row& row) const;

 private:
  struct Reading {
    double wall_s = 0, server_s = 0, home_softirq_s = 0, client_softirq_s = 0;
  };
  Reading now() const;

  Cores cores_;
  pid_t server_;
  Reading began_, sum_;
};

}  // namespace haul::bench
