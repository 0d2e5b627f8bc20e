#include "model/stepped/window.hpp"

#include <bit>

namespace bcisim {

Window::Window(const Parameters& parameters, FrontEnd& front_end, Memory& memory, Engines& engines,
               Tlb& data_tlb, Result& result, Observer& observer)
    : parameters_(parameters),
      front_end_(front_end),
      memory_(memory),
      engines_(engines),
      data_tlb_(data_tlb),
      result_(result),
      observer_(observer),
      entries_(parameters.rob_entries) {
  writer_.fill(0);
}

bool Window::start_copy(Cycle now) {
  if (empty()) return false;
  const Entry& oldest = entry(head_);
  return oldest.what.is_copy && oldest.dispatched_at < now && engines_.start(head_, now);
}

bool Window::execute(Cycle now) {
  bool active = false;
  const unsigned drained = stores_.drain(now);
  queue_used_ -= drained;
  active = drained != 0;
  std::erase_if(executing_, [&](std::uint64_t number) {
    Entry& one = entry(number);
    active = advance(one, now) || active;
    return one.complete_at != never;
  });
  std::erase_if(unissued_, [&](std::uint64_t number) {
    Entry& one = entry(number);
    if (!may_issue(one, now)) return false;
    issue(one, now);
    active = true;
    return true;
  });
  return active;
}

bool Window::operands_ready(Entry& one, Cycle now) {
  while (!one.producers.empty()) {
    const Producer& producer = one.producers.back();
    if (producer.number >= head_) {
      const Entry& writer = entry(producer.number);
      if (producer.steps ? writer.issued_at >= now : writer.complete_at > now) return false;
    }
    one.producers.pop_back();
  }
  return true;
}

bool Window::may_issue(Entry& one, Cycle now) {
  if (one.dispatched_at >= now || !operands_ready(one, now)) return false;
  const InstructionClass kind = one.what.instruction.what.kind;
  if (kind != InstructionClass::fence && kind != InstructionClass::serializing) return true;
  if (one.what.number != head_) return false;
  one.waits_for_copy = engines_.any_older(one.what.number);
  return !one.waits_for_copy;
}

void Window::issue(Entry& one, Cycle now) {
  one.issued_at = now;
  const ExecutedInstruction& instruction = one.what.instruction;
  for (unsigned i = 0; i < instruction.references; ++i) {
    const Reference& reference = instruction.reference[i];
    Progress& progress = one.progress[i];
    progress = Progress{};
    progress.translated_at = now;
    if (!data_tlb_.touch(reference.address, reference.physical)) {
      ++result_.tlb_misses;
      progress.translated_at += parameters_.walk_cycles;
    }
  }
  advance(one, now);
  if (one.complete_at == never) executing_.push_back(one.what.number);
}

bool Window::advance(Entry& one, Cycle now) {
  bool active = false, all_under_way = true;
  one.waits_for_copy = false;
  for (unsigned i = 0; i < one.what.instruction.references; ++i) {
    active = advance(one, i, now) || active;
    const Progress& progress = one.progress[i];
    all_under_way = all_under_way && progress.stage == Progress::Stage::accessing &&
                    progress.access.done() != never;
  }
  if (!all_under_way) return active;
  complete(one);
  return true;
}

bool Window::advance(Entry& one, unsigned index, Cycle now) {
  Progress& progress = one.progress[index];
  const Reference& reference = one.what.instruction.reference[index];
  bool active = false;
  if (progress.stage == Progress::Stage::translating && progress.translated_at <= now) {
    progress.stage = Progress::Stage::waiting;
    active = true;
  }
  if (progress.stage != Progress::Stage::waiting) return active;
  if (engines_.is_pending(one.what.number, reference.physical, reference.bytes,
                          reference.is_store)) {
    one.waits_for_copy = true;
    return active;
  }
  if (reference.is_store) {
    progress.free_at = now;
  } else {
    const StoreQueue::Match match = stores_.match(one.what.number, reference);
    if (match.found && match.data_at > now) return active;
    if (match.found) {
      ++result_.accesses;
      progress.access = Access(now + parameters_.l1d.latency);
    } else {
      progress.access = access_blocks(reference, now);
    }
  }
  progress.stage = Progress::Stage::accessing;
  if (observer_) {
    observer_({Happening::Kind::accessed, now, one.what.number, reference.physical, reference.bytes,
               reference.is_store});
  }
  return true;
}

// All its references are under way, so its completion is known.
void Window::complete(Entry& one) {
  const ExecutedInstruction& instruction = one.what.instruction;
  const Cycle latency = latency_of(instruction.what.kind);
  Cycle at = one.issued_at + latency;
  for (unsigned i = 0; i < instruction.references; ++i) {
    const Progress& progress = one.progress[i];
    at = std::max(at, instruction.reference[i].is_store ? progress.free_at + latency
                                                        : progress.access.done() + latency - 1);
  }
  one.complete_at = at;
  stores_.complete(one.what.number, at);
  if (one.what.redirects) front_end_.resume_after(at);
}

Access Window::access_blocks(const Reference& reference, Cycle now) {
  const std::uint64_t last = (reference.physical + reference.bytes - 1) / parameters_.block_bytes;
  Access all(now);
  for (std::uint64_t block = reference.physical / parameters_.block_bytes; block <= last; ++block) {
    all.join(memory_.access(Side::data, block, reference.is_store, now));
  }
  return all;
}

bool Window::dispatch(Cycle now) {
  bool active = false;
  for (unsigned i = 0; i < parameters_.width; ++i) {
    const Fetched* const fetched = front_end_.next(now);
    if (fetched == nullptr || tail_ - head_ == entries_.size()) break;
    const ExecutedInstruction& instruction = fetched->instruction;
    if (queue_used_ + instruction.references > parameters_.lsq_entries) break;
    Entry& one = entry(tail_++);
    one.what = *fetched;
    one.dispatched_at = now;
    one.issued_at = one.complete_at = never;
    one.producers.clear();
    one.waits_for_copy = false;
    front_end_.pop();
    active = true;
    if (one.what.is_copy) continue;
    for (std::uint64_t rest = one.what.instruction.what.reads; rest != 0; rest &= rest - 1) {
      const std::uint64_t writer = writer_[static_cast<unsigned>(std::countr_zero(rest))];
      if (writer <= head_) continue;  // no instruction, or one that has retired
      const std::uint64_t steps = entry(writer - 1).what.instruction.what.steps;
      one.producers.push_back({writer - 1, (steps & rest & (0 - rest)) != 0});
    }
    for (std::uint64_t rest = one.what.instruction.what.writes; rest != 0; rest &= rest - 1) {
      writer_[static_cast<unsigned>(std::countr_zero(rest))] = one.what.number + 1;
    }
    for (unsigned k = 0; k < one.what.instruction.references; ++k) {
      if (one.what.instruction.reference[k].is_store) {
        stores_.add(one.what.number, one.what.instruction.reference[k]);
      }
    }
    queue_used_ += one.what.instruction.references;
    unissued_.push_back(one.what.number);
  }
  return active;
}

unsigned Window::retire(Cycle now) {
  unsigned retired = 0;
  for (; retired < parameters_.width && !empty(); ++retired) {
    Entry& one = entry(head_);
    if (one.what.is_copy ? !engines_.can_retire(head_) : one.complete_at > now) break;
    for (unsigned i = 0; i < one.what.instruction.references; ++i) {
      const Reference& reference = one.what.instruction.reference[i];
      if (reference.is_store) {
        stores_.write(head_, access_blocks(reference, now));
      } else {
        --queue_used_;
      }
    }
    if (observer_) observer_({Happening::Kind::retired, now, head_, 0, 0, false});
    ++head_;
    last_retirement_ = now;
  }
  result_.instructions += retired;
  return retired;
}

Window::Stall Window::stall(Cycle now) const {
  if (empty()) return Stall::other;
  const Entry& oldest = entry(head_);
  if (oldest.dispatched_at >= now) return Stall::other;
  if (oldest.what.is_copy) {
    return engines_.is_started(head_) ? Stall::copy_under_way : Stall::waits_for_engine;
  }
  if (!oldest.waits_for_copy) return Stall::other;
  return oldest.issued_at == never ? Stall::fence : Stall::waits_for_bytes;
}

Cycle Window::next_event(Cycle now) const {
  Cycle next = stores_.next_event(now);
  for (std::uint64_t number = head_; number != tail_; ++number) {
    next = next_of(entry(number).complete_at, now, next);
  }
  for (const std::uint64_t number : executing_) {
    const Entry& one = entry(number);
    for (unsigned i = 0; i < one.what.instruction.references; ++i) {
      next = next_of(one.progress[i].translated_at, now, next);
    }
  }
  return next;
}

}  // namespace bcisim
