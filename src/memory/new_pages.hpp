// New memory under a copy or fill.
//
// Whoever writes to memory that has no pages yet waits for page faults, not for bytes: with pages
// of 4 KiB a copy takes five to ten times as long as into memory that is there. So the thread that
// is about to move a stretch of a large request asks whether the destination's pages are there,
// and if not, makes them first: pages of 2 MiB where the request overwrites all of such a page
// (MADV_COLLAPSE, which changes no attribute of the mapping, and which the kernel refuses where the
// program has forbidden huge pages), and else small ones, many by one call. Making huge pages
// begins with a wait for every CPU, so nobody does on a machine where more than two threads
// for each CPU want to run (HAUL_MEMORY_HUGE=on: all the same), nor for a while after a long wait.
//
// Each question costs a system call, so it is asked for requests of 1 MiB and more, and the answer
// "they are there" holds for the 2 MiB around: at most 1 to 2 % of a copy in the cache.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul {

inline constexpr std::size_t new_pages_from_bytes = std::size_t{1} << 20;

// Addresses; empty where begin == end.
struct AddressRange {
  std::uintptr_t begin = 0, end = 0;
  std::size_t bytes() const noexcept { return end - begin; }
  bool operator==(const AddressRange&) const = default;
};

// The huge pages that lie in what is overwritten, but for at most 16 KiB of the first and of the
// last: an allocator's header before a block does not cost that block a huge page.
AddressRange huge_range(const AddressRange& overwritten) noexcept;

// One request's contiguous destination, for the thread that moves a part of it.
class NewPages {
 public:
  // `overwritten`: all of it. `request` tells it from other requests with the same destination.
  NewPages(const AddressRange& overwritten, std::uint64_t request) noexcept;

  // Makes pages for the front of [at, at + length), or finds that it need not. How many bytes from
  // `at` on may be written now; then it is to be called again. 1 to length; no failure: what could
  // not be made is left to page faults. Any thread, signal handlers too; no lock, no allocation.
  std::size_t make(std::uintptr_t at, std::size_t length) noexcept;

 private:
  // Makes huge pages from `block` on, one at least and further ones below `end`. Where they end;
  // `block` if there are none.
  std::uintptr_t make_huge(std::uintptr_t block, std::uintptr_t end) noexcept;
  // For a block of which one page is there: it must not be taken for a whole one.
  void make_small(std::uintptr_t block) const noexcept;
  static std::uintptr_t count_huge(std::uintptr_t block, std::uintptr_t next) noexcept;
  // Decides what a failure at `block` says of the others; returns `block`.
  std::uintptr_t refuse(std::uintptr_t block, int result) noexcept;

  AddressRange overwritten_, huge_;
  std::uint64_t request_;
  bool off_;
};

// Do the system (sysfs says "madvise") and HAUL_MEMORY_HUGE want huge pages made?
bool huge_pages_wanted() noexcept;

// Has a request of at least new_pages_from_bytes that begins here a destination without pages, as
// far as its middle tells? False for shorter ones, unasked.
bool pages_missing(std::uintptr_t dst, std::size_t length) noexcept;

// How many bytes all requests of this process have put on new huge pages so far.
std::uint64_t huge_bytes_made() noexcept;

}  // namespace haul
