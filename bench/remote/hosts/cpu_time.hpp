// Whose CPU time operations take: the home's processes', or the kernel's in soft interrupts.
#pragma once

#include <sys/types.h>

#include "bench/remote/hosts/atomic_stage.hpp"

namespace haul::bench {

// Adds up over spans. Soft interrupts are counted by the kernel's tick (4 ms), so spans of less
// than a second or so in all are coarse; and a thread's time holds that of interrupts in it.
class CpuTime {
 public:
  // server: the process whose time is the responder's; 0: haul's responder threads in this one.
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
