// Opening and closing fabrics, and the list of what is open.
#include "fabric/endpoint/fabric.hpp"

#include <cstring>
#include <new>

#include "base/log.hpp"
#include "fabric/endpoint/completion/event_queue.hpp"
#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/lock.hpp"
#include "fabric/endpoint/object.hpp"
#include "fabric/endpoint/offer/info.hpp"
#include "fabric/endpoint/waiting/wait_set.hpp"

namespace haul::fabric {

namespace {

constinit WordLock open_lock;
constinit Fabric* open_fabrics = nullptr;
constinit Domain* open_domains = nullptr;

fi_ops_fabric fabric_ops = {
    .size = sizeof(fi_ops_fabric),
    .domain = Domain::open,
    .passive_ep = unimplemented,
    .eq_open = EventQueue::open,
    .wait_open = WaitSet::open,
    .trywait = try_wait,
    .domain2 = Domain::open_with_flags,
};

}  // namespace

Fabric::Fabric(void* user_context) noexcept : fid_fabric{} {
  static fi_ops base_ops = object_calls(close);
  begin_object(fid, FI_CLASS_FABRIC, user_context, base_ops);
  ops = &fabric_ops;
}

int Fabric::open(fi_fabric_attr* attr, fid_fabric** fabric, void* context) noexcept {
  if (attr == nullptr || fabric == nullptr) return -FI_EINVAL;
  if (attr->name != nullptr && std::strcmp(attr->name, fabric_name) != 0) return -FI_ENODATA;
  auto* made = new (std::nothrow) Fabric(context);
  if (made == nullptr) return -FI_ENOMEM;
  made->api_version = attr->api_version;
  Guard guard(open_lock);
  made->next_ = open_fabrics;
  open_fabrics = made;
  *fabric = made;
  return 0;
}

int Fabric::close(fid_t object) noexcept {
  Fabric& self = of(object);
  {
    Guard guard(open_lock);
    if (self.references.load(std::memory_order_acquire) != 0) return -FI_EBUSY;
    for (Fabric** place = &open_fabrics; *place != nullptr; place = &(*place)->next_) {
      if (*place != &self) continue;
      *place = self.next_;
      break;
    }
  }
  delete &self;
  return 0;
}

fid_fabric* Fabric::first_open() noexcept {
  Guard guard(open_lock);
  Fabric* first = open_fabrics;
  for (; first != nullptr && first->next_ != nullptr; first = first->next_) continue;
  return first;
}

fid_domain* Fabric::first_open_domain(const fi_domain_attr& attr) noexcept {
  Guard guard(open_lock);
  Domain* first = nullptr;
  for (Domain* one = open_domains; one != nullptr; one = one->next_open) {
    if (one->is_as(attr)) first = one;
  }
  return first;
}

bool Fabric::is_open(const fid_fabric* fabric) noexcept {
  Guard guard(open_lock);
  for (Fabric* one = open_fabrics; one != nullptr; one = one->next_) {
    if (one == fabric) return true;
  }
  return false;
}

bool Fabric::is_open(const fid_domain* domain) noexcept {
  Guard guard(open_lock);
  for (Domain* one = open_domains; one != nullptr; one = one->next_open) {
    if (one == domain) return true;
  }
  return false;
}

void Fabric::opened(Domain& domain) noexcept {
  Guard guard(open_lock);
  domain.next_open = open_domains;
  open_domains = &domain;
}

void Fabric::closed(Domain& domain) noexcept {
  Guard guard(open_lock);
  for (Domain** place = &open_domains; *place != nullptr; place = &(*place)->next_open) {
    if (*place != &domain) continue;
    *place = domain.next_open;
    break;
  }
}

}  // namespace haul::fabric
