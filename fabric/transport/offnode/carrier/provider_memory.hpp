// Memory of the program that a libfabric provider must know for one purpose: what peers may read,
// or where reads go. It is registered for each use and no longer, or, where that costs, stays
// registered until it changes (base/private.hpp: regions).
//
// What stays registered is whole pages, and a peer that has their key can read them as long.
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>

#include "base/private.hpp"

namespace haul::fabric {

// Registers memory by a random key, so that nobody guesses it, or by one that the provider chooses.
// 0 or -FI_E*.
int register_memory(fid_domain& domain, bool provider_chooses, const void* at, std::size_t bytes,
                    std::uint64_t access, fid_mr** registration) noexcept;

// Threads: not safe.
class ProviderMemory {
 public:
  struct Use {
    fid_mr* registration = nullptr;  // nullptr: none
    std::uintptr_t begin = 0;        // of what is registered
    bool kept = false;
    HaulPrivateHold hold;
  };

  ProviderMemory() noexcept = default;
  ProviderMemory(const ProviderMemory&) = delete;
  ProviderMemory& operator=(const ProviderMemory&) = delete;

  // `access`: FI_REMOTE_READ or FI_READ. `keeps`: memory stays registered where that can be.
  void open(fid_domain& domain, std::uint64_t access, bool provider_chooses, bool keeps) noexcept;
  // Makes [at, at + bytes) known to the provider until release(); `before` bytes were so for the
  // same message, and `behind` will be, which lie there in one piece. 0 or -FI_E*.
  int acquire(const void* at, std::size_t bytes, std::size_t before, std::size_t behind,
              Use* use) noexcept;
  void release(Use& use) noexcept;
  // Gives back what the program has unmapped or changed otherwise.
  void tidy() noexcept {
    if (regions_ != nullptr) haul_private_tidy_regions(regions_, false);
  }
  // Gives back all that is not in use, so that there is room for other memory.
  void spare() noexcept {
    if (regions_ != nullptr) haul_private_tidy_regions(regions_, true);
  }
  // Gives back all; nothing is in use.
  void close() noexcept { end(false); }
  // In a child of fork, whose parent has all that is registered.
  void forked() noexcept { end(true); }

  // How often the provider was told of memory.
  std::uint64_t registrations() const noexcept { return registrations_; }

 private:
  int enlist(const void* at, std::size_t bytes, fid_mr** registration) noexcept;
  void end(bool in_child) noexcept;
  static int pin(void* self, std::uintptr_t address, std::size_t bytes,
                 std::uint64_t* region) noexcept;
  static void unpin(void* self, std::uint64_t region) noexcept;

  fid_domain* domain_ = nullptr;
  std::uint64_t access_ = 0;
  bool provider_chooses_ = false;
  HaulPrivateRegions* regions_ = nullptr;  // nullptr: nothing stays registered
  std::uint64_t registrations_ = 0;
};

}  // namespace haul::fabric
