#include "convert/copy_routines.hpp"

#include <algorithm>
#include <string_view>

namespace bcisim {

namespace {

struct Named {
  std::string_view name;
  Routine routine;
};

// Linux 5.10 to 6.12, x86-64. A routine may be several functions: memcpy jumps to memcpy_orig,
// copy_user_generic_unrolled to copy_user_short_string.
constexpr Named named[] = {
    {"memcpy", Routine::copy},
    {"__memcpy", Routine::copy},
    {"memcpy_orig", Routine::copy},
    {"memcpy_erms", Routine::copy},
    {"memmove", Routine::copy},
    {"__memmove", Routine::copy},
    {"memmove_erms", Routine::copy},
    {"__memcpy_flushcache", Routine::copy},
    {"copy_page", Routine::copy},
    {"copy_page_regs", Routine::copy},
    {"copy_mc_fragile", Routine::by_sides},
    {"copy_mc_enhanced_fast_string", Routine::by_sides},
    {"copy_user_generic_unrolled", Routine::by_sides},
    {"copy_user_generic_string", Routine::by_sides},
    {"copy_user_enhanced_fast_string", Routine::by_sides},
    {"copy_user_short_string", Routine::by_sides},
    {"__copy_user_nocache", Routine::by_sides},
    {"copy_user_nocache", Routine::by_sides},
    {"rep_movs_alternative", Routine::by_sides},
    {"csum_partial_copy_generic", Routine::with_checksum},
    {"csum_partial_copy_nocheck", Routine::with_checksum},
    {"memset", Routine::fill},
    {"__memset", Routine::fill},
    {"memset_orig", Routine::fill},
    {"memset_erms", Routine::fill},
    {"clear_page_rep", Routine::fill},
    {"clear_page_orig", Routine::fill},
    {"clear_page_erms", Routine::fill},
    {"clear_user_original", Routine::fill},
    {"clear_user_rep_good", Routine::fill},
    {"clear_user_erms", Routine::fill},
    {"rep_stos_alternative", Routine::fill},
    {"__x86_return_thunk", Routine::passage},
    {"its_return_thunk", Routine::passage},
    {"retbleed_return_thunk", Routine::passage},
    {"srso_return_thunk", Routine::passage},
    {"srso_alias_return_thunk", Routine::passage},
    {"irq_entries_start", Routine::interrupt_entry},
    {"spurious_entries_start", Routine::interrupt_entry},
};

Routine routine_of(std::string_view name) {
  for (const Named& known : named)
    if (known.name == name) return known.routine;
  for (const std::string_view prefix : {"asm_exc_", "asm_sysvec_", "asm_common_interrupt"})
    if (name.starts_with(prefix)) return Routine::interrupt_entry;
  return Routine::none;
}

}  // namespace

CopyRoutines::CopyRoutines(const Symbols& symbols) {
  for (const Symbols::Symbol& symbol : symbols.all()) {
    const Routine routine = routine_of(symbol.name);
    if (routine == Routine::none) continue;
    if (!ranges_.empty() && ranges_.back().begin == symbol.address) continue;  // another name of it
    // Of an entry the first byte alone: functions that it calls return to the rest. Those in
    // ..._entries_start call none.
    const bool is_point =
        routine == Routine::interrupt_entry && !symbol.name.ends_with("_entries_start");
    ranges_.push_back({symbol.address, is_point ? symbol.address + 1 : symbol.end, routine});
  }
}

Routine CopyRoutines::at(std::uint64_t address) const {
  auto behind =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](std::uint64_t value, const Range& range) { return value < range.begin; });
  if (behind == ranges_.begin()) return Routine::none;
  --behind;
  return address < behind->end ? behind->routine : Routine::none;
}

}  // namespace bcisim
