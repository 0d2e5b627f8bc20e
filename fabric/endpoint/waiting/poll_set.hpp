// Poll sets (fi_poll_open, fi_poll): which of several queues and counters have something new.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <vector>

#include "fabric/endpoint/lock.hpp"

namespace haul::fabric {

class Domain;

// Thread-safe.
class PollSet final : public fid_poll {
 public:
  // fi_ops_domain.poll_open.
  static int open(fid_domain* domain, fi_poll_attr* attr, fid_poll** set) noexcept;

 private:
  explicit PollSet(Domain& domain) noexcept;
  static int close(fid_t object) noexcept;
  static int poll(fid_poll* set, void** contexts, int count) noexcept;
  static int add(fid_poll* set, fid_t member, std::uint64_t flags) noexcept;
  static int remove(fid_poll* set, fid_t member, std::uint64_t flags) noexcept;

  Domain& owner_;
  WordLock lock_;
  std::vector<fid_t> members_;  // completion queues and counters
};

}  // namespace haul::fabric
