// The event queue: results of control operations. Control operations are really synchronous,
// so an event is in its queue before the call that caused it returns. The wait object stays rung
// as long as there are events.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "fabric/endpoint/lock.hpp"
#include "fabric/endpoint/waiting/wait_object.hpp"

namespace haul::fabric {

class Fabric;

// Thread-safe.
class EventQueue final : public fid_eq, public Waitable {
 public:
  // fi_ops_fabric.eq_open.
  static int open(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** queue, void* context) noexcept;
  static EventQueue& of(fid_t object) noexcept {
    return *static_cast<EventQueue*>(reinterpret_cast<fid_eq*>(object));
  }

  void add(std::uint32_t event, const void* body, std::size_t bytes) noexcept;
  void add_error(const fi_eq_err_entry& error) noexcept;
  bool ready() noexcept override;
  bool park() noexcept override { return !ready(); }
  void unpark() noexcept override {}

 private:
  struct Event {
    std::uint32_t kind = 0;
    bool failed = false;
    fi_eq_err_entry error = {};
    std::vector<unsigned char> body;
  };

  EventQueue(Fabric& fabric, bool writable, void* context) noexcept;
  static int close(fid_t object) noexcept;
  static int control(fid_t object, int command, void* argument) noexcept;
  static ssize_t read(fid_eq* queue, std::uint32_t* event, void* buffer, std::size_t bytes,
                      std::uint64_t flags) noexcept;
  static ssize_t read_error(fid_eq* queue, fi_eq_err_entry* entry, std::uint64_t flags) noexcept;
  static ssize_t write(fid_eq* queue, std::uint32_t event, const void* buffer, std::size_t bytes,
                       std::uint64_t flags) noexcept;
  static ssize_t blocking_read(fid_eq* queue, std::uint32_t* event, void* buffer, std::size_t bytes,
                               int timeout, std::uint64_t flags) noexcept;
  void taken() noexcept;
  static fi_ops_eq eq_ops;

  Fabric& owner_;
  const bool writable_;
  WordLock lock_;
  std::deque<Event> events_;
};

}  // namespace haul::fabric
