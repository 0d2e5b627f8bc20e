#include "preload/mem/together.hpp"

#include <dlfcn.h>
#include <haul/haul.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csignal>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/thread/own_threads.hpp"
#include "preload/defer/guards.hpp"
#include "preload/defer/pending.hpp"
#include "preload/defer/touches.hpp"
#include "preload/defer/watched.hpp"
#include "preload/mem/sites.hpp"
#include "preload/protect/fault_handler.hpp"
#include "preload/protect/protected.hpp"

namespace haul::preload {
namespace {

// This process, kept up by fork(). A child that shares its parent's memory has another id.
constinit std::atomic<std::int64_t> own_process{0};
// For which process the mover was made, and this thread has met it.
constinit std::atomic<std::int64_t> met_by_process{0};
constinit thread_local std::int64_t met_by_thread = 0;
// haul has no mover for that process: not asked again.
constinit std::atomic<std::int64_t> refused_process{0};

bool handles_faults() noexcept {
  for (const int signal : {SIGSEGV, SIGBUS}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) return true;
    if (action.sa_handler != SIG_DFL || (action.sa_flags & SA_SIGINFO) != 0) return true;
  }
  return false;
}

// What the program was started with: some starters pass on what they block themselves.
constinit sigset_t blocked_at_start{};

// Has the program blocked a signal since, as a handler has?
bool any_signal_blocked() noexcept {
  sigset_t blocked;
  if (pthread_sigmask(SIG_BLOCK, nullptr, &blocked) != 0) return true;
  for (int signal = 1; signal < SIGRTMIN; ++signal)
    if (sigismember(&blocked, signal) == 1 && sigismember(&blocked_at_start, signal) != 1)
      return true;
  return false;
}

// The addresses of a module that holds malloc(); empty where begin == end.
struct Module {
  std::uintptr_t begin = 0, end = 0;
  bool holds(std::uintptr_t address) const noexcept { return begin <= address && address < end; }
};
// The program's malloc(), and the one behind this library: in a program that is not
// position-independent the first may be a mere jump to the second. Written by the constructor.
constinit Module allocators[2];

// Where the loader has put the module of this address.
Module module_of(const void* address) noexcept {
  struct Search {
    std::uintptr_t wanted;
    Module found;
  } search{reinterpret_cast<std::uintptr_t>(address), {}};
  const auto look = [](dl_phdr_info* info, std::size_t, void* context) {
    auto& [wanted, found] = *static_cast<Search*>(context);
    Module module{~std::uintptr_t{0}, 0};
    for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = info->dlpi_phdr[i];
      if (part.p_type != PT_LOAD) continue;
      const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
      module.begin = std::min(module.begin, begin);
      module.end = std::max(module.end, begin + part.p_memsz);
    }
    if (!module.holds(wanted)) return 0;
    found = module;
    return 1;
  };
  dl_iterate_phdr(look, &search);
  return search.found;
}

bool in_allocator(std::uintptr_t site) noexcept {
  bool known = false;
  for (const Module& allocator : allocators) {
    if (allocator.holds(site)) return true;
    known = known || allocator.end != 0;
  }
  return !known;
}

}  // namespace

bool is_calm(std::uintptr_t site) noexcept {
  return !any_signal_blocked() && !in_allocator(site);
}

namespace {

// Makes sure that this thread and a mover know each other.
bool meet(std::uintptr_t site) noexcept {
  const std::int64_t process = os::process_id();
  if (process != own_process.load(std::memory_order_relaxed)) {
    count_refusal(NotShared::not_calm);
    return false;
  }
  if (met_by_thread == process) return true;
  if (refused_process.load(std::memory_order_relaxed) == process) return false;
  if (!is_calm(site)) {
    count_refusal(NotShared::not_calm);
    return false;
  }
  if (met_by_process.load(std::memory_order_relaxed) != process) {
    if (haul_wake() != HAUL_OK) {
      count_refusal(NotShared::no_mover);
      refused_process.store(process, std::memory_order_relaxed);
      return false;
    }
    met_by_process.store(process, std::memory_order_relaxed);
  }
  met_by_thread = process;
  return true;
}

void know_child() noexcept {
  own_process.store(os::process_id(), std::memory_order_relaxed);
  begin_process();
  begin_handling();
  forget_server();
}

}  // namespace

void know_process() noexcept {
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked_at_start);
  know_child();
  allocators[0] = module_of(dlsym(RTLD_DEFAULT, "malloc"));
  allocators[1] = module_of(dlsym(RTLD_NEXT, "malloc"));
  know_guarded();
  know_signal_functions();
  pthread_atfork(settle_for_fork, end_fork, know_child);
}

bool may_share(std::uintptr_t site) noexcept {
  if (!handles_faults()) return meet(site);
  count_refusal(NotShared::handled_faults);
  return false;
}

bool may_defer(std::uintptr_t site) noexcept {
  return meet(site);
}

bool move_together(Operation operation, std::uintptr_t dst, std::uintptr_t src_or_value,
                   std::size_t length) noexcept {
  void* const to = reinterpret_cast<void*>(dst);
  haul_request request =
      operation == Operation::copy
          ? haul_request_copy(to, reinterpret_cast<const void*>(src_or_value), length)
          : haul_request_fill(to, src_or_value, 1, length);
  request.flags = HAUL_DEDICATED;
  haul_ticket ticket;
  return haul_submit(&request, 1, &ticket) == 1 && haul_wait(ticket) == HAUL_OK;
}

void part_from_mover() noexcept {
  // (A child of vfork() has the memory, and none of the threads.)
  if (!is_own_process()) return;
  protect_no_more();
  const bool served = serve_no_more();
  const std::int64_t process = os::process_id();
  const bool met = met_by_process.load(std::memory_order_relaxed) == process;
  if (!served && !met) return;
  // Whoever has met it is told by haul that there is none.
  refused_process.store(process, std::memory_order_relaxed);
  if (met) haul_shutdown();
  // Its helpers end when they have done what they are at.
  constexpr std::uint64_t patience_ns = 1'000'000'000, pause_ns = 1'000'000;
  const std::uint64_t begun = now_ns();
  while (os::any_own_threads() && now_ns() - begun < patience_ns) os::sleep_ns(pause_ns);
}

}  // namespace haul::preload
