// Which memory peers may reach, by key.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>

#include "fabric/endpoint/lock.hpp"

namespace haul::fabric {

class Counter;
class EndpointState;

struct Region {
  char* start = nullptr;   // what address `base` names
  std::uint64_t base = 0;  // 0: offsets; else the virtual address of `start`
  std::uint64_t bytes = 0;
  std::uint64_t access = 0;  // FI_REMOTE_READ, FI_REMOTE_WRITE
  bool enabled = true;
  const EndpointState* endpoint = nullptr;  // the only one through which it is reached, if any
  Counter* writes = nullptr;                // counts remote writes and atomics
  Counter* reads = nullptr;
};

// Thread-safe, with a lock of its own: regions come and go while peers reach others.
class RegionTable {
 public:
  RegionTable() noexcept;
  // *key is the key that is asked for; with `choose` the table chooses one and sets *key.
  // -FI_ENOKEY: the key is taken. The region lives until remove().
  int add(const Region& region, bool choose, std::uint64_t* key) noexcept;
  void remove(std::uint64_t key) noexcept;
  // Calls change(region) under the lock; the key must be in the table.
  template <class Change>
  void change(std::uint64_t key, Change change) noexcept {
    Guard guard(lock_);
    change(regions_.find(key)->second);
  }
  // Regions may have counters from now on.
  void expect_counters() noexcept { counting_.store(true, std::memory_order_relaxed); }
  // An endpoint is being closed: nothing is reached through it any more.
  void forget(const EndpointState& endpoint) noexcept;

  // As Regions::resolve().
  void* resolve(const EndpointState& endpoint, std::uint64_t key, std::uint64_t address,
                std::uint64_t bytes, std::uint64_t access, int* error) noexcept;
  // A remote operation on this region is done, or failed. Cheap while no region has counters.
  void count(std::uint64_t key, bool is_write, bool failed) noexcept;

 private:
  WordLock lock_;
  std::unordered_map<std::uint64_t, Region> regions_;
  std::uint64_t next_key_;
  std::atomic<bool> counting_{false};  // a region has, or had, a counter
};

}  // namespace haul::fabric
