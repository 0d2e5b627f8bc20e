// A table of stacks. The owner of each is told by process and thread.
#include "base/thread_stack.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>

#include "base/os.hpp"
#include "base/sanitizer.hpp"

namespace haul::os {

namespace {

// Mapped when it is first taken. It stays mapped for the next thread, since a thread cannot unmap
// what it runs on.
struct ThreadStack {
  // The process above the thread in it; 0: nobody's. The thread is 0 until it runs.
  std::atomic<std::uint64_t> owner{0};
  std::atomic<bool> released{false};  // by this owner, who may still run
  // Below: whoever took it writes them. Nobody joins the thread before its maker has the handle.
  char* memory = nullptr;
  std::size_t bytes = 0;
  pthread_t handle{};
  void* (*body)(void*) = nullptr;
  void* argument = nullptr;
};

constexpr std::size_t guard_bytes = 4096;
// Movers, aides, the provider's threads, servers of remote atomics. A word or two each.
constexpr int most_stacks = 64;
constinit ThreadStack stacks[most_stacks];

std::uint64_t process_part() noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(process_id())} << 32;
}

// A child of fork has its parent's table, but none of its threads. (haul's threads do not fork.)
bool is_free(const ThreadStack& stack, std::uint64_t owner) noexcept {
  if (owner == 0 || (owner & ~std::uint64_t{0xffffffffu}) != process_part()) return true;
  const auto thread = static_cast<pid_t>(owner & 0xffffffffu);
  // The kernel finds no thread that could still touch its stack.
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

void* run(void* argument) noexcept {
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

// A library that is unloaded takes its table along.
[[gnu::destructor]] void unmap_stacks() noexcept {
  for (ThreadStack& stack : stacks) {
    std::uint64_t owner = stack.owner.load(std::memory_order_relaxed);
    if (stack.bytes != 0 && is_free(stack, owner) &&
        stack.owner.compare_exchange_strong(owner, process_part(), std::memory_order_acquire))
      unmap(stack.memory, stack.bytes + guard_bytes);
  }
}

}  // namespace

int create_thread(pthread_t* thread, pthread_attr_t* attributes, std::size_t bytes,
                  void* (*body)(void*), void* argument) noexcept {
  ThreadStack* const stack = accesses_are_checked ? nullptr : take_stack(bytes, body, argument);
  if (stack == nullptr) {
    const int error = pthread_attr_setstacksize(attributes, bytes);
    return error != 0 ? error : pthread_create(thread, attributes, body, argument);
  }
  int error = pthread_attr_setstack(attributes, stack->memory + guard_bytes, stack->bytes);
  if (error == 0) error = pthread_create(thread, attributes, run, stack);
  if (error == 0) {
    stack->handle = *thread;
  } else {
    stack->owner.store(0, std::memory_order_release);
  }
  return error;
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
