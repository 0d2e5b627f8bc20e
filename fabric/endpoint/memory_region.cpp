// Registering, binding and enabling regions.
#include "fabric/endpoint/memory_region.hpp"

#include <rdma/fi_errno.h>
#include <sys/uio.h>

#include <cstring>
#include <new>

#include "fabric/endpoint/completion/counter.hpp"
#include "fabric/endpoint/completion/event_queue.hpp"
#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/object.hpp"
#include "fabric/endpoint/transfer/endpoint.hpp"

namespace haul::fabric {

namespace {

bool has_mode(int mr_mode, int bit) noexcept {
  // FI_MR_BASIC is the old name of three bits together.
  constexpr int basic = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  return ((mr_mode == FI_MR_BASIC ? basic : mr_mode) & bit) != 0;
}

}  // namespace

MemoryRegion::MemoryRegion(Domain& domain, void* user_context) noexcept : fid_mr{}, owner_(domain) {
  static fi_ops base_ops = object_calls(close, bind, control);
  begin_object(fid, FI_CLASS_MR, user_context, base_ops);
  mem_desc = this;
}

int MemoryRegion::open(fid_t domain, const void* start, std::size_t bytes, std::uint64_t access,
                       std::uint64_t offset, std::uint64_t requested_key, std::uint64_t flags,
                       fid_mr** region, void* context) noexcept {
  constexpr std::uint64_t known_access =
      FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_COLLECTIVE;
  if (region == nullptr || offset != 0 || (access & ~known_access) != 0) return -FI_EINVAL;
  if ((flags & ~FI_RMA_EVENT) != 0) return -FI_EBADFLAGS;
  Domain& owner = Domain::of(domain);
  auto* made = new (std::nothrow) MemoryRegion(owner, context);
  if (made == nullptr) return -FI_ENOMEM;
  const bool waits_for_enable =
      has_mode(owner.mr_mode, FI_MR_ENDPOINT) ||
      (has_mode(owner.mr_mode, FI_MR_RMA_EVENT) && (flags & FI_RMA_EVENT) != 0);
  Region entry;
  entry.start = const_cast<char*>(static_cast<const char*>(start));
  entry.base =
      has_mode(owner.mr_mode, FI_MR_VIRT_ADDR) ? reinterpret_cast<std::uint64_t>(start) : 0;
  entry.bytes = bytes;
  entry.access = access & (FI_REMOTE_READ | FI_REMOTE_WRITE);
  entry.enabled = !waits_for_enable;
  made->base_ = entry.base;
  made->key = requested_key;
  const int error = owner.regions.add(entry, has_mode(owner.mr_mode, FI_MR_PROV_KEY), &made->key);
  if (error != 0) {
    delete made;
    return error;
  }
  owner.references.fetch_add(1, std::memory_order_relaxed);
  *region = made;
  if (EventQueue* events = owner.registration_events()) {
    const fi_eq_entry done = {&made->fid, context, 0};
    events->add(FI_MR_COMPLETE, &done, sizeof done);
  }
  return 0;
}

int MemoryRegion::open_pieces(fid_t domain, const iovec* pieces, std::size_t count,
                              std::uint64_t access, std::uint64_t offset,
                              std::uint64_t requested_key, std::uint64_t flags, fid_mr** region,
                              void* context) noexcept {
  // mr_iov_limit is 1.
  if (pieces == nullptr || count != 1) return -FI_EINVAL;
  return open(domain, pieces->iov_base, pieces->iov_len, access, offset, requested_key, flags,
              region, context);
}

int MemoryRegion::open_attributes(fid_t domain, const fi_mr_attr* attr, std::uint64_t flags,
                                  fid_mr** region) noexcept {
  if (attr == nullptr) return -FI_EINVAL;
  return open_pieces(domain, attr->mr_iov, attr->iov_count, attr->access, attr->offset,
                     attr->requested_key, flags, region, attr->context);
}

int MemoryRegion::close(fid_t object) noexcept {
  MemoryRegion& self = of(object);
  {
    // A turn that uses the region holds this lock.
    Guard guard(self.owner_.lock);
    self.owner_.regions.remove(self.key);
  }
  if (self.writes_ != nullptr) self.writes_->unbind_region();
  if (self.reads_ != nullptr) self.reads_->unbind_region();
  self.owner_.references.fetch_sub(1, std::memory_order_release);
  delete &self;
  return 0;
}

int MemoryRegion::bind(fid_t object, fid_t other, std::uint64_t flags) noexcept {
  MemoryRegion& self = of(object);
  if (other == nullptr) return -FI_EINVAL;
  if (other->fclass == FI_CLASS_CNTR) return self.bind_counter(Counter::of(other), flags);
  if (other->fclass != FI_CLASS_EP) return -FI_EINVAL;
  if (flags != 0) return -FI_EBADFLAGS;
  // Without this mode regions belong to the domain, and all its endpoints may use them.
  if (!has_mode(self.owner_.mr_mode, FI_MR_ENDPOINT)) return 0;
  const EndpointState& state = Endpoint::of(other).state();
  int error = 0;
  self.owner_.regions.change(self.key, [&](Region& region) {
    if (region.enabled) error = -FI_EOPBADSTATE;
    if (error == 0) region.endpoint = &state;
  });
  return error;
}

int MemoryRegion::bind_counter(Counter& counter, std::uint64_t flags) noexcept {
  if (flags == 0 || (flags & ~(FI_REMOTE_WRITE | FI_REMOTE_READ)) != 0) return -FI_EBADFLAGS;
  if (((flags & FI_REMOTE_WRITE) != 0 && writes_ != nullptr) ||
      ((flags & FI_REMOTE_READ) != 0 && reads_ != nullptr)) {
    return -FI_EINVAL;
  }
  owner_.regions.expect_counters();
  owner_.regions.change(key, [&](Region& region) {
    if ((flags & FI_REMOTE_WRITE) != 0) region.writes = writes_ = &counter;
    if ((flags & FI_REMOTE_READ) != 0) region.reads = reads_ = &counter;
  });
  if ((flags & FI_REMOTE_WRITE) != 0) counter.bind_region();
  if ((flags & FI_REMOTE_READ) != 0) counter.bind_region();
  return 0;
}

int MemoryRegion::enable() noexcept {
  int error = 0;
  owner_.regions.change(key, [&](Region& region) {
    if (has_mode(owner_.mr_mode, FI_MR_ENDPOINT) && region.endpoint == nullptr) {
      error = -FI_EOPBADSTATE;
    } else {
      region.enabled = true;
    }
  });
  return error;
}

int MemoryRegion::control(fid_t object, int command, void* argument) noexcept {
  MemoryRegion& self = of(object);
  switch (command) {
    case FI_ENABLE: return self.enable();
    case FI_REFRESH: return 0;  // nothing is remembered of the pages behind a region
    case FI_GET_RAW_MR: {
      auto* raw = static_cast<struct fi_mr_raw_attr*>(argument);
      if (raw == nullptr || raw->key_size == nullptr) return -FI_EINVAL;
      const std::size_t room = *raw->key_size;
      *raw->key_size = sizeof self.key;
      if (room < sizeof self.key) return -FI_ETOOSMALL;
      if (raw->raw_key == nullptr || raw->base_addr == nullptr) return -FI_EINVAL;
      std::memcpy(raw->raw_key, &self.key, sizeof self.key);
      *raw->base_addr = self.base_;
      return 0;
    }
    default: return -FI_ENOSYS;
  }
}

}  // namespace haul::fabric
