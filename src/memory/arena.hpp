// The arena: memory of this process that other processes can be given access to. One sealed memfd
// lies behind one reserved range of addresses; haul_alloc() and haul_free() give out its pages.
// Address base + x is byte x of the memfd, so a process that maps the memfd finds every address by
// one addition.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace haul {

// Where the arena lies. (A copy asks whether the service knows it: Gate::maps().) Written once,
// when the arena is made; again in a child of fork, whose arena is another one. In a bare clone()'s
// child, in which no handler runs, it is the parent's until the child first calls a function of the
// arena.
struct ArenaBounds {
  std::atomic<std::uintptr_t> base{0};
  std::atomic<std::size_t> bytes{0};  // 0: there is none

  // Lies [address, address + length) in this process's own arena? (It need not be allocated.)
  // Wait-free. An empty range does.
  bool contains(std::uintptr_t address, std::size_t length) const noexcept {
    const std::size_t size = bytes.load(std::memory_order_acquire);
    const std::uintptr_t offset = address - base.load(std::memory_order_relaxed);
    return offset < size && length <= size - offset;
  }
};
extern constinit ArenaBounds arena_bounds;

// Allocates zeroed pages, at the lowest addresses that are free and a multiple of `alignment` (a
// power of two from a page to 2 MiB, to which the arena itself is aligned); nullptr with *error
// (no_memory: address space, descriptors or memory exhausted; invalid: 0 bytes or more than the
// arena has). Thread-safe; holds a lock, with signals blocked, and makes system calls. Calls no
// malloc (except in pthread_atfork(), once, before it takes the lock). Waits for nothing while it
// holds the lock. (Where the program locks its future memory, the kernel fills in what is mapped, a
// second for some GiB. It is not mapped in pieces, since a limit on locked memory that refused one
// would leave those before it locked.)
void* arena_allocate(std::size_t bytes, std::size_t alignment, Error* error) noexcept;

// Frees what arena_allocate() returned, at once: the pages go back to the system, in pieces and
// without the lock. invalid for any other address, including one freed already, or just being freed
// by another thread; io if the kernel refuses to take the pages: they stay allocated, and those
// before the refused ones may read as zeroes. In a child of fork, memory of the parent's arena is
// only forgotten: the parent still has it.
Code arena_free(void* address, Error* error) noexcept;

// The memfd, base and size of this process's arena for the service; fd -1 if there is none (yet),
// or if the program has closed the descriptor. Takes no lock: movers may ask while a thread forks.
struct ArenaView {
  int fd = -1;
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
};
ArenaView arena_view() noexcept;

// Runs when the arena is made, on the thread that made it, without the arena's lock: the link to
// the service hands it over. Set before any allocation.
using ArenaHook = void (*)() noexcept;
void on_arena_made(ArenaHook hook) noexcept;

// For a child of fork, which finds the lock free. (If the fork came in the middle of another
// thread's allocation, the child does not know what it inherited, and takes every address that is
// not its own for inherited.) The first allocation registers this as a fork handler; nobody else
// need call it. The child's first allocation makes an arena of its own; what it inherited stays
// mapped, shared with its parent.
void arena_after_fork_child() noexcept;

}  // namespace haul
