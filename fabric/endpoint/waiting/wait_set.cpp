// Waiting for several queues at once.
#include "fabric/endpoint/waiting/wait_set.hpp"

#include <new>

#include "fabric/endpoint/completion/completion_queue.hpp"
#include "fabric/endpoint/completion/counter.hpp"
#include "fabric/endpoint/completion/event_queue.hpp"
#include "fabric/endpoint/fabric.hpp"
#include "fabric/endpoint/object.hpp"

namespace haul::fabric {

WaitSet::WaitSet(Fabric& fabric) noexcept : fid_wait{}, owner_(fabric) {
  static fi_ops base_ops = object_calls(close, unimplemented, control);
  static fi_ops_wait wait_ops = {.size = sizeof(fi_ops_wait), .wait = wait};
  begin_object(fid, FI_CLASS_WAIT, nullptr, base_ops);
  ops = &wait_ops;
}

int WaitSet::open(fid_fabric* fabric, fi_wait_attr* attr, fid_wait** set) noexcept {
  if (set == nullptr) return -FI_EINVAL;
  if (attr != nullptr && attr->flags != 0) return -FI_EBADFLAGS;
  const fi_wait_obj kind = attr != nullptr ? attr->wait_obj : FI_WAIT_UNSPEC;
  if (kind == FI_WAIT_NONE) return -FI_EINVAL;
  Fabric& owner = Fabric::of(fabric);
  std::unique_ptr<WaitSet> made(new (std::nothrow) WaitSet(owner));
  if (made == nullptr) return -FI_ENOMEM;
  if (const int error = WaitObject::open(kind, made->wait_); error != 0) return error;
  owner.references.fetch_add(1, std::memory_order_relaxed);
  *set = made.release();
  return 0;
}

int WaitSet::close(fid_t object) noexcept {
  WaitSet& self = of(object);
  {
    Guard guard(self.lock_);
    if (!self.members_.empty()) return -FI_EBUSY;
  }
  self.owner_.references.fetch_sub(1, std::memory_order_release);
  delete &self;
  return 0;
}

int WaitSet::control(fid_t object, int command, void* argument) noexcept {
  const WaitSet& self = of(object);
  if (command == FI_GETWAIT) return WaitObject::get_wait(self.wait_.get(), argument);
  if (command == FI_GETWAITOBJ) return WaitObject::get_kind(self.wait_.get(), argument);
  return -FI_ENOSYS;
}

void WaitSet::add(Waitable& member) noexcept {
  Guard guard(lock_);
  members_.push_back(&member);
}

void WaitSet::remove(Waitable& member) noexcept {
  Guard guard(lock_);
  std::erase(members_, &member);
  if (std::erase(tried_, &member) > 0) member.unpark();
}

// The lock is held.
bool WaitSet::park_all() noexcept {
  wait_->quiet();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i]->park()) continue;
    while (i-- > 0) members_[i]->unpark();
    return false;
  }
  return true;
}

bool WaitSet::try_park() noexcept {
  Guard guard(lock_);
  for (Waitable* member : tried_) member->unpark();
  tried_.clear();
  if (!park_all()) return false;
  tried_ = members_;
  return true;
}

int WaitSet::wait(fid_wait* set, int timeout) noexcept {
  auto& self = *static_cast<WaitSet*>(set);
  const Deadline deadline(timeout);
  for (;;) {
    std::vector<Waitable*> parked;
    {
      Guard guard(self.lock_);
      if (!self.park_all()) return 0;
      parked = self.members_;
    }
    if (!deadline.passed()) self.wait_->sleep(deadline.remaining_ms());
    bool any = false;
    for (Waitable* member : parked) {
      member->unpark();
      any |= member->ready();
    }
    if (any) return 0;
    if (deadline.passed()) return -FI_ETIMEDOUT;
  }
}

namespace {
bool try_park(fid& object) noexcept {
  switch (object.fclass) {
    case FI_CLASS_CQ: return FabricCompletionQueue::of(&object).try_park();
    case FI_CLASS_CNTR: return Counter::of(&object).try_park();
    case FI_CLASS_EQ: return !EventQueue::of(&object).ready();
    default: return WaitSet::of(&object).try_park();
  }
}
}  // namespace

int try_wait(fid_fabric*, fid_t* objects, int count) noexcept {
  if (objects == nullptr || count < 0) return -FI_EINVAL;
  for (int i = 0; i < count; ++i) {
    switch (objects[i]->fclass) {
      case FI_CLASS_CQ:
      case FI_CLASS_CNTR:
      case FI_CLASS_EQ:
      case FI_CLASS_WAIT: break;
      default: return -FI_EINVAL;
    }
    if (!try_park(*objects[i])) return -FI_EAGAIN;
  }
  return 0;
}

int Waitable::choose_wait(fi_wait_obj kind, fid_wait* set) noexcept {
  if (kind == FI_WAIT_SET) {
    if (set == nullptr) return -FI_EINVAL;
    set_ = &WaitSet::of(&set->fid);
    wait_ = &set_->object();
    set_->add(*this);
    return 0;
  }
  if (const int error = WaitObject::open(kind, own_wait_); error != 0) return error;
  wait_ = own_wait_.get();
  return 0;
}

int Waitable::prepare_close() noexcept {
  if (references_.load(std::memory_order_acquire) != 0) return -FI_EBUSY;
  if (set_ != nullptr) set_->remove(*this);
  return 0;
}

int Waitable::control_wait(int command, void* argument) const noexcept {
  if (command == FI_GETWAIT) return WaitObject::get_wait(wait_, argument);
  if (command == FI_GETWAITOBJ) return WaitObject::get_kind(wait_, argument);
  return -FI_ENOSYS;
}

}  // namespace haul::fabric
