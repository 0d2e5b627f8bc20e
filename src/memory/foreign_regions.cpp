#include "memory/foreign_regions.hpp"

#include <cerrno>
#include <new>

#include "base/os/os.hpp"

using haul::Code;

HaulPrivateRegions* HaulPrivateRegions::open(const HaulPrivateRegistrar& registrar) noexcept {
  void* const memory = haul::os::map_anonymous(sizeof(HaulPrivateRegions));
  return memory == nullptr ? nullptr : new (memory) HaulPrivateRegions(registrar);
}

bool HaulPrivateRegions::hold(std::uintptr_t address, std::size_t wanted, std::size_t before,
                              std::size_t behind, HaulPrivateHold* hold) noexcept {
  haul::RegisteredUse use;
  if (cache_.acquire_lasting(*this, address, wanted, before, behind, &use) != Code::ok)
    return false;
  *hold = {use.region, cache_.begin_of(use), use.place};
  return true;
}

void HaulPrivateRegions::release(const HaulPrivateHold& hold) noexcept {
  cache_.release({hold.region, 0, hold.place});
}

void HaulPrivateRegions::tidy(bool all) noexcept {
  if (all) {
    cache_.spare();
  } else {
    cache_.tidy();
  }
}

void HaulPrivateRegions::close() noexcept {
  cache_.close();
  haul::os::unmap(this, sizeof *this);
}

Code HaulPrivateRegions::pin(std::uintptr_t address, std::size_t bytes,
                             std::uint64_t* region) noexcept {
  const int error = library_.pin(library_.self, address, bytes, region);
  if (error == 0) return Code::ok;
  return error == ENOMEM ? Code::no_memory : Code::fault;
}

void HaulPrivateRegions::unpin(std::uint64_t region) noexcept {
  library_.unpin(library_.self, region);
}
