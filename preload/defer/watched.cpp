#include "preload/defer/watched.hpp"

#include <atomic>
#include <cerrno>

#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "base/os/pages/userfault.hpp"

namespace haul::preload {
namespace {

constinit ProcessLock lock;
constinit std::atomic<std::uint32_t> count{0};
constinit Bounds owed[64];
constinit std::atomic<int> descriptor{-1};
constinit std::atomic<unsigned> forks{0};
constinit std::atomic<std::uintptr_t> lowest{UINTPTR_MAX}, highest{0};

void forget_range() noexcept {
  lowest.store(UINTPTR_MAX, std::memory_order_relaxed);
  highest.store(0, std::memory_order_relaxed);
}
constinit std::atomic<std::int64_t> own_process{0};

}  // namespace

Held::Held() noexcept {
  lock.lock(&mask_);
}
Held::~Held() {
  lock.unlock(mask_);
}

int userfault() noexcept {
  return descriptor.load(std::memory_order_relaxed);
}
void set_userfault(int fd) noexcept {
  descriptor.store(fd, std::memory_order_relaxed);
}

unsigned watched_count() noexcept {
  return count.load();
}
void one_more_watched() noexcept {
  if (count.fetch_add(1) == 0) os::futex_wake(&count, 1);
}
void one_less_watched() noexcept {
  if (count.fetch_sub(1) == 1) forget_range();
}
void add_watched(const Bounds& range) noexcept {
  if (range.begin < lowest.load(std::memory_order_relaxed))
    lowest.store(range.begin, std::memory_order_relaxed);
  if (range.end > highest.load(std::memory_order_relaxed))
    highest.store(range.end, std::memory_order_relaxed);
}
bool may_be_watched(const Bounds& range) noexcept {
  return range.overlaps(
      {lowest.load(std::memory_order_relaxed), highest.load(std::memory_order_relaxed)});
}
bool end_watch(const Bounds& range) noexcept {
  if (os::unwatch(userfault(), range.begin, range.end - range.begin) != -ENOMEM) return true;
  for (Bounds& one : owed) {
    if (one.end != 0) continue;
    one = range;
    one_more_watched();
    return false;
  }
  return false;
}
bool end_owed() noexcept {
  bool none = true;
  for (Bounds& one : owed) {
    if (one.end == 0) continue;
    if (os::unwatch(userfault(), one.begin, one.end - one.begin) == -ENOMEM) {
      none = false;
    } else {
      one = {};
      one_less_watched();
    }
  }
  return none;
}
bool is_owed(const Bounds& range) noexcept {
  for (const Bounds& one : owed)
    if (one.overlaps(range)) return true;
  return false;
}

void await_watched() noexcept {
  constexpr std::uint64_t patience_ns = 50'000'000;
  os::futex_wait(&count, 0, patience_ns);
}

void end_await() noexcept {
  os::futex_wake(&count, 1);
}

void* map_empty(std::size_t bytes) noexcept {
  return os::locks_new_memory() ? nullptr : os::map_anonymous(bytes);
}

bool is_own_process() noexcept {
  return os::process_id() == own_process.load(std::memory_order_relaxed);
}

void begin_fork() noexcept {
  forks.fetch_add(1);
}
void end_fork() noexcept {
  forks.fetch_sub(1);
}
bool is_forking() noexcept {
  return forks.load() != 0;
}

void begin_watching() noexcept {
  forks.store(0);
  forget_range();
  own_process.store(os::process_id(), std::memory_order_relaxed);
  lock.forget();
  for (Bounds& one : owed) one = {};
  count.store(0, std::memory_order_relaxed);
}

}  // namespace haul::preload
