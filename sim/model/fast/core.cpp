#include "model/fast/core.hpp"

#include <algorithm>
#include <bit>

namespace bcisim {
namespace {

// Copies that are remembered: more than instructions of the window wait for, or engines work at
// once.
constexpr unsigned remembered_copies = 16;
// Of a scheme with as many engines as there are copies.
constexpr std::size_t most_engines = 1024;
constexpr unsigned word_shift = 3;

}  // namespace

FastCore::FastCore(const Parameters& parameters, Scheme scheme)
    : parameters_(parameters),
      traits_(traits_of(scheme)),
      block_shift_(static_cast<unsigned>(std::countr_zero(parameters.block_bytes))),
      memory_(parameters_, traits_.perfect_cache),
      itlb_(parameters.tlb_entries),
      dtlb_(parameters.tlb_entries),
      predictor_(parameters.predictor_entries),
      engines_(remembered_copies, FastEngine(parameters_, traits_.waits_by_block)),
      fetched_(parameters.width),
      dispatched_(parameters.width),
      retired_(parameters.width),
      frontend_(std::size_t{parameters.width} * std::max(1U, parameters.frontend_cycles), 0),
      rob_(parameters.rob_entries, 0),
      queue_(parameters.lsq_entries, 0),
      stores_(store_words) {}

// The cycle in which it is fetched.
inline Cycle FastCore::fetch(std::uint64_t address, std::uint64_t physical_page) {
  const std::uint64_t physical = physical_page * page_bytes + address % page_bytes;
  const std::uint64_t block = block_of(physical);
  const Cycle at = fetched_.take(frontend_[frontend_at_]);
  if (block == fetch_block_) return at;
  fetch_block_ = block;
  Cycle ready = at;
  if (!itlb_.touch(address, physical)) {
    ++result_.tlb_misses;
    ready += parameters_.walk_cycles;
  }
  const Cycle there = memory_.fetch(block, ready);
  if (there > ready + parameters_.l1i.latency) ready = there;
  return ready == at ? at : fetched_.take(ready);
}

// The cycle in which it enters the ROB, that cannot be before `at`.
inline Cycle FastCore::dispatch(Cycle at) {
  at = dispatched_.take(std::max(at, rob_[rob_at_]));
  frontend_[frontend_at_] = at;
  if (++frontend_at_ == frontend_.size()) frontend_at_ = 0;
  return at;
}

// When the registers are ready, from `at` on. Most instructions read three at most: without
// branches, which the host would mispredict.
inline Cycle FastCore::operands(std::uint64_t reads, Cycle at) const {
  constexpr std::uint64_t end = std::uint64_t{1} << no_register;
  for (int i = 0; i < 3; ++i) {
    at = std::max(at, ready_[static_cast<unsigned>(std::countr_zero(reads | end))]);
    reads &= reads - 1;
  }
  for (; reads != 0; reads &= reads - 1) {
    at = std::max(at, ready_[static_cast<unsigned>(std::countr_zero(reads))]);
  }
  return at;
}

// Likewise.
inline void FastCore::produce(std::uint64_t writes, Cycle at) {
  constexpr std::uint64_t end = std::uint64_t{1} << nowhere;
  for (int i = 0; i < 2; ++i) {
    ready_[static_cast<unsigned>(std::countr_zero(writes | end))] = at;
    writes &= writes - 1;
  }
  for (; writes != 0; writes &= writes - 1) {
    ready_[static_cast<unsigned>(std::countr_zero(writes))] = at;
  }
}

// Takes an entry of the load/store queue that is free at `at`, else the first that will be. Its
// place.
inline std::size_t FastCore::queue_entry(Cycle at) {
  std::size_t first = queue_at_;
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const std::size_t place = queue_at_;
    if (++queue_at_ == queue_.size()) queue_at_ = 0;
    if (queue_[place] <= at) return place;
    if (queue_[place] < queue_[first]) first = place;
  }
  return first;
}

