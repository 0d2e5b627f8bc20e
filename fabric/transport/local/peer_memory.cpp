// Probing and mapping a peer's memory.
#include "fabric/transport/local/peer_memory.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/machine/huge_pages.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"

namespace haul::fabric {
namespace {

constexpr std::size_t page_bytes = 4096;

const char* explain(int error) noexcept {
  switch (error) {
    case EPERM:
    case EACCES:
      return "the kernel refuses process_vm_readv (needs ptrace rights and a seccomp filter that "
             "allows it)";
    case ENOSYS: return "this kernel or its seccomp filter lacks process_vm_readv";
    case ESRCH: return "the peer's process was gone when it was probed";
    default: return describe_errno(error);
  }
}

}  // namespace

PeerMemory::PeerMemory(pid_t pid, std::uint64_t probe_address, std::uint64_t probe_value) noexcept
    : pid_(pid), probe_address_(probe_address), probe_value_(probe_value) {
  const char* why = "";
  if (probe_kernel(&why)) {
    kernel_.store(true, std::memory_order_relaxed);
  } else {
    note("by the kernel", why);
  }
}

PeerMemory::~PeerMemory() {
  if (space_ != HAUL_SPACE_SELF) haul_space_close(space_);
  os::unmap(arena_, arena_bytes_.load(std::memory_order_relaxed));
}

bool PeerMemory::probe_word_seen() const noexcept {
  std::uint64_t seen = 0;
  const iovec local{&seen, sizeof seen};
  const iovec remote{reinterpret_cast<void*>(probe_address_), sizeof seen};
  return os::read_process(pid_, &local, 1, &remote, 1) == static_cast<ssize_t>(sizeof seen) &&
         seen == probe_value_;
}

// Reads the peer's word, and writes back what it read: a filter may refuse one and not the other.
bool PeerMemory::probe_kernel(const char** why) noexcept {
  if (pid_ <= 0) {
    *why = "the peer is in another pid namespace";
    return false;
  }
  std::uint64_t seen = 0;
  const iovec local{&seen, sizeof seen};
  const iovec remote{reinterpret_cast<void*>(probe_address_), sizeof seen};
  ssize_t moved = os::read_process(pid_, &local, 1, &remote, 1);
  if (moved == static_cast<ssize_t>(sizeof seen) && seen == probe_value_)
    moved = os::write_process(pid_, &local, 1, &remote, 1);
  if (moved < 0) {
    *why = explain(static_cast<int>(-moved));
    return false;
  }
  if (moved != static_cast<ssize_t>(sizeof seen) || seen != probe_value_) {
    *why = "what was read was not the peer's memory";
    return false;
  }
  return true;
}

void PeerMemory::note(const char* way, const char* why) noexcept {
  const std::size_t used = std::strlen(why_);
  std::snprintf(why_ + used, sizeof why_ - used, "%s%s: %s", used != 0 ? "; " : "", way, why);
  static std::atomic<bool> logged{false};
  if (logged.exchange(true, std::memory_order_relaxed)) return;
  log(LogLevel::info,
      "messages: process %d is not reached %s: %s; large messages go through shared cells instead",
      static_cast<int>(pid_), way, why);
}

void PeerMemory::take_arena(int fd, const ArenaNote& arena) noexcept {
  if (has_arena()) return;
  const off_t bytes = os::sealed_bytes(fd);
  if (bytes <= 0 || static_cast<std::uint64_t>(bytes) != arena.bytes ||
      arena.bytes % page_bytes != 0 || arena.probe_offset % sizeof(std::uint64_t) != 0 ||
      arena.probe_offset >= arena.bytes) {
    note("by a mapping", "its arena is not what it says");
    return;
  }
  // Aligned as the arena is at its owner, so that its huge pages are huge here, too.
  void* const reserved = os::reserve(arena.bytes, os::huge_page_bytes);
  void* const at = reserved == nullptr ? nullptr : os::map_shared(reserved, arena.bytes, fd, 0);
  if (at == nullptr) {
    if (reserved != nullptr) os::unmap(reserved, arena.bytes);
    note("by a mapping",
         "no addresses are left for its arena; raise ulimit -v or lower "
         "HAUL_MEMORY_ARENA_BYTES");
    return;
  }
  // A child of fork has no business there, and its page tables need not be copied. What lies there
  // belongs into the core file of its owner alone.
  os::hide_from_children(at, arena.bytes);
  os::hide_from_dumps(at, arena.bytes);
  arena_ = static_cast<std::byte*>(at);
  std::uint64_t seen = 0;
  std::memcpy(&seen, arena_ + arena.probe_offset, sizeof seen);
  if (seen != arena.probe_value) {
    os::unmap(at, arena.bytes);
    arena_ = nullptr;
    note("by a mapping", "what was read was not the peer's memory");
    return;
  }
  // Release: pairs with mapped().
  arena_bytes_.store(arena.bytes, std::memory_order_release);
}

std::byte* PeerMemory::mapped(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  const std::uint64_t size = arena_bytes_.load(std::memory_order_acquire);
  return offset <= size && bytes <= size - offset ? arena_ + offset : nullptr;
}

void PeerMemory::lose_kernel(const char* why) noexcept {
  if (!kernel_.exchange(false, std::memory_order_relaxed)) return;
  log(LogLevel::info, "messages: process %d is no longer reached by the kernel: %s",
      static_cast<int>(pid_), why);
}

haul_space PeerMemory::space() noexcept {
  if (space_ != HAUL_SPACE_SELF || !has_kernel()) return space_;
  haul_space opened = HAUL_SPACE_SELF;
  if (haul_space_open(pid_, &opened) != HAUL_OK) {
    lose_kernel(haul_last_error());
    return HAUL_SPACE_SELF;
  }
  // Again, now that the process is held by a descriptor: the pid might have been given away.
  if (!probe_word_seen()) {
    haul_space_close(opened);
    lose_kernel("its process has ended");
    return HAUL_SPACE_SELF;
  }
  space_ = opened;
  return space_;
}

}  // namespace haul::fabric
