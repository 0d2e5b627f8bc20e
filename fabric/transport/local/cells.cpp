#include "fabric/transport/local/cells.hpp"

namespace haul::fabric {
namespace {

// The home of a cell, in the eyes of who sends the packet that names it.
constexpr CellName receivers_home = 0x40;

constexpr unsigned number_of(CellName name) noexcept {
  return (name & ~receivers_home & 0xffu) - 1;
}
constexpr std::uint32_t bit_of(unsigned number) noexcept {
  return std::uint32_t{1} << number;
}
static_assert(cell_count == 32 && large_cell_count <= cell_count, "a set of cells is a word");

CellArea small_area(RingSegment& segment) noexcept {
  return {&segment.cells[0][0], cell_bytes, cell_count, &segment.returns};
}
CellArea large_area(RingSegment& segment) noexcept {
  return {&segment.large_cells[0][0], large_cell_bytes, large_cell_count, &segment.large_returns};
}

}  // namespace

void Cells::have_own(const CellArea& area) noexcept {
  own_ = area;
  // The first is taken first, so that no more pages are touched than are in use at once.
  for (unsigned i = 0; i < area.count; ++i)
    here_[i] = static_cast<std::uint8_t>(area.count - 1 - i);
  here_count_ = area.count;
}

void Cells::have_peers(const CellArea& area) noexcept {
  peers_ = area;
}

CellName Cells::take() noexcept {
  if (kept_from_ != kept_to_) {
    const unsigned number = kept_[--kept_to_ % cell_count];
    return static_cast<CellName>((number + 1) | receivers_home);
  }
  if (here_count_ == 0) take_returns();
  if (here_count_ == 0) return 0;
  return static_cast<CellName>(here_[--here_count_] + 1);
}

std::byte* Cells::memory(CellName taken) const noexcept {
  return cell_of((taken & receivers_home) != 0 ? peers_ : own_, number_of(taken));
}

void Cells::pass(CellName taken) noexcept {
  const std::uint32_t bit = bit_of(number_of(taken));
  if ((taken & receivers_home) != 0) {
    kept_set_ &= ~bit;
  } else {
    away_ |= bit;
  }
}

unsigned Cells::available(unsigned wanted) noexcept {
  const unsigned kept = kept_to_ - kept_from_;
  if (here_count_ + kept < wanted) take_returns();
  return here_count_ + kept;
}

// What comes back twice, or was never away, is passed over.
void Cells::take_returns() noexcept {
  if (own_.count == 0) return;
  const RingSegment::Returns& returns = *own_.returns;
  const std::uint32_t count = returns.count.load(std::memory_order_acquire);
  if (count - returns_seen_ > cell_count) return;
  for (; returns_seen_ != count; ++returns_seen_) {
    const unsigned number =
        returns.cells[returns_seen_ % cell_count].load(std::memory_order_relaxed);
    if (number >= own_.count || (away_ & bit_of(number)) == 0) continue;
    away_ &= ~bit_of(number);
    here_[here_count_++] = static_cast<std::uint8_t>(number);
  }
}

const std::byte* Cells::arrived(CellName named) const noexcept {
  const unsigned number = number_of(named);
  if ((named & receivers_home) != 0) {
    return number < own_.count && (away_ & bit_of(number)) != 0 ? cell_of(own_, number) : nullptr;
  }
  return number < peers_.count && (kept_set_ & bit_of(number)) == 0 ? cell_of(peers_, number)
                                                                    : nullptr;
}

void Cells::keep(CellName named) noexcept {
  const unsigned number = number_of(named);
  if ((named & receivers_home) != 0) {
    away_ &= ~bit_of(number);
    here_[here_count_++] = static_cast<std::uint8_t>(number);
    return;
  }
  kept_set_ |= bit_of(number);
  kept_[kept_to_++ % cell_count] = static_cast<std::uint8_t>(number);
  if (kept_to_ - kept_from_ > most_kept_) give_back_oldest();
}

void Cells::give_back_oldest() noexcept {
  const std::uint8_t number = kept_[kept_from_++ % cell_count];
  kept_set_ &= ~bit_of(number);
  RingSegment::Returns& returns = *peers_.returns;
  returns.cells[returned_ % cell_count].store(number, std::memory_order_relaxed);
  returns.count.store(++returned_, std::memory_order_release);
}

void PairCells::have_own(RingSegment& segment) noexcept {
  small.have_own(small_area(segment));
  large.have_own(large_area(segment));
}

void PairCells::have_peers(RingSegment& segment) noexcept {
  small.have_peers(small_area(segment));
  large.have_peers(large_area(segment));
}

}  // namespace haul::fabric
