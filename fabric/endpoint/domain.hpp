// The access domain: endpoints, queues, counters, address vectors and memory regions that work
// together, under one lock.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <atomic>
#include <cstdint>

#include "fabric/endpoint/lock.hpp"
#include "fabric/endpoint/region_table.hpp"
#include "fabric/endpoint/waiting/overlap_thread.hpp"
#include "fabric/endpoint/waiting/progress_group.hpp"
#include "fabric/endpoint/waiting/progress_thread.hpp"

namespace haul::fabric {

class EventQueue;
class Fabric;

class Domain final : public fid_domain {
 public:
  // fi_ops_fabric.domain and domain2.
  static int open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) noexcept;
  static int open_with_flags(fid_fabric* fabric, fi_info* info, fid_domain** domain,
                             std::uint64_t flags, void* context) noexcept;
  static Domain& of(fid_t object) noexcept {
    return *static_cast<Domain*>(reinterpret_cast<fid_domain*>(object));
  }
  static Domain& of(fid_domain* object) noexcept { return *static_cast<Domain*>(object); }

  Fabric& owner;
  const std::uint32_t api_version;
  const int mr_mode;  // of the info that it was opened with
  const fi_threading threading;
  const bool automatic;  // FI_PROGRESS_AUTO, for data
  DataLock lock;
  ProgressGroup endpoints;  // all that are enabled; under the lock
  std::uint64_t turns = 0;  // how often an endpoint made progress; under the lock
  RegionTable regions;
  std::atomic<unsigned> references{0};  // objects that must be closed first

  // Whether it has these attributes, so that it can serve instead of a new domain.
  bool is_as(const fi_domain_attr& attr) const noexcept;

  // Where results of memory registration go; nullptr: registration is synchronous.
  EventQueue* registration_events() const noexcept;

  // What wakes the domain's thread; nullptr: it has none. Under the lock.
  WaitObject* thread_wait() noexcept {
    return automatic ? progress_thread.wait() : overlap_thread.wait();
  }

  Domain* next_open = nullptr;  // Fabric's
  // One of the two runs, if any does. The last members, so that they are destroyed before what they
  // use.
  ProgressThread progress_thread{*this};
  OverlapThread overlap_thread{*this};

 private:
  Domain(Fabric& fabric, const fi_info& info, void* context) noexcept;
  static int close(fid_t object) noexcept;
  static int control(fid_t object, int command, void* argument) noexcept;
  static int bind(fid_t object, fid_t other, std::uint64_t flags) noexcept;

  std::atomic<EventQueue*> events_{nullptr};
  std::atomic<bool> registers_by_event_{false};
};

}  // namespace haul::fabric
