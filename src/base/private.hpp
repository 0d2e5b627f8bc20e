// What a process has once, for haul's other libraries (fabric/, preload/), which carry base/ as
// hidden code of their own: functions of libhaul.so.0 under the version HAUL_PRIVATE. No promise to
// anybody else: libraries of one haul version are installed together.
#pragma once

#include <cstddef>
#include <cstdint>

// This process's arena (memory/arena.hpp): the descriptor of its memory is `fd`, byte x of it lies
// at base + x. fd -1 and bytes 0: there is none (yet). Wait-free but for two system calls, which
// make sure of the descriptor; thread-safe.
struct HaulPrivateArena {
  std::int32_t fd = -1;
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
};
extern "C" [[gnu::visibility("default")]] void haul_private_arena(HaulPrivateArena* arena);

// Whether [address, address + bytes) lies in it: *offset is then its place there. Wait-free, no
// system call.
extern "C" [[gnu::visibility("default")]] bool haul_private_in_arena(const void* address,
                                                                     std::size_t bytes,
                                                                     std::uint64_t* offset);

// What the planner says of messages (plan/messages.hpp) by this machine's stored figures, which
// each call reads from their file, else by defaults; or what HAUL_FABRIC_EAGER_BYTES and
// HAUL_FABRIC_KERNEL_BYTES say. Thread-safe; no lock.
struct HaulPrivateMessageLimits {
  std::size_t eager_bytes = 0;  // up to here a message is sent unasked
  // From here on a copy of small pages by the kernel may pay, and from there on it mostly does.
  std::size_t kernel_try_from_bytes = 0, kernel_from_bytes = 0;
  bool kernel_fixed = false;  // the user said from where: nothing is tried
};
extern "C" [[gnu::visibility("default")]] void haul_private_message_limits(
    HaulPrivateMessageLimits* limits);

// The calling thread's latest error, of Error::sentence_bytes bytes. libhaul.so.0 and
// libhaul-atomic.so.0 both define this function, and both call it by its symbol: where a process
// has loaded both, the definition that the loader finds first serves both, so haul_last_error()
// speaks of whichever library failed last. Neither allocates nor blocks.
extern "C" [[gnu::visibility("default")]] char* haul_private_last_error(void);
