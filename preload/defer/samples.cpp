#include "preload/defer/samples.hpp"

#include <algorithm>
#include <cerrno>

#include "base/machine/clock.hpp"
#include "base/machine/huge_pages.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/own_memory.hpp"
#include "base/os/pages/userfault.hpp"

namespace haul::preload {
namespace {

using os::page_bytes;

struct Sample {
  Bounds page;  // empty: free
  // Where a destination's page lies meanwhile; 0: a source's, which stays where it is.
  std::uintptr_t aside = 0;
  DistanceTally* tally = nullptr;
  std::uint64_t begun_ns = 0;
  bool ends = false;  // it has told, and is to be over as soon as the kernel lets
  // What is registered. (Another's registration must not be ended: older kernels would.)
  bool page_watched = false, aside_watched = false;

  Side side() const noexcept { return aside != 0 ? Side::destination : Side::source; }
  bool is_free() const noexcept { return page.end == 0; }
  std::size_t bytes() const noexcept { return page.end - page.begin; }
};

constexpr unsigned room = 64;
constexpr unsigned places_room = 24;  // of these, for destinations
constexpr std::size_t places_bytes = (places_room + 1) * os::huge_page_bytes;
constexpr std::uint64_t patience_ns = 1'000'000'000;

constinit Sample table[room];
// Where pages are put aside: a place for each of the first entries of the table.
constinit std::uintptr_t places = 0;
constinit bool asked_for_places = false;
constinit void* mapped_places = nullptr;

// False: not now, and what lies there stays.
bool unwatch_aside(Sample& sample) noexcept {
  if (sample.aside_watched)
    sample.aside_watched = !end_watch({sample.aside, sample.aside + sample.bytes()});
  return !sample.aside_watched;
}

void free_entry(Sample& sample) noexcept {
  if (sample.page_watched) end_watch(sample.page);
  // (What was copied back is still there. Watched no more, nobody is held for dropping it.)
  if (sample.side() == Side::destination && unwatch_aside(sample))
    os::drop_own_pages(reinterpret_cast<void*>(sample.aside), sample.bytes());
  sample.page = {};
  one_less_watched();
}

// What the program has moved: [from.begin, from.end) lies at `to` now.
struct Moved {
  Bounds from;
  std::uintptr_t to = 0;

