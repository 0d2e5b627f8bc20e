// A counter of completed operations.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "fabric/endpoint/waiting/poll_backoff.hpp"
#include "fabric/endpoint/waiting/progress_group.hpp"
#include "fabric/endpoint/waiting/wait_object.hpp"

namespace haul::fabric {

class Domain;
class EndpointState;

class Counter final : public fid_cntr, public Waitable {
 public:
  // fi_ops_domain.cntr_open.
  static int open(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** counter,
                  void* context) noexcept;
  static Counter& of(fid_t object) noexcept {
    return *static_cast<Counter*>(reinterpret_cast<fid_cntr*>(object));
  }

  // An operation is done, or failed. Called under the data lock.
  void count(bool failed) noexcept;
  // bind() for a memory region, which any endpoint of the domain may be the way to.
  void bind_region() noexcept;
  void unbind_region() noexcept;
  // Called under the data lock.
  void join(EndpointState& endpoint) noexcept { group_.add(endpoint, wait_); }
  void leave(EndpointState& endpoint) noexcept { group_.remove(endpoint, wait_); }

  Domain& owner() const noexcept { return owner_; }
  // fi_poll(): progress; true if a value has changed since the last fi_poll, fi_cntr_set or _add.
  bool changed() noexcept;
  // fi_trywait().
  bool try_park() noexcept;
  bool ready() noexcept override;
  bool park() noexcept override;
  void unpark() noexcept override;

 private:
  Counter(Domain& domain, void* context) noexcept;
  static int close(fid_t object) noexcept;
  static int control(fid_t object, int command, void* argument) noexcept;
  static std::uint64_t read(fid_cntr* counter) noexcept;
  static std::uint64_t read_errors(fid_cntr* counter) noexcept;
  static int add(fid_cntr* counter, std::uint64_t value) noexcept;
  static int set(fid_cntr* counter, std::uint64_t value) noexcept;
  static int add_errors(fid_cntr* counter, std::uint64_t value) noexcept;
  static int set_errors(fid_cntr* counter, std::uint64_t value) noexcept;
  static int wait(fid_cntr* counter, std::uint64_t threshold, int timeout) noexcept;
  static fi_ops_cntr cntr_ops;
  std::uint64_t read(const std::atomic<std::uint64_t>& value) noexcept;
  int change(std::atomic<std::uint64_t>& value, std::uint64_t to) noexcept;
  // These under the data lock:
  void progress() noexcept;
  bool unseen() const noexcept;
  void see() noexcept;

  Domain& owner_;
  // Written under the data lock, read without.
  std::atomic<std::uint64_t> value_{0}, errors_{0};
  std::uint64_t polled_value_ = 0, polled_errors_ = 0;
  std::uint64_t seen_value_ = 0, seen_errors_ = 0;  // by the program
  unsigned parked_ = 0;
  bool tried_ = false;    // one of parked_ is try_park()'s
  unsigned regions_ = 0;  // bound to it
  PollBackoff backoff_;
  ProgressGroup group_;
};

}  // namespace haul::fabric
