// The table of stacks. Each has an owner word {process 32, thread 32}, 0 at first. A thread that
// makes another takes a free stack by compare-and-swap (acquire) to its own process with thread 0;
// the new thread puts its id there when it runs. A stack is free again when its thread was released
// and the kernel knows no such thread any more, so that nothing can touch it; a child of fork, in
// which none of its parent's threads live, finds all of them free.
#include "base/thread/thread_stack.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/os/os.hpp"
#include "base/sanitizer.hpp"

namespace haul::os {

namespace {

// Mapped when it is first taken, and kept mapped for the next thread, since a thread cannot unmap
// the stack it runs on.
struct ThreadStack {
  // {process 32, thread 32}; 0: none. The thread is 0 until it runs.
  std::atomic<std::uint64_t> owner{0};
  std::atomic<bool> released{false};  // by this owner, which may still run
  // The thread that took the stack writes what follows. Nobody joins the new thread before its
  // maker has the handle.
  char* memory = nullptr;
  std::size_t bytes = 0;
  pthread_t handle{};
  void* (*body)(void*) = nullptr;
  void* argument = nullptr;
};

// From its lowest address a stack consists of a guard page, room for the calls of haul's threads,
// and what glibc keeps there, which is mostly the program's thread-local storage.
constexpr std::size_t guard_bytes = 4096;
constexpr std::size_t own_bytes = std::size_t{256} << 10;
constexpr std::size_t checked_bytes = std::size_t{2} << 20;  // a sanitizer's runtime needs more
constexpr std::size_t least_glibc_bytes = std::size_t{16} << 10;  // PTHREAD_STACK_MIN
constexpr std::size_t most_glibc_bytes = std::size_t{256} << 20;
// Movers, aides, the provider's threads, servers of remote atomics. A word or two each.
constexpr int most_stacks = 64;
constinit ThreadStack stacks[most_stacks];

std::uint64_t process_part() noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(process_id())} << 32;
}

bool is_free(const ThreadStack& stack, std::uint64_t owner) noexcept {
  if (owner == 0 || (owner & ~std::uint64_t{0xffffffffu}) != process_part()) return true;
  const auto thread = static_cast<pid_t>(owner & 0xffffffffu);
  return thread != 0 && stack.released.load(std::memory_order_acquire) &&
         !thread_lives(process_id(), thread);
}

bool is_mapped(ThreadStack* stack, std::size_t bytes) noexcept {
  if (stack->bytes >= bytes) return true;
  unmap(stack->memory, stack->bytes + guard_bytes);
  stack->bytes = 0;
  stack->memory = static_cast<char*>(map_anonymous(bytes + guard_bytes));
  if (stack->memory == nullptr) return false;
  mprotect(stack->memory, guard_bytes, PROT_NONE);
  stack->bytes = bytes;
  return true;
}

void* run_on_stack(void* argument) noexcept {
  auto* stack = static_cast<ThreadStack*>(argument);
  stack->owner.store(process_part() | static_cast<std::uint32_t>(thread_id()),
                     std::memory_order_relaxed);
  return stack->body(stack->argument);
}

// NULL if all are in use or memory is short.
ThreadStack* take_stack(std::size_t bytes, void* (*body)(void*), void* argument) noexcept {
  for (ThreadStack& stack : stacks) {
    std::uint64_t owner = stack.owner.load(std::memory_order_relaxed);
    if (!is_free(stack, owner) ||
        !stack.owner.compare_exchange_strong(owner, process_part(), std::memory_order_acquire))
      continue;
    stack.released.store(false, std::memory_order_relaxed);
    stack.body = body;
    stack.argument = argument;
    if (is_mapped(&stack, bytes)) return &stack;
    stack.owner.store(0, std::memory_order_release);
    return nullptr;
  }
  return nullptr;
}

// pthread_create() in the upper `bytes` of the stack, which is given back if that fails.
int create_on(ThreadStack* stack, std::size_t bytes, pthread_t* thread,
              pthread_attr_t* attributes) noexcept {
  char* const top = stack->memory + guard_bytes + stack->bytes;
  int error = pthread_attr_setstack(attributes, top - bytes, bytes);
  if (error == 0) error = pthread_create(thread, attributes, run_on_stack, stack);
  if (error == 0) {
    stack->handle = *thread;
  } else {
    stack->owner.store(0, std::memory_order_release);
  }
  return error;
}

void* end_at_once(void*) noexcept {
  return nullptr;
}

// Finds the size by trial: glibc refuses (EINVAL) a stack without room for what it keeps there, and
// a thread that does nothing else can live on one that has just that. dl_iterate_phdr() could tell
// the size of thread-local storage, too, but it takes a lock of the loader's that another thread
// may hold at a fork, and the child would wait for it for ever. The attributes are a copy, since
// the trial's stack stays in them.
int find_glibc_bytes(pthread_attr_t attributes, std::size_t* found) noexcept {
  static constinit std::atomic<std::size_t> known{0};
  *found = known.load(std::memory_order_relaxed);
  if (*found != 0) return 0;
  for (std::size_t bytes = least_glibc_bytes;; bytes *= 2) {
    ThreadStack* const stack = take_stack(own_bytes + bytes, end_at_once, nullptr);
    if (stack == nullptr) return EAGAIN;
    pthread_t thread;
    const int error = create_on(stack, bytes, &thread, &attributes);
    if (error == 0) {
      join_thread(thread);
      known.store(bytes, std::memory_order_relaxed);
      *found = bytes;
      return 0;
    }
    if (error != EINVAL || bytes >= most_glibc_bytes) return error;
  }
}

}  // namespace

int create_thread(pthread_t* thread, pthread_attr_t* attributes, void* (*body)(void*),
                  void* argument) noexcept {
  if (accesses_are_checked) {
    const int error = pthread_attr_setstacksize(attributes, checked_bytes);
    return error != 0 ? error : pthread_create(thread, attributes, body, argument);
  }
  std::size_t glibc_bytes = 0;
  int error = find_glibc_bytes(*attributes, &glibc_bytes);
  if (error != 0) return error;
  const std::size_t bytes = own_bytes + glibc_bytes;
  ThreadStack* const stack = take_stack(bytes, body, argument);
  if (stack != nullptr) return create_on(stack, bytes, thread, attributes);
  error = pthread_attr_setstacksize(attributes, bytes);
  return error != 0 ? error : pthread_create(thread, attributes, body, argument);
}

void release_stack_of(pthread_t joined) noexcept {
  for (ThreadStack& stack : stacks) {
    const std::uint64_t owner = stack.owner.load(std::memory_order_relaxed);
    if (owner > process_part() && pthread_equal(stack.handle, joined) != 0)
      stack.owner.store(0, std::memory_order_release);
  }
}

void release_own_stack() noexcept {
  const std::uint64_t own = process_part() | static_cast<std::uint32_t>(thread_id());
  for (ThreadStack& stack : stacks) {
    if (stack.owner.load(std::memory_order_relaxed) == own)
      stack.released.store(true, std::memory_order_release);
  }
}

}  // namespace haul::os
