// The table of the rights met so far, and what the movers have. An entry is written once, by the
// thread that has taken it from `free` to `changing`, and never changes after `made`. So a number
// means the same rights for as long as the process lives, and readers need no lock.
#include "request/rights.hpp"

namespace haul {
namespace {

constexpr std::size_t max_numbers = 63;

struct KnownRights {
  enum State : std::uint32_t { free, changing, made };
  std::atomic<std::uint32_t> state{free};
  os::Rights rights;
};
constinit KnownRights entries[max_numbers];
constinit std::atomic<RightsNumber> movers{nobodys};

}  // namespace

constinit MoverKeys mover_keys;

RightsNumber number_of(const os::Rights& rights) noexcept {
  for (std::size_t i = 0; i < max_numbers; ++i) {
    KnownRights& entry = entries[i];
    // Acquire: pairs with the release below.
    std::uint32_t state = entry.state.load(std::memory_order_acquire);
    if (state == KnownRights::free &&
        entry.state.compare_exchange_strong(state, KnownRights::changing,
                                            std::memory_order_acquire)) {
      entry.rights = rights;
      entry.state.store(KnownRights::made, std::memory_order_release);
      state = KnownRights::made;
    }
    // Another thread is entering rights, perhaps these (or was, in a process of which this one is
    // the child): for the moment they count as nobody's.
    if (state == KnownRights::changing) return nobodys;
    if (state == KnownRights::made && entry.rights == rights)
      return static_cast<RightsNumber>(i + 1);
  }
  return nobodys;
}

RightsNumber rights_number() noexcept {
  return number_of(os::rights_of_this_thread());
}

void note_mover_rights(RightsNumber number) noexcept {
  movers.store(number, std::memory_order_relaxed);
}

RightsNumber mover_rights() noexcept {
  return movers.load(std::memory_order_relaxed);
}

void forget_mover_rights() noexcept {
  movers.store(nobodys, std::memory_order_relaxed);
}

void note_mover_keys() noexcept {
  if (!cpu_features().protection_keys) return;
  mover_keys.opened.store(opened_keys(), std::memory_order_relaxed);
  // Release: a thread that sees it sees which keys are opened. (One that does not see it has not
  // seen the movers' state either.)
  mover_keys.keyed.store(true, std::memory_order_release);
}

}  // namespace haul
