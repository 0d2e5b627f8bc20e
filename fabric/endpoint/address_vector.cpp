// Inserting, removing and describing addresses.
#include "fabric/endpoint/address_vector.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "fabric/endpoint/completion/event_queue.hpp"
#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/object.hpp"
#include "fabric/endpoint/offer/names.hpp"

namespace haul::fabric {

fi_ops_av AddressVector::av_ops = {
    .size = sizeof(fi_ops_av),
    .insert = insert,
    .insertsvc = insert_by_name,
    .insertsym = unimplemented,
    .remove = remove,
    .lookup = lookup,
    .straddr = describe,
    .av_set = unimplemented,
};

AddressVector::AddressVector(Domain& domain, const fi_av_attr& attr, void* user_context) noexcept
    : fid_av{}, owner_(domain), asynchronous_((attr.flags & FI_EVENT) != 0) {
  static fi_ops base_ops = object_calls(close, bind);
  begin_object(fid, FI_CLASS_AV, user_context, base_ops);
  ops = &av_ops;
}

int AddressVector::open(fid_domain* domain, fi_av_attr* attr, fid_av** vector,
                        void* context) noexcept {
  if (attr == nullptr || vector == nullptr) return -FI_EINVAL;
  // Named vectors are those that processes share (FI_SHARED_AV, which is not offered).
  if (attr->name != nullptr) return -FI_ENOSYS;
  if ((attr->flags & ~(FI_EVENT | FI_SYMMETRIC)) != 0) return -FI_EBADFLAGS;
  if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP && attr->type != FI_AV_TABLE) {
    return -FI_EINVAL;
  }
  Domain& owner = Domain::of(domain);
  auto* made = new (std::nothrow) AddressVector(owner, *attr, context);
  if (made == nullptr) return -FI_ENOMEM;
  if (attr->type == FI_AV_UNSPEC) attr->type = FI_AV_TABLE;
  owner.references.fetch_add(1, std::memory_order_relaxed);
  *vector = made;
  return 0;
}

int AddressVector::close(fid_t object) noexcept {
  AddressVector& self = of(object);
  if (self.references.load(std::memory_order_acquire) != 0) return -FI_EBUSY;
  if (self.events_ != nullptr) self.events_->unbind();
  self.owner_.references.fetch_sub(1, std::memory_order_release);
  delete &self;
  return 0;
}

int AddressVector::bind(fid_t object, fid_t other, std::uint64_t flags) noexcept {
  AddressVector& self = of(object);
  if (other == nullptr || other->fclass != FI_CLASS_EQ) return -FI_EINVAL;
  if (flags != 0) return -FI_EBADFLAGS;
  Guard guard(self.lock_);
  if (self.events_ != nullptr) return -FI_EINVAL;
  self.events_ = &EventQueue::of(other);
  self.events_->bind();
  return 0;
}

// The lock is held.
fi_addr_t AddressVector::place(const Address& address) noexcept {
  fi_addr_t name = entries_.size();
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    name = free_.top();
    free_.pop();
  }
  Entry& entry = entries_[name];
  entry.address = address;
  entry.used = true;
  ++entry.version;
  return name;
}

int AddressVector::insert(fid_av* vector, const void* addresses, std::size_t count,
                          fi_addr_t* names, std::uint64_t flags, void* context) noexcept {
  auto& self = *static_cast<AddressVector*>(vector);
  if ((flags & ~(FI_MORE | FI_SYNC_ERR)) != 0) return -FI_EBADFLAGS;
  if (addresses == nullptr && count > 0) return -FI_EINVAL;
  int* errors = nullptr;
  if ((flags & FI_SYNC_ERR) != 0) {
    // Errors of asynchronous insertions are events.
    if (self.asynchronous_ || context == nullptr) return -FI_EINVAL;
    errors = static_cast<int*>(context);
  }
  int inserted = 0;
  {
    Guard guard(self.lock_);
    if (self.asynchronous_ && self.events_ == nullptr) return -FI_ENOEQ;
    for (std::size_t i = 0; i < count; ++i) {
      Address address;  // the program's need not be aligned
      std::memcpy(&address, static_cast<const char*>(addresses) + i * sizeof address,
                  sizeof address);
      const bool valid = address.valid();
      const fi_addr_t name = valid ? self.place(address) : FI_ADDR_NOTAVAIL;
      if (names != nullptr) names[i] = name;
      if (errors != nullptr) errors[i] = valid ? 0 : FI_EINVAL;
      inserted += valid ? 1 : 0;
      if (valid || !self.asynchronous_) continue;
      fi_eq_err_entry failure = {};
      failure.fid = &self.fid;
      failure.context = context;
      failure.data = i;
      failure.err = failure.prov_errno = FI_EINVAL;
      self.events_->add_error(failure);
    }
    // Release: pairs with the acquire in generation().
    self.generation_.fetch_add(1, std::memory_order_release);
  }
  if (!self.asynchronous_) return inserted;
  const fi_eq_entry done = {&self.fid, context, static_cast<std::uint64_t>(inserted)};
  self.events_->add(FI_AV_COMPLETE, &done, sizeof done);
  return 0;
}

int AddressVector::insert_by_name(fid_av* vector, const char* node, const char* service,
                                  fi_addr_t* name, std::uint64_t flags, void* context) noexcept {
  if (node == nullptr && service == nullptr) return -FI_EINVAL;
  Address address;
  if (!resolve(node, service, false, (flags & FI_NUMERICHOST) != 0, &address)) return -FI_ENODATA;
  return insert(vector, &address, 1, name, flags & ~static_cast<std::uint64_t>(FI_NUMERICHOST),
                context);
}

int AddressVector::remove(fid_av* vector, fi_addr_t* names, std::size_t count,
                          std::uint64_t flags) noexcept {
  auto& self = *static_cast<AddressVector*>(vector);
  if (flags != 0) return -FI_EBADFLAGS;
  if (names == nullptr && count > 0) return -FI_EINVAL;
  Guard guard(self.lock_);
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] >= self.entries_.size() || !self.entries_[names[i]].used) return -FI_EINVAL;
    Entry& entry = self.entries_[names[i]];
    entry.used = false;
    ++entry.version;
    self.free_.push(names[i]);
    // Release: pairs with the acquire in generation().
    self.generation_.fetch_add(1, std::memory_order_release);
  }
  return 0;
}

int AddressVector::lookup(fid_av* vector, fi_addr_t name, void* address,
                          std::size_t* bytes) noexcept {
  auto& self = *static_cast<AddressVector*>(vector);
  if (bytes == nullptr || (address == nullptr && *bytes > 0)) return -FI_EINVAL;
  Guard guard(self.lock_);
  if (name >= self.entries_.size() || !self.entries_[name].used) return -FI_EINVAL;
  const Address& found = self.entries_[name].address;
  if (*bytes > 0) std::memcpy(address, &found, std::min(*bytes, sizeof found));
  *bytes = sizeof found;
  return 0;
}

const char* AddressVector::describe(fid_av*, const void* address, char* text,
                                    std::size_t* bytes) noexcept {
  char whole[address_text_bytes];
  Address aligned;  // the program's need not be
  std::memcpy(static_cast<void*>(&aligned), address, sizeof aligned);
  print_address(aligned, whole);
  if (*bytes > 0) std::snprintf(text, *bytes, "%s", whole);
  *bytes = sizeof whole;
  return text;
}

}  // namespace haul::fabric