inline Cycle FastCore::load(const Reference& reference, Cycle at, Wait& wait) {
  if (!translate(reference)) at += parameters_.walk_cycles;
  if (at < copies_done_) at = wait_for_copies(reference, at, wait);
  const std::uint64_t last = reference.physical + reference.bytes - 1;
  Cycle forwarded = 0;
  for (std::uint64_t word = reference.physical >> word_shift; word <= last >> word_shift; ++word) {
    const Store& store = stores_[word % store_words];
    if (store.word == word && store.written > at) forwarded = std::max({forwarded, at, store.data});
  }
  if (forwarded != 0) {
    memory_.count_forwarded();
    return forwarded + parameters_.l1d.latency;
  }
  const std::uint64_t block = block_of(reference.physical);
  Cycle ready = memory_.load(block, at);
  for (std::uint64_t next = block + 1; next <= block_of(last); ++next) {
    ready = std::max(ready, memory_.load(next, at));
  }
  return ready;
}

// When a store may execute that could at `at`, its address translated.
inline Cycle FastCore::store_may(const Reference& reference, Cycle at, Wait& wait) {
  if (!translate(reference)) at += parameters_.walk_cycles;
  return at < copies_done_ ? wait_for_copies(reference, at, wait) : at;
}

// When a reference may be made that could at `at`: copies under way may be in its way.
Cycle FastCore::wait_for_copies(const Reference& reference, Cycle at, Wait& wait) const {
  const Cycle could = at;
  for (const FastEngine& engine : engines_) {
    at = reference.is_store ? engine.store_may(reference.physical, reference.bytes, at)
                            : engine.load_may(reference.physical, reference.bytes, at);
  }
  wait.add(could, at);
  return at;
}

// Into the cache, having retired: when it is there.
inline Cycle FastCore::write(const Reference& reference, Cycle data) {
  const std::uint64_t last = reference.physical + reference.bytes - 1;
  Cycle written = 0;
  for (std::uint64_t block = block_of(reference.physical); block <= block_of(last); ++block) {
    written = std::max(written, memory_.store(block, retired_.cycle()));
  }
  for (std::uint64_t word = reference.physical >> word_shift; word <= last >> word_shift; ++word) {
    stores_[word % store_words] = {word, data, written};
  }
  return written;
}

// In the cycle `at` at the earliest. How many of the cycles in which nothing retired went to the
// wait.
inline Cycle FastCore::retire(Cycle at, const Wait& wait) {
  Cycle stalled = 0;
  if (wait.until != 0) {
    const Cycle from = std::max(wait.from, retired_.cycle() + 1), until = std::min(wait.until, at);
    if (from < until) stalled = until - from;
  }
  rob_[rob_at_] = retired_.take(at) + 1;
  if (++rob_at_ == rob_.size()) rob_at_ = 0;
  ++result_.instructions;
  return stalled;
}

void FastCore::execute(const StaticInstruction& what, const DynamicInstruction& instruction,
                       const Reference* references) {
  memory_.forget_before(fetched_.cycle());
  Cycle at = fetch(what.address, what.physical_page) + parameters_.frontend_cycles;
  at = std::max(at, dispatched_.cycle());
  for (unsigned i = 0; i < instruction.references; ++i) {
    const std::size_t place = queue_entry(at);
    at = std::max(at, queue_[place]);
    queue_[place] = ~Cycle{0};
    queue_taken_[i] = place;
  }
  at = operands(what.reads, dispatch(at) + 1);
  Wait wait;
  if (what.kind >= InstructionClass::fence) at = wait_for_all(at, wait);
  Cycle complete = at + latency_of(what.kind);
  if (instruction.references != 0) {
    complete = reach_memory(what, instruction.references, references, at, wait);
  } else {
    produce(what.writes, complete);
  }
  if (what.steps != 0) produce(what.steps, at + 1);
  const Cycle stalled = retire(complete, wait);
  (what.kind >= InstructionClass::fence ? result_.fence_cycles : result_.dependence_cycles) +=
      stalled;
  for (unsigned i = 0; i < instruction.references; ++i) {
    queue_[queue_taken_[i]] =
        references[i].is_store ? write(references[i], complete) : retired_.cycle() + 1;
  }
  if (what.kind >= InstructionClass::branch) redirect(what, instruction.taken, complete);
}

