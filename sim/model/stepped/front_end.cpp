#include "model/stepped/front_end.hpp"

namespace bcisim {

FrontEnd::FrontEnd(const Parameters& parameters, Memory& memory, Engines& engines, Result& result)
    : parameters_(parameters),
      memory_(memory),
      engines_(engines),
      result_(result),
      tlb_(parameters.tlb_entries),
      predictor_(parameters.predictor_entries) {}

void FrontEnd::push(Item item) {
  if (std::holds_alternative<ExecutedInstruction>(item) || std::holds_alternative<BulkCopy>(item)) {
    ++to_fetch_;
  }
  input_.push_back(item);
}

const Fetched* FrontEnd::next(Cycle now) const {
  if (fetched_.empty() || fetched_.front().at + parameters_.frontend_cycles > now) return nullptr;
  return &fetched_.front();
}

// The first instruction of another block asks for it. A hit in TLB and L1 takes no time.
bool FrontEnd::is_there(const StaticInstruction& what, Cycle now) {
  const std::uint64_t physical = what.physical_page * page_bytes + what.address % page_bytes;
  const std::uint64_t block = physical / parameters_.block_bytes;
  if (asking_ == Asking::no) {
    if (block == block_) return true;
    asking_ = Asking::translation;
    translated_at_ = now;
    if (!tlb_.touch(what.address, physical)) {
      ++result_.tlb_misses;
      translated_at_ += parameters_.walk_cycles;
    }
  }
  if (asking_ == Asking::translation) {
    if (translated_at_ > now) return false;
    asking_ = Asking::block;
    access_ = memory_.access(Side::instructions, block, false, now);
  }
  if (access_.waits_for_arrival() && access_.done() > now) return false;
  asking_ = Asking::no;
  block_ = block;
  return true;
}

bool FrontEnd::ends_group(const Fetched& fetched) {
  return fetched.redirects || fetched.instruction.what.kind == InstructionClass::jump ||
         (fetched.instruction.what.kind == InstructionClass::branch && fetched.instruction.taken);
}

bool FrontEnd::step(Cycle now, bool drained) {
  bool active = false;
  unsigned room = parameters_.width;
  while (room != 0 && !input_.empty() && resumes_at_ <= now &&
         fetched_.size() < std::size_t{parameters_.width} * parameters_.frontend_cycles) {
    Item& item = input_.front();
    if (const auto* const device = std::get_if<DeviceAccess>(&item); device != nullptr) {
      engines_.device(*device, now);
    } else if (std::holds_alternative<Interrupt>(item)) {
      if (!drained || !fetched_.empty() || !engines_.idle()) break;
    } else {
      Fetched fetched;
      fetched.at = now;
      if (auto* const instruction = std::get_if<ExecutedInstruction>(&item);
          instruction != nullptr) {
        const Asking before = asking_;
        const bool there = is_there(instruction->what, now);
        active = active || there || asking_ != before;
        if (!there) break;
        fetched.instruction = *instruction;
        if (instruction->what.kind == InstructionClass::branch) {
          ++result_.branches;
          fetched.redirects = !predictor_.predict(instruction->what.address, instruction->taken);
          if (fetched.redirects) ++result_.mispredicted;
        }
        if (instruction->what.kind == InstructionClass::serializing) fetched.redirects = true;
      } else {
        fetched.is_copy = true;
        engines_.add(next_number_, std::get<BulkCopy>(item));
      }
      fetched.number = next_number_++;
      if (fetched.redirects) resumes_at_ = never;
      --room;
      --to_fetch_;
      if (ends_group(fetched)) room = 0;
      fetched_.push_back(fetched);
    }
    active = true;
    input_.pop_front();
  }
  return active;
}

Cycle FrontEnd::next_event(Cycle now) const {
  Cycle next = never;
  if (resumes_at_ != never) next = next_of(resumes_at_, now, next);
  if (!fetched_.empty())
    next = next_of(fetched_.front().at + parameters_.frontend_cycles, now, next);
  if (asking_ == Asking::translation) next = next_of(translated_at_, now, next);
  if (asking_ == Asking::block) next = next_of(access_.done(), now, next);
  return next;
}

}  // namespace bcisim
