#include "memory/new_pages.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/knobs.hpp"
#include "base/machine/busy.hpp"
#include "base/machine/clock.hpp"
#include "base/machine/huge_pages.hpp"
#include "base/machine/pages.hpp"
#include "memory/arena.hpp"

namespace haul {
namespace {

constexpr std::size_t block_bytes = os::huge_page_bytes;
constexpr std::size_t spare_bytes = 16 * 1024;
// Small pages by one call. A longer stretch would leave the cache before it is written.
constexpr std::size_t populate_bytes = 256 * 1024;

// Huge pages by one call: the kernel begins each by waiting until every CPU has done some work
// (lru_add_drain_all()), which on a busy machine takes a time slice. More of them would leave the
// cache before they are written.
constexpr std::size_t collapse_bytes = 4 * block_bytes;

constexpr std::uintptr_t down(std::uintptr_t address, std::size_t unit) noexcept {
  return address & ~(unit - 1);
}
constexpr std::uintptr_t up(std::uintptr_t address, std::size_t unit) noexcept {
  return down(address + unit - 1, unit);
}

// The choices of HAUL_MEMORY_HUGE.
constexpr std::uint64_t huge_auto = 0, huge_off = 2;

// The 2 MiB in which the calling thread last found pages that were there, of which request.
struct FoundPages {
  AddressRange overwritten;
  std::uint64_t request = 0;
  std::uintptr_t block = 0;
  bool operator==(const FoundPages&) const = default;
};
constinit thread_local FoundPages found;

// Huge pages that cannot be had now cost a search for contiguous memory each time: after a failure
// nobody asks for 1 ms, after the next for 2, up to a second. Relaxed: a thread that sees old words
// asks once too often.
constexpr std::uint64_t first_pause_ns = 1'000'000;
constexpr unsigned longest_pause_log2 = 10;
// A huge page spares about that much in place of small ones. Where the thread waited for longer,
// nobody asks for a hundred times as long: so waits take a hundredth of the time at most.
constexpr std::uint64_t late_block_ns = 500'000, pause_a_wait = 100;
constinit std::atomic<std::uint64_t> resume_ns{0};
constinit std::atomic<unsigned> failures{0};
constinit std::atomic<std::uint64_t> made_bytes{0};

// A shorter pause does not end a longer one.
void pause_for(std::uint64_t ns) noexcept {
  const std::uint64_t until_ns = now_ns() + ns;
  if (until_ns > resume_ns.load(std::memory_order_relaxed))
    resume_ns.store(until_ns, std::memory_order_relaxed);
}

void note_failure() noexcept {
  const unsigned before = failures.load(std::memory_order_relaxed);
  failures.store(std::min(before + 1, longest_pause_log2), std::memory_order_relaxed);
  pause_for(first_pause_ns << before);
}

void note_wait(std::uint64_t waited_ns) noexcept {
  pause_for(pause_a_wait * waited_ns);
}

// The kernel's wait for all CPUs is a lock of the whole system: where they are busy, it was seen to
// take from milliseconds to five seconds.
bool is_busy() noexcept {
  if (!cpus_are_crowded()) return false;
  pause_for(first_pause_ns);
  return true;
}

// (Under HAUL_MEMORY_HUGE=on neither load nor waits count, but failures do.)
bool paused() noexcept {
  const bool is_auto = knob_number(Knob::memory_huge) == huge_auto;
  if (!is_auto && failures.load(std::memory_order_relaxed) == 0) return false;
  return now_ns() < resume_ns.load(std::memory_order_relaxed) || (is_auto && is_busy());
}

// Read once: 0 not yet, 1 no, 2 yes.
constinit std::atomic<int> system_gives{0};
bool wanted() noexcept {
  int gives = system_gives.load(std::memory_order_relaxed);
  if (gives == 0) {
    gives = os::huge_pages_on_request() ? 2 : 1;
    system_gives.store(gives, std::memory_order_relaxed);
  }
  return gives == 2;
}

// Private, or of the arena, whose pages are this process's to make.
bool is_own(std::uintptr_t page) noexcept {
  return arena_bounds.contains(page, os::page_bytes) || os::is_private(page);
}

}  // namespace

AddressRange huge_range(const AddressRange& overwritten) noexcept {
  const std::uintptr_t begin =
      up(overwritten.begin - std::min(overwritten.begin, spare_bytes), block_bytes);
  const std::uintptr_t end = down(overwritten.end + spare_bytes, block_bytes);
  return begin < end ? AddressRange{begin, end} : AddressRange{};
}

NewPages::NewPages(const AddressRange& overwritten, std::uint64_t request) noexcept
    : overwritten_(overwritten),
      request_(request),
      off_(overwritten.bytes() < new_pages_from_bytes ||
           knob_number(Knob::memory_huge) == huge_off) {
  if (!off_ && wanted()) huge_ = huge_range(overwritten);
}

std::size_t NewPages::make(std::uintptr_t at, std::size_t length) noexcept {
  if (off_) return length;
  const std::uintptr_t block = down(at, block_bytes);
  const std::uintptr_t end = std::min(at + length, block + block_bytes);
  const std::size_t here = end - at;
  const FoundPages whole{overwritten_, request_, block};
  if (found == whole) return here;
  const std::uintptr_t page = up(at, os::page_bytes);
  const std::uintptr_t last = down(end, os::page_bytes);
  if (page >= last) return here;
  if (os::is_resident(page)) {
    found = whole;
    return here;
  }
  if (huge_.begin <= block && block < huge_.end) {
    const std::uintptr_t made = make_huge(block, at + length);
    if (made > block) return std::min(made, at + length) - at;
  }
  const std::uintptr_t small = std::min(page + populate_bytes, last);
  if (!os::populate(page, small - page)) return here;
  return (small == last ? end : small) - at;
}

std::uintptr_t NewPages::make_huge(std::uintptr_t block, std::uintptr_t end) noexcept {
  if (paused()) return block;
  // The first block may begin before the destination, so its page is another one.
  const std::uintptr_t first = std::max(block, up(overwritten_.begin, os::page_bytes));
  // The kernel wants one small page to be there.
  if (!os::populate(first, os::page_bytes)) return block;
  // Where the program has asked for huge pages itself (numpy does), that page came as a huge one.
  if (os::is_resident(block + block_bytes / 2)) return count_huge(block, block + block_bytes);
  // Collapsing a file's pages would give other processes' memory another form.
  if (!is_own(first)) return refuse(block, -EINVAL);
  const std::uintptr_t last =
      std::min(huge_.end, down(std::min(end, block + collapse_bytes), block_bytes));
  std::uintptr_t next = block + block_bytes;
  for (; next < last && !os::is_resident(next); next += block_bytes) {
    if (!os::populate(next, os::page_bytes)) break;
    if (is_own(next)) continue;
    make_small(next);
    break;
  }
  const std::uint64_t begun_ns = now_ns(), cpu_begun_ns = thread_cpu_ns();
  const int result = os::collapse_to_huge(block, next - block);
  const std::uint64_t cpu_ns = thread_cpu_ns() - cpu_begun_ns, taken_ns = now_ns() - begun_ns;
  const std::uint64_t late_ns = (next - block) / block_bytes * late_block_ns;
  if (taken_ns > cpu_ns + late_ns) note_wait(taken_ns - cpu_ns);
  if (result == 0) return count_huge(block, next);
  for (std::uintptr_t other = block + block_bytes; other < next; other += block_bytes)
    make_small(other);
  return refuse(block, result);
}

void NewPages::make_small(std::uintptr_t block) const noexcept {
  const std::uintptr_t end = std::min(block + block_bytes, down(overwritten_.end, os::page_bytes));
  if (block < end) os::populate(block, end - block);
}

std::uintptr_t NewPages::count_huge(std::uintptr_t block, std::uintptr_t next) noexcept {
  if (failures.load(std::memory_order_relaxed) != 0) failures.store(0, std::memory_order_relaxed);
  made_bytes.fetch_add(next - block, std::memory_order_relaxed);
  return next;
}

std::uintptr_t NewPages::refuse(std::uintptr_t block, int result) noexcept {
  // Another thread is at the same block.
  if (result == -EAGAIN) return block;
  // At an end of the destination the mapping may end, too. Else the mapping or the system refuses
  // the other blocks for the same reason.
  if (block >= overwritten_.begin && block + block_bytes <= overwritten_.end) {
    huge_ = AddressRange{};
    if (result != -EINVAL) note_failure();
  }
  return block;
}

bool huge_pages_wanted() noexcept {
  return knob_number(Knob::memory_huge) != huge_off && wanted();
}

bool pages_missing(std::uintptr_t dst, std::size_t length) noexcept {
  return length >= new_pages_from_bytes && !os::is_resident(down(dst + length / 2, os::page_bytes));
}

std::uint64_t huge_bytes_made() noexcept {
  return made_bytes.load(std::memory_order_relaxed);
}

}  // namespace haul
