// What threads sleep on for completions: one epoll descriptor over the doorbells of endpoints and
// an event of this process's own.
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/net/epoll.hpp"

namespace haul::fabric {

// Thread-safe.
class WaitObject {
 public:
  // -FI_ENOSYS for a kind that is not offered, -FI_E* if there are no descriptors; 0 and no object
  // for FI_WAIT_NONE.
  static int open(fi_wait_obj kind, std::unique_ptr<WaitObject>& object) noexcept;
  ~WaitObject();
  WaitObject(const WaitObject&) = delete;
  WaitObject& operator=(const WaitObject&) = delete;

  // FI_WAIT_YIELD has no descriptor: sleeping is yielding.
  bool yields() const noexcept { return !epoll_.valid(); }

  // Also wakes when this descriptor can be read. A doorbell < 0 (there is none) makes
  // every sleep a short one.
  void watch(int doorbell) noexcept;
  void unwatch(int doorbell) noexcept;

  void ring() noexcept;
  // Forgets what ring() said.
  void quiet() noexcept;
  // Returns when a doorbell or ring() rings, or after timeout_ms (negative: never), or now and
  // then: within a second where the program has closed what rings.
  void sleep(int timeout_ms) noexcept;

  // fi_control()'s FI_GETWAIT and FI_GETWAITOBJ; nullptr is an object without a wait object.
  static int get_wait(const WaitObject* object, void* argument) noexcept;
  static int get_kind(const WaitObject* object, void* argument) noexcept;

 private:
  explicit WaitObject(fi_wait_obj kind) noexcept : kind_(kind) {}

  const fi_wait_obj kind_;
  os::Epoll epoll_;
  std::atomic<int> blind_{0};  // endpoints without a doorbell
};

class WaitSet;

// Something with a wait object: a completion queue, a counter or an event queue. Not thread-safe by
// itself: each call takes the locks that it needs.
class Waitable {
 public:
  // Makes progress; true if there is something to read.
  virtual bool ready() noexcept = 0;
  // From now on the wait object wakes for new things; false, and nothing changed, if there is
  // something to read already, or bytes are moving, which nothing wakes for. Each true is taken
  // back by one unpark().
  virtual bool park() noexcept = 0;
  virtual void unpark() noexcept = 0;

  // Objects that report to it; it cannot be closed before they let it go.
  void bind() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void unbind() noexcept { references_.fetch_sub(1, std::memory_order_release); }

 protected:
  ~Waitable() = default;
  // While it is opened with these attributes: takes a wait object of its own, that of a wait set,
  // which it then joins, or none. 0 or -FI_E*.
  int choose_wait(fi_wait_obj kind, fid_wait* set) noexcept;
  // 0: nothing is bound to it, and it has left its wait set, so it can be deleted. Else -FI_EBUSY.
  int prepare_close() noexcept;
  // FI_GETWAIT and FI_GETWAITOBJ.
  int control_wait(int command, void* argument) const noexcept;

  WaitObject* wait_ = nullptr;  // own_wait_, a wait set's, or none
  WaitSet* set_ = nullptr;

 private:
  std::unique_ptr<WaitObject> own_wait_;
  std::atomic<unsigned> references_{0};
};

// The time until which a call with libfabric's timeout in milliseconds may wait.
class Deadline {
 public:
  explicit Deadline(int timeout_ms) noexcept;
  bool passed() const noexcept;
  int remaining_ms() const noexcept;  // rounded up; -1 for ever
  // So early in the wait that polling on is cheaper than going to sleep.
  bool young() const noexcept;

 private:
  std::uint64_t begin_ns_;
  std::uint64_t end_ns_;
};

}  // namespace haul::fabric
