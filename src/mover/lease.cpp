// An abstract Unix socket a lease: binding is the lock, closing (or dying) the release.
#include "mover/lease.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "base/knobs.hpp"
#include "base/os.hpp"
#include "mover/mover.hpp"

namespace haul {
namespace {

constexpr int none = -1;
struct Lease {
  std::atomic<int> fd{none};
};
constinit Lease leases[max_movers];
constinit std::atomic<Code> refusal{Code::ok};

}  // namespace

Code take_lease(unsigned index) noexcept {
  if (knob_number(Knob::mover_lease) == 1) return Code::ok;  // "off"
  if (leases[index].fd.load(std::memory_order_relaxed) != none) return Code::ok;
  char name[32];
  std::snprintf(name, sizeof name, "haul-mover-%u", index);
  const int fd = os::bind_abstract(name);
  // No socket to be had (descriptors exhausted, a filter): the lease cannot be shown to be ours, so
  // it is not.
  const Code code = fd >= 0 ? Code::ok : fd == -EADDRINUSE ? Code::again : Code::no_memory;
  if (index == 0) refusal.store(code, std::memory_order_relaxed);
  if (code == Code::ok) leases[index].fd.store(fd, std::memory_order_relaxed);
  return code;
}

Code lease_refusal() noexcept {
  return refusal.load(std::memory_order_relaxed);
}

void drop_lease(unsigned index) noexcept {
  const int fd = leases[index].fd.exchange(none, std::memory_order_relaxed);
  if (fd != none) os::close_fd(fd);
}

void drop_inherited_leases() noexcept {
  for (unsigned i = 0; i < max_movers; ++i) drop_lease(i);
}

}  // namespace haul
