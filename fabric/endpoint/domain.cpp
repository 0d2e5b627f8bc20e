// Opening, binding and closing domains.
#include "fabric/endpoint/domain.hpp"

#include <cstring>
#include <new>

#include "fabric/endpoint/address_vector.hpp"
#include "fabric/endpoint/completion/completion_queue.hpp"
#include "fabric/endpoint/completion/counter.hpp"
#include "fabric/endpoint/completion/event_queue.hpp"
#include "fabric/endpoint/fabric.hpp"
#include "fabric/endpoint/memory_region.hpp"
#include "fabric/endpoint/object.hpp"
#include "fabric/endpoint/transfer/endpoint.hpp"
#include "fabric/endpoint/waiting/poll_set.hpp"

namespace haul::fabric {

namespace {

bool is_automatic(const fi_domain_attr& attr) noexcept {
  return attr.data_progress == FI_PROGRESS_AUTO;
}

// With FI_THREAD_DOMAIN the program itself lets one thread at a time use what belongs together; but
// it cannot speak for the domain's own thread.
DataLock::Kind lock_for(const fi_domain_attr& attr) noexcept {
  if (attr.threading != FI_THREAD_DOMAIN || is_automatic(attr)) return DataLock::Kind::word;
  return OverlapThread::may_help() ? DataLock::Kind::biased : DataLock::Kind::none;
}

fi_ops_domain domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = AddressVector::open,
    .cq_open = FabricCompletionQueue::open,
    .endpoint = Endpoint::open,
    .scalable_ep = unimplemented,
    .cntr_open = Counter::open,
    .poll_open = PollSet::open,
    .stx_ctx = unimplemented,
    .srx_ctx = unimplemented,
    .query_atomic = query_atomic,
    .query_collective = unimplemented,
    .endpoint2 = Endpoint::open_with_flags,
};

fi_ops_mr mr_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = MemoryRegion::open,
    .regv = MemoryRegion::open_pieces,
    .regattr = MemoryRegion::open_attributes,
};

}  // namespace

Domain::Domain(Fabric& fabric, const fi_info& info, void* user_context) noexcept
    : fid_domain{},
      owner(fabric),
      api_version(fabric.api_version),
      mr_mode(info.domain_attr->mr_mode),
      threading(info.domain_attr->threading),
      automatic(is_automatic(*info.domain_attr)),
      lock(lock_for(*info.domain_attr)) {
  static fi_ops base_ops = object_calls(close, bind, control);
  begin_object(fid, FI_CLASS_DOMAIN, user_context, base_ops);
  ops = &domain_ops;
  mr = &mr_ops;
}

int Domain::open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) noexcept {
  if (info == nullptr || info->domain_attr == nullptr || domain == nullptr) return -FI_EINVAL;
  Fabric& owner = Fabric::of(fabric);
  auto* made = new (std::nothrow) Domain(owner, *info, context);
  if (made == nullptr) return -FI_ENOMEM;
  owner.references.fetch_add(1, std::memory_order_relaxed);
  Fabric::opened(*made);
  *domain = made;
  return 0;
}

int Domain::open_with_flags(fid_fabric* fabric, fi_info* info, fid_domain** domain,
                            std::uint64_t flags, void* context) noexcept {
  return flags != 0 ? -FI_EBADFLAGS : open(fabric, info, domain, context);
}

int Domain::close(fid_t object) noexcept {
  Domain& self = of(object);
  if (self.references.load(std::memory_order_acquire) != 0) return -FI_EBUSY;
  Fabric::closed(self);
  if (EventQueue* events = self.events_.load(std::memory_order_relaxed)) events->unbind();
  self.owner.references.fetch_sub(1, std::memory_order_release);
  delete &self;
  return 0;
}

int Domain::bind(fid_t object, fid_t other, std::uint64_t flags) noexcept {
  Domain& self = of(object);
  if (other == nullptr || other->fclass != FI_CLASS_EQ) return -FI_EINVAL;
  if ((flags & ~FI_REG_MR) != 0) return -FI_EBADFLAGS;
  EventQueue& events = EventQueue::of(other);
  EventQueue* expected = nullptr;
  if (!self.events_.compare_exchange_strong(expected, &events)) return -FI_EINVAL;
  events.bind();
  self.registers_by_event_.store((flags & FI_REG_MR) != 0, std::memory_order_release);
  return 0;
}

// Keys are 64 bits and need no set-up, so raw keys (fi_mr_map_raw) are the keys themselves.
int Domain::control(fid_t, int command, void* argument) noexcept {
  if (command == FI_UNMAP_KEY) return 0;
  if (command != FI_MAP_RAW_MR) return -FI_ENOSYS;
  auto* map = static_cast<struct fi_mr_map_raw*>(argument);
  if (map == nullptr || map->raw_key == nullptr || map->key == nullptr) return -FI_EINVAL;
  if (map->key_size != sizeof *map->key) return -FI_EINVAL;
  std::memcpy(map->key, map->raw_key, sizeof *map->key);
  return 0;
}

bool Domain::is_as(const fi_domain_attr& attr) const noexcept {
  return automatic == is_automatic(attr) && mr_mode == attr.mr_mode && threading == attr.threading;
}

EventQueue* Domain::registration_events() const noexcept {
  // Pairs with the release in bind().
  return registers_by_event_.load(std::memory_order_acquire)
             ? events_.load(std::memory_order_relaxed)
             : nullptr;
}

}  // namespace haul::fabric