// Its references, when it can issue at `at`; its results. When it is complete.
inline Cycle FastCore::reach_memory(const StaticInstruction& what, unsigned count,
                                    const Reference* references, Cycle at, Wait& wait) {
  Cycle there = at;
  for (unsigned i = 0; i < count; ++i) {
    there = std::max(there, references[i].is_store ? store_may(references[i], at, wait)
                                                   : load(references[i], at, wait) - 1);
  }
  const Cycle complete = there + latency_of(what.kind);
  produce(what.writes, complete);
  return complete;
}

// A fence issues when all older instructions have retired and all copies are done.
Cycle FastCore::wait_for_all(Cycle at, Wait& wait) const {
  at = std::max(at, retired_.cycle() + 1);
  wait.add(at, copies_done_);
  return std::max(at, copies_done_);
}

// Where the front end goes on behind it.
inline void FastCore::redirect(const StaticInstruction& what, bool taken, Cycle complete) {
  if (what.kind == InstructionClass::branch) {
    ++result_.branches;
    if (!predictor_.predict(what.address, taken)) {
      ++result_.mispredicted;
      fetched_.restart(complete + 1);
    } else if (taken) {
      fetched_.end_cycle();
    }
  } else if (what.kind == InstructionClass::jump) {
    fetched_.end_cycle();
  } else if (what.kind == InstructionClass::serializing) {
    fetched_.restart(complete + 1);
  }
}

void FastCore::copy(const BulkCopy& copy) {
  memory_.forget_before(fetched_.cycle());
  const Cycle fetched = fetched_.take(frontend_[frontend_at_]);
  const Cycle at = dispatch(fetched + parameters_.frontend_cycles) + 1;
  const Cycle oldest = std::max(at, retired_.cycle() + 1);
  if (traits_.many_engines && engines_[next_engine_].done() > oldest &&
      engines_.size() < most_engines) {
    engines_.insert(engines_.begin() + static_cast<std::ptrdiff_t>(next_engine_),
                    FastEngine(parameters_, traits_.waits_by_block));
  }
  FastEngine& engine = engines_[next_engine_];
  if (++next_engine_ == engines_.size()) next_engine_ = 0;
  const Cycle start = std::max(oldest, traits_.many_engines ? engine.done() : copies_done_);
  const FastEngine::Times times = engine.run(copy, start, memory_, dtlb_, engines_);
  copies_done_ = std::max(copies_done_, times.done);
  const Cycle may_retire = traits_.retires_early ? times.validated : times.done;
  result_.engine_cycles += start - oldest;
  result_.rob_clog_cycles += retire(may_retire, {start, may_retire});
  ++result_.copies;
  result_.copy_bytes += copy.bytes;
  result_.copy_cycles += times.done - start;
  result_.tlb_misses += times.tlb_misses;
}

void FastCore::device(const DeviceAccess& access) {
  if (access.bytes == 0) return;
  const std::uint64_t last = block_of(access.physical + access.bytes - 1);
  if (access.writes) {
    memory_.device_writes(block_of(access.physical), last);
  } else {
    memory_.device_reads(block_of(access.physical), last, retired_.cycle());
  }
}

void FastCore::interrupt() {
  fetched_.restart(std::max(retired_.cycle() + 1, copies_done_));
}

Result FastCore::result() const {
  Result result = result_;
  if (result.instructions != 0) result.cycles = std::max(retired_.cycle() + 1, last_end_);
  memory_.report(result);
  return result;
}

}  // namespace bcisim
