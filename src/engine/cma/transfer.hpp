// Exact transfers between this process's memory and that of one process, which may be itself.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/os/descriptor.hpp"
#include "engine/engine.hpp"

namespace haul::cma {

// Whose memory it is. A pidfd guards against a pid that was given to another process; where the
// program has closed the pidfd, the time at which the process began does.
struct Party {
  pid_t pid = 0;
  os::Descriptor pidfd;  // none: this process, which outlives its own call
  std::uint64_t started = 0;
};

enum class Direction : std::uint8_t {
  read,   // the party's memory -> here
  write,  // here -> the party's memory
};

// Moves length bytes between `here` in this process and `there` in the party's memory; the ranges
// must not share memory. The outcome is exact to the byte: a page that is inaccessible on either
// side ends the prefix at its edge. Code ok, fault, permission, peer_gone (after which bytes are
// good only if the party lived after they moved), no_memory, not_supported or io. Blocks while the
// kernel copies.
Outcome transfer(Direction direction, const Party& party, std::uintptr_t here, std::uintptr_t there,
                 std::size_t length) noexcept;

// How many bytes from the front of a range of the party's memory can be read (and, if asked,
// written: the first byte on each page is written back as it was read). Codes as above.
Outcome accessible(const Party& party, std::uintptr_t there, std::size_t length,
                   bool writable) noexcept;

// Does the kernel let this process use process_vm_readv on itself? 0 or an errno. Asked once a
// process.
int self_test() noexcept;

}  // namespace haul::cma
