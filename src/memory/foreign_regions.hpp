// The regions that one of haul's other libraries registers by functions of its own, and how long
// they stay registered: a RegionCache behind the private functions of base/private.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/private.hpp"
#include "memory/region_cache.hpp"
#include "memory/registrar.hpp"

// One thread at a time; what tells of changes marks regions, and unpins none: a library may know
// nothing of threads but its own.
struct HaulPrivateRegions final : haul::Registrar {
  // nullptr without memory.
  static HaulPrivateRegions* open(const HaulPrivateRegistrar& registrar) noexcept;
  // As the functions of base/private.hpp.
  bool hold(std::uintptr_t address, std::size_t wanted, std::size_t before, std::size_t behind,
            HaulPrivateHold* hold) noexcept;
  void release(const HaulPrivateHold& hold) noexcept;
  void tidy(bool all) noexcept;
  void close() noexcept;
  void abandon() noexcept { cache_.abandon(); }

  haul::Code pin(std::uintptr_t address, std::size_t bytes,
                 std::uint64_t* region) noexcept override;
  void unpin(std::uint64_t region) noexcept override;
  std::size_t least_bytes() const noexcept override { return library_.least_bytes; }
  bool unpins_late() const noexcept override { return true; }

 private:
  explicit HaulPrivateRegions(const HaulPrivateRegistrar& library) noexcept : library_(library) {}

  const HaulPrivateRegistrar library_;
  haul::RegionCache cache_;
};
