// Registering and resolving.
#include "fabric/endpoint/region_table.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "base/machine/clock.hpp"
#include "base/os/pages/sealed.hpp"
#include "fabric/endpoint/completion/counter.hpp"

namespace haul::fabric {

RegionTable::RegionTable() noexcept : next_key_(now_ns()) {
  // The keys that this table chooses start at a random number, so that a key of another process is
  // not valid here by accident.
  os::random_bytes(&next_key_, sizeof next_key_);
}

int RegionTable::add(const Region& region, bool choose, std::uint64_t* key) noexcept {
  Guard guard(lock_);
  if (choose) {
    do *key = next_key_++;
    while (*key == FI_KEY_NOTAVAIL || regions_.contains(*key));
  }
  return regions_.emplace(*key, region).second ? 0 : -FI_ENOKEY;
}

void RegionTable::remove(std::uint64_t key) noexcept {
  Guard guard(lock_);
  regions_.erase(key);
}

void RegionTable::forget(const EndpointState& endpoint) noexcept {
  Guard guard(lock_);
  for (auto& [key, region] : regions_) {
    if (region.endpoint != &endpoint) continue;
    region.endpoint = nullptr;
    region.enabled = false;
  }
}

void* RegionTable::resolve(const EndpointState& endpoint, std::uint64_t key, std::uint64_t address,
                           std::uint64_t bytes, std::uint64_t access, int* error) noexcept {
  Guard guard(lock_);
  const auto found = regions_.find(key);
  if (found == regions_.end() || !found->second.enabled ||
      (found->second.endpoint != nullptr && found->second.endpoint != &endpoint)) {
    *error = FI_EKEYREJECTED;
    return nullptr;
  }
  const Region& region = found->second;
  if ((region.access & access) != access) {
    *error = FI_EACCES;
    return nullptr;
  }
  // An address below the base wraps around, and so fails the same check as one beyond the end.
  const std::uint64_t offset = address - region.base;
  if (offset > region.bytes || bytes > region.bytes - offset) {
    *error = FI_EACCES;
    return nullptr;
  }
  return region.start + offset;
}

void RegionTable::count(std::uint64_t key, bool is_write, bool failed) noexcept {
  if (!counting_.load(std::memory_order_relaxed)) return;
  Guard guard(lock_);
  const auto found = regions_.find(key);
  if (found == regions_.end()) return;
  Counter* counter = is_write ? found->second.writes : found->second.reads;
  if (counter != nullptr) counter->count(failed);
}

}  // namespace haul::fabric