  bool has(std::uintptr_t at) const noexcept { return from.begin <= at && at < from.end; }
  std::uintptr_t place_of(std::uintptr_t at) const noexcept {
    return has(at) ? to + (at - from.begin) : at;
  }
  // As one, or not at all.
  bool keeps_together(const Bounds& page) const noexcept {
    return has(page.begin) == has(page.end - 1);
  }
};

// Is what was to be brought back not in the way any more? Somebody has put a page there, the memory
// or the process is gone, or nothing was put aside.
bool is_settled(std::int64_t result) noexcept {
  return result == -EEXIST || result == -ENOENT || result == -ESRCH;
}

// Brings the page of a destination back. What the kernel will not move is copied: a child of a raw
// fork has the page, too, or the program has locked the memory or changed its protection. False:
// not now, or not by this thread, in whose descriptor table the userfaultfd may be closed.
bool bring_back(Sample& sample, const Moved& moved) noexcept {
  const int fd = userfault();
  const std::size_t step = moved.keeps_together(sample.page) ? sample.bytes() : page_bytes;
  for (std::size_t done = 0; done < sample.bytes();) {
    const std::size_t bytes = std::min(step, sample.bytes() - done);
    const std::uintptr_t to = moved.place_of(sample.page.begin + done), from = sample.aside + done;
    std::int64_t result = os::move_pages(fd, to, from, bytes);
    if (result == -EBUSY || result == -EINVAL) {
      // Copying reads what is aside, and must not be held by a hole there.
      unwatch_aside(sample);
      result = os::provide(fd, to, from, bytes);
    }
    if (result > 0) {
      done += static_cast<std::size_t>(result);
    } else if (is_settled(result)) {
      done += page_bytes;
    } else {
      return false;
    }
  }
  return true;
}

// False: not now, and whoever is held waits on.
bool end(Sample& sample, const Moved& moved = {}) noexcept {
  sample.ends = true;
  if (sample.side() == Side::destination && !bring_back(sample, moved)) return false;
  free_entry(sample);
  return true;
}

// Notes what the sample has told, and ends it.
bool conclude(Sample& sample, std::size_t distance) noexcept {
  if (!sample.ends) sample.tally->counts[distance].fetch_add(1, std::memory_order_relaxed);
  return end(sample);
}

bool watch(Sample& sample) noexcept {
  const int fd = userfault();
  const std::uintptr_t page = sample.page.begin;
  const std::size_t bytes = sample.bytes();
  if (sample.side() == Side::source) {
    sample.page_watched = os::watch(fd, page, bytes, os::WatchFor::writes) == 0;
    return sample.page_watched && os::protect_writes(fd, page, bytes, true) == 0;
  }
  sample.page_watched = os::watch(fd, page, bytes, os::WatchFor::missing) == 0;
  sample.aside_watched =
      sample.page_watched && os::watch(fd, sample.aside, bytes, os::WatchFor::missing) == 0;
  // All of it at once, or nothing.
  return sample.aside_watched &&
         os::move_pages(fd, sample.aside, page, bytes) == static_cast<std::int64_t>(bytes);
}

// Once.
bool make_places() noexcept {
  if (asked_for_places || os::addresses_are_limited()) return false;
  asked_for_places = true;
  void* const made = map_empty(places_bytes);
  if (made == nullptr) return false;
  mapped_places = made;
  places = (reinterpret_cast<std::uintptr_t>(made) + os::huge_page_bytes - 1) &
           ~(os::huge_page_bytes - 1);
  return true;
}

}  // namespace

void begin_sample(const Bounds& page, Side side, DistanceTally& tally) noexcept {
  if (is_forking() || (places == 0 && !make_places())) return;
  Sample* entry = nullptr;
  for (Sample& sample : table) {
    if (sample.page.overlaps(page)) return;
    const bool has_place = &sample - table < static_cast<std::ptrdiff_t>(places_room);
    if (sample.is_free() && has_place == (side == Side::destination)) entry = &sample;
  }
  if (entry == nullptr || is_owed(page)) return;
  const std::uintptr_t place =
      places + static_cast<std::size_t>(entry - table) * os::huge_page_bytes;
  if (side == Side::destination && is_owed({place, place + os::huge_page_bytes})) return;
  *entry = Sample{.page = page, .tally = &tally, .begun_ns = now_ns()};
  if (side == Side::destination) entry->aside = place;
  one_more_watched();
  add_watched(page);
  // (A huge page that is just being split may have been moved in part.)
  if (!watch(*entry)) end(*entry);
}

bool serve_sampled(std::uintptr_t address, Side side) noexcept {
  for (Sample& sample : table) {
    if (address < sample.page.begin || address >= sample.page.end || sample.side() != side)
      continue;
    conclude(sample, distance_class(now_ns() - sample.begun_ns));
    return true;
  }
  return false;
}

bool move_sampled(const Bounds& from, std::uintptr_t to) noexcept {
  bool all = true;
  for (Sample& sample : table) {
    if (!sample.page.overlaps(from)) continue;
    const Moved moved{from, to};
    if (end(sample, moved)) continue;
    add_watched(
        {moved.place_of(sample.page.begin), moved.place_of(sample.page.begin) + sample.bytes()});
    // (A page that was torn, at a moment when the kernel could not: its begin is what counts.)
    const std::uintptr_t begin = moved.place_of(sample.page.begin);
    sample.page = {begin, begin + sample.bytes()};
    all = false;
  }
  return all;
}

void forget_sampled(const Bounds& range) noexcept {
  for (Sample& sample : table) {
    if (!sample.page.overlaps(range)) continue;
    if (range.begin <= sample.page.begin && sample.page.end <= range.end) {
      free_entry(sample);
      continue;
    }
    // A part of a huge page: the rest is still to come back.
    if (sample.side() == Side::destination) {
      const std::uintptr_t begin = std::max(range.begin, sample.page.begin);
      const std::uintptr_t end_of_part = std::min(range.end, sample.page.end);
      if (unwatch_aside(sample))
        os::drop_own_pages(reinterpret_cast<void*>(sample.aside + (begin - sample.page.begin)),
                           end_of_part - begin);
    }
    end(sample);
  }
}

bool end_samples(const Bounds& range, bool given_back) noexcept {
  bool all = true;
  for (Sample& sample : table)
    if (sample.page.overlaps(range))
      all = (given_back ? conclude(sample, distance_never) : end(sample)) && all;
  return all;
}

bool end_old_samples() noexcept {
  const std::uint64_t now = now_ns();
  bool all = true;
  for (Sample& sample : table) {
    if (sample.is_free()) continue;
    if (sample.ends) {
      all = end(sample) && all;
    } else if (now - sample.begun_ns >= patience_ns) {
      all = conclude(sample, distance_class(patience_ns)) && all;
    }
  }
  return all;
}

void sample_no_more() noexcept {
  asked_for_places = true;
  places = 0;
  os::unmap(mapped_places, places_bytes);
  mapped_places = nullptr;
}

void forget_samples() noexcept {
  for (Sample& sample : table) sample.page = {};
}

}  // namespace haul::preload
