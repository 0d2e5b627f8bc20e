#include "convert/copy_tracker.hpp"

#include "format/rules.hpp"

namespace bcisim {

namespace {

constexpr bool is_user(std::uint64_t address) {
  return address < std::uint64_t{1} << 47;
}

}  // namespace

void CopyTracker::add_static(std::uint32_t index, bool refers_aside) {
  if (refers_aside_.size() <= index) refers_aside_.resize(index + std::size_t{1});
  refers_aside_[index] = refers_aside;
}

void CopyTracker::begin(Routine routine, std::uint64_t site, std::uint64_t address) {
  open_ = true;
  resumed_ = false;
  routine_ = routine;
  site_ = site;
  first_instruction_ = chunk_.instructions.size();
  first_event_ = chunk_.events.size();
  if (site != 0) return;
  for (std::size_t i = 1; i <= most_interrupted; ++i) {
    Interrupted& before =
        interrupted_[(next_interrupted_ + most_interrupted - i) % most_interrupted];
    if (before.resume != address && before.resume_too != address) continue;
    site_ = before.site;
    resumed_ = true;
    before = {};
    return;
  }
}

void CopyTracker::check_length() {
  if (chunk_.instructions.size() - first_instruction_ <= most_instructions) return;
  open_ = false;
  ++summary_.unmarked.too_long;
}

void CopyTracker::end(std::uint64_t address) {
  close(site_ != 0 ? site_ : address, false);
}

void CopyTracker::interrupt(std::uint64_t resume, std::uint64_t resume_too) {
  interrupted_[next_interrupted_] = {resume, resume_too, site_};
  next_interrupted_ = (next_interrupted_ + 1) % most_interrupted;
  close(site_, true);
}

void CopyTracker::close(std::uint64_t site, bool interrupted) {
  open_ = false;
  if (!mark(site, interrupted)) return;
  const CopyCall& call = chunk_.copies.back();
  const auto first = static_cast<std::uint32_t>(first_instruction_);
  const auto behind = static_cast<std::uint32_t>(chunk_.instructions.size());
  const auto index = static_cast<std::uint32_t>(chunk_.copies.size() - 1);
  chunk_.events.insert(chunk_.events.begin() + static_cast<std::ptrdiff_t>(first_event_),
                       {Event::Kind::copy_begin, first, index});
  chunk_.events.push_back({Event::Kind::copy_end, behind, 0});
  ConvertSummary::Copies& counted = summary_.copies[static_cast<std::size_t>(call.kind)];
  ++counted.calls;
  counted.bytes += call.bytes;
}

CopyKind CopyTracker::kind_of(std::uint64_t destination, std::uint64_t source) const {
  switch (routine_) {
    case Routine::with_checksum: return CopyKind::with_checksum;
    case Routine::fill: return CopyKind::fill;
    case Routine::by_sides:
      if (is_user(destination) && is_user(source)) return CopyKind::user;
      if (is_user(destination)) return CopyKind::to_user;
      if (is_user(source)) return CopyKind::from_user;
      return CopyKind::copy;
    default: return CopyKind::copy;
  }
}

// Appends the call to chunk_.copies, unless it copied nothing or something else than one region.
bool CopyTracker::mark(std::uint64_t site, bool interrupted) {
  loads_.clear();
  stores_.clear();
  for (std::size_t i = first_instruction_; i < chunk_.instructions.size(); ++i) {
    const DynamicInstruction& instruction = chunk_.instructions[i];
    if (refers_aside_[instruction.what]) continue;
    for (unsigned k = 0; k < instruction.references; ++k) {
      const Reference& reference = chunk_.references[instruction.first_reference + k];
      (reference.is_store ? stores_ : loads_).push_back(reference);
    }
  }
  const bool is_fill = routine_ == Routine::fill;
  if (stores_.empty() && (is_fill || loads_.empty() || interrupted)) {
    ++summary_.empty_calls;
    return false;
  }
  std::optional<CopiedRegion> to = CopiedRegion::cover(stores_);
  std::optional<CopiedRegion> from = is_fill ? to : CopiedRegion::cover(loads_);
  if (!to || !from) {
    ++summary_.unmarked.scattered;
    return false;
  }
  // A routine loads some words before it stores them: where it is cut, one side is ahead.
  if (from->bytes() > to->bytes() && interrupted && from->ascending()) {
    from->keep_first(to->bytes());
  } else if (to->bytes() > from->bytes() && resumed_ && from->bytes() != 0 && to->ascending()) {
    to->keep_last(from->bytes());
  }
  if (from->bytes() != to->bytes()) {
    ++summary_.unmarked.unequal;
    return false;
  }
  // A trace has no copy of more than 64 MiB, and none that ends with the address space.
  if (!rules::valid_region(to->address(), to->bytes()) ||
      !rules::valid_region(from->address(), from->bytes())) {
    ++summary_.unmarked.too_long;
    return false;
  }
  CopyCall& call = chunk_.copies.emplace_back();
  call.kind = kind_of(to->address(), from->address());
  call.site = site;
  call.destination = to->address();
  call.bytes = to->bytes();
  call.destination_pages = to->physical_pages();
  if (is_fill) return true;
  call.source = from->address();
  call.source_pages = from->physical_pages();
  return true;
}

}  // namespace bcisim
