#include "model/stepped/core.hpp"

#include <stdexcept>

namespace bcisim {

SteppedCore::SteppedCore(const Parameters& parameters, Scheme scheme)
    : parameters_(parameters),
      data_tlb_(parameters.tlb_entries),
      memory_(parameters, traits_of(scheme).perfect_cache, result_),
      engines_(parameters, traits_of(scheme), memory_, data_tlb_, result_, observer_),
      front_end_(parameters, memory_, engines_, result_),
      window_(parameters, front_end_, memory_, engines_, data_tlb_, result_, observer_) {}

void SteppedCore::execute(const StaticInstruction& what, const DynamicInstruction& instruction,
                          const Reference* references) {
  ExecutedInstruction one;
  one.what = what;
  one.taken = instruction.taken;
  one.references = instruction.references;
  std::copy_n(references, instruction.references, one.reference.begin());
  take(one);
}

// Cycles are stepped only while all that they could fetch is here, so what happens in them does not
// depend on when the rest comes.
void SteppedCore::take(Item item) {
  front_end_.push(item);
  while (front_end_.to_fetch() > parameters_.width) step();
}

void SteppedCore::finish() {
  // What memory still brings costs no cycles, but is counted.
  while (!front_end_.empty() || !window_.empty() || !engines_.idle() || !memory_.idle()) step();
  is_finished_ = true;
}

Result SteppedCore::result() const {
  Result result = result_;
  result.cycles = result.instructions == 0 ? 0 : window_.last_retirement() + 1;
  if (is_finished_) result.cycles = std::max(result.cycles, engines_.last_end());
  return result;
}

// A cycle. What one part frees for another in the same cycle comes before it: blocks arrive, copies
// go on, instructions execute, places of those that retired before are taken, then instructions
// retire, the places between fetch and dispatch are filled, and the bus is given to what became
// ready.
void SteppedCore::step() {
  bool active = memory_.step(now_);
  active = engines_.step(now_) || active;
  active = window_.start_copy(now_) || active;
  active = window_.execute(now_) || active;
  active = window_.dispatch(now_) || active;
  const bool drained = window_.empty();  // what retires now has not retired before
  const unsigned retired = window_.retire(now_);
  active = active || retired != 0;
  active = front_end_.step(now_, drained) || active;
  active = memory_.give_bus(now_) || active;

  Cycle next = now_ + 1;
  if (!active) {
    const Cycle event = next_event();
    if (event == never) throw std::logic_error("the stepped model waits for nothing");
    if (skips_) next = event;
  }
  if (retired == 0) attribute(window_.stall(now_), next - now_);
  now_ = next;
}

void SteppedCore::attribute(Window::Stall stall, Cycle cycles) {
  switch (stall) {
    case Window::Stall::other: break;
    case Window::Stall::copy_under_way: result_.rob_clog_cycles += cycles; break;
    case Window::Stall::waits_for_bytes: result_.dependence_cycles += cycles; break;
    case Window::Stall::waits_for_engine: result_.engine_cycles += cycles; break;
    case Window::Stall::fence: result_.fence_cycles += cycles; break;
  }
}

Cycle SteppedCore::next_event() const {
  return std::min({memory_.next_event(now_), engines_.next_event(now_), front_end_.next_event(now_),
                   window_.next_event(now_)});
}

}  // namespace bcisim
