// Automatic progress (FI_PROGRESS_AUTO): one thread a domain makes progress while the program does
// not, so that peers reach the memory of a process that computes. While the program polls, the
// thread looks in once a millisecond, and no peer rings; otherwise it sleeps on the doorbells.
#pragma once

#include <cstdint>

#include "fabric/endpoint/waiting/domain_thread.hpp"

namespace haul::fabric {

class ProgressThread final : public DomainThread {
 public:
  // Starts nothing. The domain must outlive it.
  explicit ProgressThread(Domain& domain) noexcept : DomainThread(domain, "haul-progress") {}
  ~ProgressThread() { stop(); }

  // Under the data lock: there is something to do that no doorbell tells of.
  void nudge() noexcept {
    if (asleep_) wake();
  }

 private:
  bool rest(bool refused) noexcept override;
  bool turn() noexcept override;
  void wake() noexcept;

  // These under the data lock, or by the thread, which alone changes them but for asleep_:
  bool armed_ = false;
  bool asleep_ = false;         // until a doorbell or wake()
  std::uint64_t seen_ = 0;      // of the domain's turns, all of which were the thread's since
  std::uint64_t pause_ns_ = 0;  // before the next turn; until_rung: a doorbell ends it
};

}  // namespace haul::fabric
