#include "preload/born/copier.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "preload/next_function.hpp"

namespace haul::preload {
namespace {

constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, Linux 5.14
constexpr std::size_t page_bytes = 4096;
// The memory map is not held for longer than this takes, about a millisecond.
constexpr std::size_t step_bytes = std::size_t{1} << 20;
// As much as is copied in the time in which a thread starts.
constexpr std::size_t copy_at_once_bytes = std::size_t{256} << 10;
// Time for exec, so that a child that calls it at once does not share its core with the copier, nor
// has to wait until the copier's work is thrown away.
constexpr long patience_ns = 300'000;

struct Range {
  std::uintptr_t begin = 0, end = 0;
};
constinit Range ranges[1024];
constinit std::size_t range_count = 0, planned_bytes = 0;

constinit NextFunction<int(int (*)(void*), void*, int, void*, void*, void*, void*)> next_clone(
    "clone");

// The copier's thread in the system: the kernel writes 0 when it has ended.
constinit std::atomic<std::uint32_t> copier{0};
// It counts as a thread for some more microseconds: its number until it was seen to be gone.
constinit std::atomic<pid_t> leaving{0};
alignas(16) constinit std::byte stack[16 * 1024] = {};

// Calls the kernel and nothing else: the copier has the thread-local storage of the thread that has
// made it, and libc's functions would write that one's errno.
long call(long number, long first, long second, long third) noexcept {
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(first), "S"(second), "d"(third)
               : "rcx", "r11", "memory");
  return result;
}

void copy_range(Range range) noexcept {
  for (std::uintptr_t at = range.begin; at < range.end;) {
    const std::size_t bytes = std::min<std::size_t>(step_bytes, range.end - at);
    // Refused where the child has put something else in a page's place, which is its own then; the
    // others are copied.
    if (os::advise(reinterpret_cast<void*>(at), bytes, populate_write) != 0) {
      for (std::size_t page = 0; page < bytes; page += page_bytes)
        os::advise(reinterpret_cast<void*>(at + page), page_bytes, populate_write);
    }
    at += bytes;
  }
}

void copy_all() noexcept {
  for (std::size_t i = 0; i < range_count; ++i) copy_range(ranges[i]);
}

int copy_in_peace(void* pipe) {
  // Its own table of descriptors: what else it holds open, others wait to see closed.
  const long kept = reinterpret_cast<long>(pipe);
  if (kept > 0) call(SYS_close_range, 0, kept - 1, 0);
  call(SYS_close_range, kept + 1, ~0u, 0);
  timespec patience{0, patience_ns};
  call(SYS_nanosleep, reinterpret_cast<long>(&patience), 0, 0);
  copy_all();
  call(SYS_exit, 0, 0, 0);
  return 0;
}

}  // namespace

void prepare_copier() noexcept {
  next_clone.get();
}

bool plan_copy(std::uintptr_t at, std::size_t bytes) noexcept {
  Range* const last = range_count != 0 ? &ranges[range_count - 1] : nullptr;
  if (last != nullptr && last->end == at) {
    last->end += bytes;
  } else {
    if (range_count == std::size(ranges)) return false;
    if (range_count == 0 &&
        os::advise(reinterpret_cast<void*>(at), page_bytes, populate_write) != 0)
      return false;
    ranges[range_count++] = {at, at + bytes};
  }
  planned_bytes += bytes;
  return true;
}

void start_copier(int pipe) noexcept {
  const KeepErrno keep;
  // A child that runs before all ordinary threads could wait for its parent, and the copier for it.
  if (pipe < 0 || planned_bytes <= copy_at_once_bytes || os::real_time_thread()) return copy_all();
  copier.store(1, std::memory_order_relaxed);
  os::SignalMask mask;
  os::block_signals(&mask);  // the copier never runs a handler
  constexpr int kind =
      CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
  const int thread =
      next_clone.get()(copy_in_peace, stack + sizeof stack, kind,
                       reinterpret_cast<void*>(static_cast<long>(pipe)), nullptr, nullptr, &copier);
  os::restore_signals(mask);
  if (thread > 0) return leaving.store(thread, std::memory_order_relaxed);
  copier.store(0, std::memory_order_relaxed);
  copy_all();
}

void await_copier() noexcept {
  const pid_t thread = leaving.load(std::memory_order_relaxed);
  if (thread == 0) [[likely]]
    return;
  const KeepErrno keep;
  while (const std::uint32_t running = copier.load(std::memory_order_acquire))
    os::futex_wait_shared(&copier, running, 0);
  // The kernel wakes one.
  os::futex_wake_shared(&copier, INT32_MAX);
  constexpr std::uint64_t look_ns = 20'000;
  constexpr int most_looks = 50'000;  // a tracer may keep it
  for (int i = 0; i < most_looks && os::thread_lives(os::process_id(), thread); ++i)
    os::sleep_ns(look_ns);
  leaving.store(0, std::memory_order_relaxed);
}

}  // namespace haul::preload
