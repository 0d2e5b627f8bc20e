// What makes memory known to a device or to the kernel, so that it may be moved without asking
// again (paper 001, III-B: registration, which pins pages).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace haul {

// Calls of pin() and unpin() come one at a time, from any thread, also while the same device is
// given copies and polled.
class Registrar {
 public:
  // Registers whole pages, [address, address + bytes), some of which may be registered already: the
  // device reaches them until unpin(), and the kernel keeps them where they are. Blocks for as long
  // as the kernel takes to fetch the pages. ok and *region (never 0); no_memory: RLIMIT_MEMLOCK, or
  // what the device has room for, is used up; fault: not all of it is memory that may be written.
  virtual Code pin(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) noexcept;
  // Parts of fewer bytes are not worth a registration of their own; SIZE_MAX: no parts are.
  virtual std::size_t least_bytes() const noexcept { return 0; }
  // Of one that need not register: is registering so many bytes for a single use, and giving them
  // back, quicker than moving them unregistered? From figures that were measured.
  virtual bool pays_once(std::size_t /*bytes*/) const noexcept { return false; }
  // May what it calls wait for locks that a thread of the program's holds while it changes its
  // memory? Then nothing is unpinned on the thread that is told of changes (changes.hpp).
  virtual bool unpins_late() const noexcept { return false; }
  // No copy that names the region is under way, nor will be.
  virtual void unpin(std::uint64_t region) noexcept;

 protected:
  ~Registrar() = default;
};

inline Code Registrar::pin(std::uintptr_t, std::size_t, std::uint64_t*) noexcept {
  return Code::not_supported;
}
inline void Registrar::unpin(std::uint64_t) noexcept {}

}  // namespace haul
