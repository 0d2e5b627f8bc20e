// One abstract Unix socket a lease: binding it takes the lease, closing it (or dying) gives it
// back.
#include "mover/cores/lease.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "base/knobs.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/os.hpp"
#include "base/thread/unforked.hpp"
#include "mover/mover.hpp"

namespace haul {
namespace {

// Each belongs to its mover; another thread touches one only when that mover has ended.
constinit os::Descriptor leases[max_movers];
constinit std::atomic<Code> refusal{Code::ok};

bool unneeded() noexcept {
  return knob_number(Knob::mover_lease) == 1;  // "off"
}

}  // namespace

Code take_lease(unsigned index) noexcept {
  if (holds_lease(index)) return Code::ok;
  // A child that is forked in between would inherit, and keep, a lease that it does not know of.
  const Unforked unforked;
  if (!unforked) return Code::again;
  char name[32];
  std::snprintf(name, sizeof name, "haul-mover-%u", index);
  const int fd = os::bind_abstract(name);
  // Where no socket can be made (descriptors are exhausted, or a filter forbids it) the lease
  // cannot be shown to be ours, so it counts as refused.
  const Code code = fd >= 0 ? Code::ok : fd == -EADDRINUSE ? Code::again : Code::no_memory;
  if (index == 0) refusal.store(code, std::memory_order_relaxed);
  leases[index] = os::Descriptor::of(fd);
  return code;
}

bool holds_lease(unsigned index) noexcept {
  return unneeded() || leases[index].intact();
}

Code lease_refusal() noexcept {
  return refusal.load(std::memory_order_relaxed);
}

void drop_lease(unsigned index) noexcept {
  leases[index].close();
}

void drop_inherited_leases() noexcept {
  for (unsigned i = 0; i < max_movers; ++i) drop_lease(i);
}

}  // namespace haul
