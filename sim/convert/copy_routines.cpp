#include "convert/copy_routines.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace bcisim {

namespace {

struct Functions {
  Routine routine;
  std::initializer_list<std::string_view> names;
};

// Linux 5.10 to 6.12, x86-64. A routine may be several functions: memcpy jumps to memcpy_orig,
// copy_user_generic_unrolled to copy_user_short_string.
const Functions functions[] = {
    {Routine::copy,
     {"memcpy", "__memcpy", "memcpy_orig", "memcpy_erms", "memmove", "__memmove", "memmove_erms",
      "__memcpy_flushcache", "copy_page", "copy_page_regs"}},
    {Routine::by_sides,
     {"copy_mc_fragile", "copy_mc_enhanced_fast_string", "copy_user_generic_unrolled",
      "copy_user_generic_string", "copy_user_enhanced_fast_string", "copy_user_short_string",
      "__copy_user_nocache", "copy_user_nocache", "rep_movs_alternative"}},
    {Routine::with_checksum, {"csum_partial_copy_generic", "csum_partial_copy_nocheck"}},
    {Routine::fill,
     {"memset", "__memset", "memset_orig", "memset_erms", "clear_page_rep", "clear_page_orig",
      "clear_page_erms", "clear_user_original", "clear_user_rep_good", "clear_user_erms",
      "rep_stos_alternative"}},
    {Routine::passage,
     {"__x86_return_thunk", "its_return_thunk", "retbleed_return_thunk", "srso_return_thunk",
      "srso_alias_return_thunk"}},
    {Routine::interrupt_entry, {"irq_entries_start", "spurious_entries_start"}},
};

Routine routine_of(std::string_view name) {
  for (const Functions& known : functions)
    if (std::find(known.names.begin(), known.names.end(), name) != known.names.end())
      return known.routine;
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
