// Polling several queues and counters.
#include "fabric/endpoint/waiting/poll_set.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <new>

#include "fabric/endpoint/completion/completion_queue.hpp"
#include "fabric/endpoint/completion/counter.hpp"
#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/object.hpp"

namespace haul::fabric {

namespace {

// A member keeps its queue or counter from being closed.
void hold(fid& member, bool held) noexcept {
  Waitable& waitable = member.fclass == FI_CLASS_CNTR ? static_cast<Waitable&>(Counter::of(&member))
                                                      : FabricCompletionQueue::of(&member);
  held ? waitable.bind() : waitable.unbind();
}

}  // namespace

PollSet::PollSet(Domain& domain) noexcept : fid_poll{}, owner_(domain) {
  static fi_ops base_ops = object_calls(close);
  static fi_ops_poll poll_ops = {
      .size = sizeof(fi_ops_poll), .poll = poll, .poll_add = add, .poll_del = remove};
  begin_object(fid, FI_CLASS_POLL, nullptr, base_ops);
  ops = &poll_ops;
}

int PollSet::open(fid_domain* domain, fi_poll_attr* attr, fid_poll** set) noexcept {
  if (set == nullptr) return -FI_EINVAL;
  if (attr != nullptr && attr->flags != 0) return -FI_EBADFLAGS;
  Domain& owner = Domain::of(domain);
  auto* made = new (std::nothrow) PollSet(owner);
  if (made == nullptr) return -FI_ENOMEM;
  owner.references.fetch_add(1, std::memory_order_relaxed);
  *set = made;
  return 0;
}

int PollSet::close(fid_t object) noexcept {
  auto& self = *static_cast<PollSet*>(reinterpret_cast<fid_poll*>(object));
  {
    Guard guard(self.lock_);
    if (!self.members_.empty()) return -FI_EBUSY;
  }
  self.owner_.references.fetch_sub(1, std::memory_order_release);
  delete &self;
  return 0;
}

int PollSet::poll(fid_poll* set, void** contexts, int count) noexcept {
  auto& self = *static_cast<PollSet*>(set);
  if (count < 0 || (contexts == nullptr && count > 0)) return -FI_EINVAL;
  Guard guard(self.lock_);
  int found = 0;
  for (fid_t member : self.members_) {
    if (found == count) break;
    const bool news = member->fclass == FI_CLASS_CNTR ? Counter::of(member).changed()
                                                      : FabricCompletionQueue::of(member).ready();
    if (news) contexts[found++] = member->context;
  }
  return found;
}

int PollSet::add(fid_poll* set, fid_t member, std::uint64_t flags) noexcept {
  auto& self = *static_cast<PollSet*>(set);
  if (flags != 0) return -FI_EBADFLAGS;
  if (member == nullptr || (member->fclass != FI_CLASS_CQ && member->fclass != FI_CLASS_CNTR)) {
    return -FI_EINVAL;
  }
  Guard guard(self.lock_);
  if (std::find(self.members_.begin(), self.members_.end(), member) != self.members_.end()) {
    return -FI_EINVAL;
  }
  self.members_.push_back(member);
  hold(*member, true);
  return 0;
}

int PollSet::remove(fid_poll* set, fid_t member, std::uint64_t flags) noexcept {
  auto& self = *static_cast<PollSet*>(set);
  if (flags != 0) return -FI_EBADFLAGS;
  Guard guard(self.lock_);
  if (std::erase(self.members_, member) == 0) return -FI_EINVAL;
  hold(*member, false);
  return 0;
}

}  // namespace haul::fabric
