// Wait sets (fi_wait_open, fi_wait), and fi_trywait.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include <memory>
#include <vector>

#include "fabric/endpoint/lock.hpp"
#include "fabric/endpoint/waiting/wait_object.hpp"

namespace haul::fabric {

class Fabric;

// Thread-safe.
class WaitSet final : public fid_wait {
 public:
  // fi_ops_fabric.wait_open.
  static int open(fid_fabric* fabric, fi_wait_attr* attr, fid_wait** set) noexcept;
  static WaitSet& of(fid_t object) noexcept {
    return *static_cast<WaitSet*>(reinterpret_cast<fid_wait*>(object));
  }

  WaitObject& object() noexcept { return *wait_; }
  void add(Waitable& member) noexcept;
  void remove(Waitable& member) noexcept;
  // As Waitable::park(), for all members, until the next try_park().
  bool try_park() noexcept;

 private:
  explicit WaitSet(Fabric& fabric) noexcept;
  static int close(fid_t object) noexcept;
  static int control(fid_t object, int command, void* argument) noexcept;
  static int wait(fid_wait* set, int timeout) noexcept;
  bool park_all() noexcept;

  Fabric& owner_;
  std::unique_ptr<WaitObject> wait_;
  WordLock lock_;
  std::vector<Waitable*> members_;
  std::vector<Waitable*> tried_;  // parked by try_park()
};

// fi_ops_fabric.trywait.
int try_wait(fid_fabric* fabric, fid_t* objects, int count) noexcept;

}  // namespace haul::fabric
