#include "memory/region_cache.hpp"

#include <algorithm>

#include "base/knobs.hpp"
#include "base/machine/clock.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"
#include "base/sync/backoff.hpp"
#include "base/sync/quiet_lock.hpp"

namespace haul {
namespace {

using os::page_bytes;
constexpr std::size_t most_pages = 1024;
constexpr std::uint64_t patience_ns = 100'000'000;  // until changes have been told of
constexpr std::size_t watched_from_bytes = std::size_t{1} << 20;

std::uintptr_t page_below(std::uintptr_t address) noexcept {
  return address & ~(page_bytes - 1);
}
std::uintptr_t page_above(std::uintptr_t address) noexcept {
  return page_below(address + page_bytes - 1);
}

Registering registering() noexcept {
  return static_cast<Registering>(knob_number(Knob::memory_register));
}

}  // namespace

// Of those that hold the address, the one that reaches furthest. (Under the table's lock.)
RegionCache::Entry* RegionCache::find(std::uintptr_t address) noexcept {
  Entry* best = nullptr;
  for (std::uint32_t i = 0; i < in_use_; ++i) {
    Entry& entry = entries_[i];
    if (entry.begin <= address && address < entry.end && entry.serves() &&
        (best == nullptr || entry.end > best->end))
      best = &entry;
  }
  return best;
}

RegionCache::Entry* RegionCache::reserve(std::uintptr_t begin, std::uintptr_t end) noexcept {
  for (std::uint32_t i = 0; i < room; ++i) {
    Entry& entry = entries_[i];
    if (entry.end != 0) continue;
    entry = Entry{};
    entry.begin = begin;
    entry.end = end;
    entry.users = 1;
    entry.used_at = ++uses_;
    in_use_ = std::max(in_use_, i + 1);
    return &entry;
  }
  return nullptr;
}

// What lies within a range that has just been registered does not stay beside it. (Locked.)
void RegionCache::replace_within(const Entry& whole) noexcept {
  for (std::uint32_t i = 0; i < in_use_; ++i) {
    Entry& entry = entries_[i];
    const bool within = whole.begin <= entry.begin && entry.end <= whole.end;
    if (entry.end != 0 && within && &entry != &whole) entry.once = true;
  }
}

// Frees a place that nobody uses, under the table's lock. What it returns must be unpinned.
std::uint64_t RegionCache::take_out(Entry& entry) noexcept {
  const std::uint64_t region = entry.region;
  pinned_bytes_ -= entry.end - entry.begin;
  entry = Entry{};
  return region;
}

// Gives back what is not in use and does not last, or is over the budget, or all. Under the
// registrar's lock.
void RegionCache::drop_unused(bool all) noexcept {
  for (;;) {
    std::uint64_t region = 0;
    {
      const QuietLock lock(table_lock_);
      const bool over = pinned_bytes_ > knob_number(Knob::memory_registered_bytes);
      Entry* victim = nullptr;
      for (std::uint32_t i = 0; i < in_use_; ++i) {
        Entry& entry = entries_[i];
        if (entry.end == 0 || entry.region == 0 || entry.users != 0) continue;
        if (!entry.lasts()) {
          victim = &entry;
          break;
        }
        if ((all || over) && (victim == nullptr || entry.used_at < victim->used_at))
          victim = &entry;
      }
      if (victim == nullptr) return;
      region = take_out(*victim);
    }
    registrar_->unpin(region);
  }
}

// Registers what an entry says, which is reserved; only what can stay so, if `keep` wants that.
Code RegionCache::pin(Entry& entry, Keep keep) noexcept {
  const std::size_t bytes = entry.end - entry.begin;
  bool settles = false;
  const bool watched = registering() == Registering::cached && listens_ &&
                       watch_changes(entry.begin, bytes, &settles);
  {
    const QuietLock lock(table_lock_);
    entry.once = !watched || settles || keep == Keep::watched;
    if (entry.once && (keep == Keep::only || keep == Keep::in_one)) {
      pinned_bytes_ += bytes;
      take_out(entry);
      return watched ? Code::again : Code::not_supported;
    }
  }
  const QuietLock lock(registrar_lock_);
  drop_unused(false);
  std::uint64_t region = 0;
  Code code = registrar_->pin(entry.begin, bytes, &region);
  if (code == Code::no_memory) {
    drop_unused(true);
    code = registrar_->pin(entry.begin, bytes, &region);
  }
  if (code == Code::ok && keep == Keep::in_one) {
    const QuietLock table(table_lock_);
    replace_within(entry);
  }
  drop_unused(false);  // what has changed meanwhile, or was replaced
  const QuietLock table(table_lock_);
  pinned_bytes_ += bytes;
  if (code != Code::ok) {
    entry.users = 0;
    take_out(entry);
    return code;
  }
  entry.region = region;
  return Code::ok;
}

Code RegionCache::acquire(Registrar& registrar, std::uintptr_t address, std::size_t wanted,
                          std::size_t before, std::size_t behind, RegisteredUse* use) noexcept {
  const Code code = prepare(registrar);
  return code == Code::ok
             ? acquire(registrar, address, wanted, before, behind, Keep::if_possible, use)
             : code;
}

// Before anything that is remembered is looked at: all changes of memory that can be seen have been
// told of then.
Code RegionCache::prepare(Registrar& registrar) noexcept {
  if (entries_ == nullptr) {
    auto* const mapped = static_cast<Entry*>(os::map_anonymous(room * sizeof(Entry)));
    if (mapped == nullptr) return Code::no_memory;
    const QuietLock lock(table_lock_);
    entries_ = mapped;
    registrar_ = &registrar;
  }
  if (!listens_) listens_ = listen_to_changes(*this);
  const std::uint64_t deadline_ns = now_ns() + patience_ns;
  for (Backoff backoff; changes_under_way(); backoff.pause())
    if (now_ns() >= deadline_ns) return Code::timed_out;
  return Code::ok;
}

Code RegionCache::acquire_whole(Registrar& registrar, std::uintptr_t address, std::size_t bytes,
                                std::uint64_t asker, RegisteredUse* use) noexcept {
  tidy();
  if (const Code ready = prepare(registrar); ready != Code::ok) return ready;
  const bool keeps = registering() == Registering::cached;
  Keep keep = keeps ? Keep::only : Keep::if_possible;
  const std::uintptr_t end = address + bytes;
  if (keeps) {
    using Seen = Sightings::Seen;
    Seen seen = Seen::first;
    bool held = false;
    {
      const QuietLock lock(table_lock_);
      seen = sightings_.look(address, end, asker);
      held = holds_locked(address, bytes);
    }
    const bool pays = seen != Seen::again && seen != Seen::refused && registrar.pays_once(bytes);
    const bool worth = pays || seen == Seen::again;
    if (!held && (!worth || bytes > knob_number(Knob::memory_registered_bytes))) {
      // What is other memory by then does not come again. (Short copies are not worth the watch.)
      bool ignored = false;
      if (seen == Seen::first && listens_ && bytes >= watched_from_bytes)
        watch_changes(page_below(address), page_above(end) - page_below(address), &ignored);
      return Code::again;
    }
    if (pays) keep = Keep::watched;
  }
  Code code = acquire(registrar, address, bytes, 0, 0, keep, use);
  if (keep == Keep::only && (code == Code::again || code == Code::not_supported)) {
    if (code == Code::not_supported) judge(address, end, Sightings::Seen::passing);
    // What cannot stay registered may be worth it for this use.
    if (!registrar.pays_once(bytes)) return code;
    code = acquire(registrar, address, bytes, 0, 0, Keep::watched, use);
  }
  if (code != Code::ok) {
    if (code != Code::timed_out && code != Code::again)
      judge(address, end, Sightings::Seen::refused);
    return code;
  }
  if (use->bytes >= bytes) return Code::ok;
  release(*use);
  return Code::again;
}

void RegionCache::judge(std::uintptr_t begin, std::uintptr_t end,
                        Sightings::Seen verdict) noexcept {
  const QuietLock lock(table_lock_);
  sightings_.judge(begin, end, verdict);
}

Code RegionCache::acquire_lasting(Registrar& registrar, std::uintptr_t address, std::size_t wanted,
                                  std::size_t before, std::size_t behind,
                                  RegisteredUse* use) noexcept {
  tidy();
  if (registering() != Registering::cached || wanted > knob_number(Knob::memory_registered_bytes))
    return Code::not_supported;
  const Code ready = prepare(registrar);
  return ready == Code::ok ? acquire(registrar, address, wanted, before, behind, Keep::in_one, use)
                           : ready;
}

Code RegionCache::acquire(Registrar& registrar, std::uintptr_t address, std::size_t wanted,
                          std::size_t before, std::size_t behind, Keep keep,
                          RegisteredUse* use) noexcept {
  const std::uintptr_t begin = page_below(address);
  std::size_t bytes = std::clamp(before, page_bytes, most_pages * page_bytes);
  Entry* fresh = nullptr;
  {
    const QuietLock lock(table_lock_);
    Entry* const known = find(address);
    if (known != nullptr &&
        (known->end >= address + wanted || (known->users != 0 && keep != Keep::in_one))) {
      *use = this->use(*known, address, wanted);
      return Code::ok;
    }
    // A buffer that comes again is registered in one piece, in place of its parts.
    if (known != nullptr && keep != Keep::in_one) {
      known->once = true;
      bytes = wanted;
    }
    if (registering() == Registering::blocking) bytes = wanted + behind;
    const std::size_t least = registrar.least_bytes(), all = wanted + behind;
    bytes = std::max({bytes, least, keep == Keep::in_one ? wanted : 0});
    if (bytes >= all || all - bytes < least) bytes = all;
    const std::uintptr_t end = page_above(address + bytes);
    fresh = reserve(begin, end);
  }
  if (fresh == nullptr) {
    const QuietLock lock(registrar_lock_);
    drop_unused(true);
    const QuietLock table(table_lock_);
    fresh = reserve(begin, page_above(address + std::min(bytes, wanted)));
    if (fresh == nullptr) return Code::no_memory;
  }
  const std::uintptr_t end = fresh->end;
  const Code code = pin(*fresh, keep);
  if (code != Code::ok) return code;
  *use = {fresh->region, std::min(wanted, end - address),
          static_cast<std::uint32_t>(fresh - entries_)};
  return Code::ok;
}

RegisteredUse RegionCache::use(Entry& entry, std::uintptr_t address, std::size_t wanted) noexcept {
  ++entry.users;
  entry.used_at = ++uses_;
  return {entry.region, std::min(wanted, entry.end - address),
          static_cast<std::uint32_t>(&entry - entries_)};
}

bool RegionCache::acquire_both(std::uintptr_t dst, std::uintptr_t src, std::size_t bytes,
                               RegisteredUse* dst_use, RegisteredUse* src_use) noexcept {
  // (Where there is a change under way, acquire() waits.)
  if (entries_ == nullptr || changes_under_way()) return false;
  const QuietLock lock(table_lock_);
  Entry* const to = find(dst);
  Entry* const from = find(src);
  if (to == nullptr || to->end < dst + bytes || from == nullptr || from->end < src + bytes)
    return false;
  *dst_use = use(*to, dst, bytes);
  *src_use = use(*from, src, bytes);
  return true;
}

// True: somebody is to drop what nobody uses.
bool RegionCache::leave(const RegisteredUse& use) noexcept {
  Entry& entry = entries_[use.place];
  --entry.users;
  return entry.users == 0 &&
         (!entry.lasts() || pinned_bytes_ > knob_number(Knob::memory_registered_bytes));
}

void RegionCache::release(const RegisteredUse& use, const RegisteredUse* other) noexcept {
  bool drop = false;
  {
    const QuietLock lock(table_lock_);
    drop = leave(use);
    if (other != nullptr) drop = leave(*other) || drop;
  }
  if (!drop) return;
  const QuietLock lock(registrar_lock_);
  drop_unused(false);
}

std::uintptr_t RegionCache::begin_of(const RegisteredUse& use) noexcept {
  return entries_[use.place].begin;  // (of what is in use others change flags alone)
}

void RegionCache::tidy() noexcept {
  if (!late_.load(std::memory_order_relaxed) || !late_.exchange(false, std::memory_order_relaxed))
    return;
  const QuietLock lock(registrar_lock_);
  drop_unused(false);
}

void RegionCache::spare() noexcept {
  const QuietLock lock(registrar_lock_);
  drop_unused(true);
}

bool RegionCache::holds(std::uintptr_t address, std::size_t bytes) noexcept {
  const QuietLock lock(table_lock_);
  return holds_locked(address, bytes);
}

bool RegionCache::holds_locked(std::uintptr_t address, std::size_t bytes) noexcept {
  const Entry* const known = find(address);
  return known != nullptr && known->end >= address + bytes;
}

void RegionCache::memory_changed(std::uintptr_t begin, std::uintptr_t end) noexcept {
  bool any = false, later = false;
  {
    const QuietLock lock(table_lock_);
    sightings_.forget(begin, end);
    for (std::uint32_t i = 0; i < in_use_; ++i) {
      Entry& entry = entries_[i];
      if (entry.end == 0 || entry.stale || entry.begin >= end || begin >= entry.end) continue;
      entry.stale = any = true;
    }
    later = any && registrar_->unpins_late();
  }
  if (later) late_.store(true, std::memory_order_relaxed);
  if (!any || later) return;
  // Where somebody registers memory now, whose fetching may wait for the program, he drops it.
  if (const QuietLock lock(registrar_lock_, 1); lock) drop_unused(false);
}

void RegionCache::changes_lost() noexcept {
  memory_changed(0, UINTPTR_MAX);
}

void RegionCache::forget() noexcept {
  table_lock_ = registrar_lock_ = PTHREAD_MUTEX_INITIALIZER;
  std::fill(entries_, entries_ + in_use_, Entry{});
  in_use_ = 0;
  pinned_bytes_ = 0;
  sightings_ = {};
}

void RegionCache::close() noexcept {
  if (listens_) end_listening(*this);
  listens_ = false;
  if (entries_ == nullptr) return;
  spare();
  os::unmap(entries_, room * sizeof(Entry));
  entries_ = nullptr;
  in_use_ = 0;
}

void RegionCache::abandon() noexcept {
  end_listening_in_child(*this);
}

}  // namespace haul
