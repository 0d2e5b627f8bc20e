// The copies of a program that are not done yet, and the engine, or engines, that make them.
#pragma once

#include <deque>
#include <memory>

#include "model/bcie/interventions.hpp"
#include "model/stepped/copy_run.hpp"

namespace bcisim {

class Engines {
 public:
  Engines(const Parameters& parameters, const SchemeTraits& traits, Memory& memory, Tlb& data_tlb,
          Result& result, Observer& observer);

  // A copy is fetched; what is younger may depend on it.
  void add(std::uint64_t number, const BulkCopy& copy);
  // A cycle of all that have started. Did something happen?
  bool step(Cycle now);
  // After that: the oldest instruction is that copy, and it starts if an engine is free. Did it?
  bool start(std::uint64_t number, Cycle now);
  Cycle next_event(Cycle now) const;

  // May that copy retire?
  bool can_retire(std::uint64_t number) const;
  bool is_started(std::uint64_t number) const;
  // Must an access of the instruction of that number wait for an older copy?
  bool is_pending(std::uint64_t number, std::uint64_t physical, unsigned bytes,
                  bool is_store) const;
  bool any_older(std::uint64_t number) const {
    return !runs_.empty() && runs_.front()->number() < number;
  }
  bool idle() const { return runs_.empty(); }
  // When the last copy that is done was done.
  Cycle last_end() const { return last_end_; }

  // A device reads or writes memory; all copies before it in the trace were added.
  void device(const DeviceAccess& access, Cycle now);

  // For tests: raises exceptions in page validation.
  void set_page_fault(PageFault fault) { page_fault_ = std::move(fault); }

 private:
  bool step(CopyRun& run, Cycle now);
  std::vector<std::uint64_t> reached(std::uint64_t first, std::uint64_t last) const;
  const CopyRun* find(std::uint64_t number) const;
  bool is_pending(const Intervention& one) const {
    return is_pending(~std::uint64_t{0}, one.physical, one.bytes, one.writes);
  }
  void process(const Intervention& one, Cycle now) {
    memory_.device(one.physical / parameters_.block_bytes, one.writes, now);
  }

  Parameters parameters_;
  const SchemeTraits& traits_;
  Memory& memory_;
  PageFault page_fault_;
  CopySurroundings surroundings_;
  std::deque<std::unique_ptr<CopyRun>> runs_;  // the oldest first
  Interventions interventions_{Interventions::Policy::buffer};
  Cycle last_end_ = 0;
};

}  // namespace bcisim
