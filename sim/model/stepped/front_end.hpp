// The front end: fetches the trace's instructions in order and holds them until they can be
// dispatched.
#pragma once

#include <deque>

#include "model/predictor.hpp"
#include "model/stepped/engines.hpp"
#include "model/stepped/item.hpp"

namespace bcisim {

// An instruction or a copy between fetch and dispatch.
struct Fetched {
  std::uint64_t number = 0;  // in the order of fetching, from 0
  Cycle at = 0;              // when it was fetched
  bool is_copy = false;
  bool redirects = false;  // what follows is fetched in the cycle after it is complete
  ExecutedInstruction instruction;
};

class FrontEnd {
 public:
  FrontEnd(const Parameters& parameters, Memory& memory, Engines& engines, Result& result);

  // What comes next in the trace.
  void push(Item item);
  // Instructions and copies that were pushed and not fetched.
  std::size_t to_fetch() const { return to_fetch_; }
  bool empty() const { return input_.empty() && fetched_.empty(); }

  // nullptr: nothing can be dispatched in this cycle. pop() takes it away.
  const Fetched* next(Cycle now) const;
  void pop() { fetched_.pop_front(); }
  // An instruction that redirects is complete at `at`.
  void resume_after(Cycle at) { resumes_at_ = at + 1; }

  // A cycle of fetching. drained: what was dispatched had retired before this cycle. Did
  // something happen?
  bool step(Cycle now, bool drained);
  Cycle next_event(Cycle now) const;

 private:
  bool is_there(const StaticInstruction& what, Cycle now);
  static bool ends_group(const Fetched& fetched);

  Parameters parameters_;
  Memory& memory_;
  Engines& engines_;
  Result& result_;
  Tlb tlb_;
  Predictor predictor_;

  std::deque<Item> input_;
  std::size_t to_fetch_ = 0;
  std::deque<Fetched> fetched_;
  std::uint64_t next_number_ = 0;

  Cycle resumes_at_ = 0;  // no fetch before; never: an instruction that redirects is not complete
  std::uint64_t block_ = ~std::uint64_t{0};  // physical: that of the last instruction
  // The block that is asked for: its translation, then its fetch.
  enum class Asking { no, translation, block } asking_ = Asking::no;
  Cycle translated_at_ = 0;
  Access access_;
};

}  // namespace bcisim
