// Reading and writing events.
#include "fabric/endpoint/completion/event_queue.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "fabric/endpoint/completion/error_text.hpp"
#include "fabric/endpoint/fabric.hpp"
#include "fabric/endpoint/object.hpp"
#include "fabric/endpoint/waiting/wait_set.hpp"

namespace haul::fabric {

fi_ops_eq EventQueue::eq_ops = {
    .size = sizeof(fi_ops_eq),
    .read = read,
    .readerr = read_error,
    .write = write,
    .sread = blocking_read,
    .strerror = [](fid_eq*, int error, const void*, char* buffer,
                   std::size_t bytes) { return error_text(error, buffer, bytes); },
};

EventQueue::EventQueue(Fabric& fabric, bool writable, void* user_context) noexcept
    : fid_eq{}, owner_(fabric), writable_(writable) {
  static fi_ops base_ops = object_calls(close, unimplemented, control);
  begin_object(fid, FI_CLASS_EQ, user_context, base_ops);
  ops = &eq_ops;
}

int EventQueue::open(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** queue, void* context) noexcept {
  if (queue == nullptr) return -FI_EINVAL;
  const fi_eq_attr asked = attr != nullptr ? *attr : fi_eq_attr{};
  if ((asked.flags & ~(FI_WRITE | FI_AFFINITY)) != 0) return -FI_EBADFLAGS;
  Fabric& owner = Fabric::of(fabric);
  std::unique_ptr<EventQueue> made(new (std::nothrow)
                                       EventQueue(owner, (asked.flags & FI_WRITE) != 0, context));
  if (made == nullptr) return -FI_ENOMEM;
  const int error = made->choose_wait(asked.wait_obj, asked.wait_set);
  if (error != 0) return error;
  owner.references.fetch_add(1, std::memory_order_relaxed);
  *queue = made.release();
  return 0;
}

int EventQueue::close(fid_t object) noexcept {
  EventQueue& self = of(object);
  if (const int error = self.prepare_close(); error != 0) return error;
  self.owner_.references.fetch_sub(1, std::memory_order_release);
  delete &self;
  return 0;
}

int EventQueue::control(fid_t object, int command, void* argument) noexcept {
  return of(object).control_wait(command, argument);
}

void EventQueue::add(std::uint32_t event, const void* body, std::size_t bytes) noexcept {
  Guard guard(lock_);
  Event& added = events_.emplace_back();
  added.kind = event;
  const auto* first = static_cast<const unsigned char*>(body);
  added.body.assign(first, first + bytes);
  if (wait_ != nullptr) wait_->ring();
}

void EventQueue::add_error(const fi_eq_err_entry& error) noexcept {
  Guard guard(lock_);
  Event& added = events_.emplace_back();
  added.failed = true;
  added.error = error;
  if (wait_ != nullptr) wait_->ring();
}

ssize_t EventQueue::read(fid_eq* queue, std::uint32_t* event, void* buffer, std::size_t bytes,
                         std::uint64_t flags) noexcept {
  auto& self = *static_cast<EventQueue*>(queue);
  if (event == nullptr || (buffer == nullptr && bytes > 0)) return -FI_EINVAL;
  Guard guard(self.lock_);
  if (self.events_.empty()) return -FI_EAGAIN;
  const Event& oldest = self.events_.front();
  if (oldest.failed) return -FI_EAVAIL;
  if (bytes < oldest.body.size()) return -FI_ETOOSMALL;
  const std::size_t read = oldest.body.size();
  *event = oldest.kind;
  if (read > 0) std::memcpy(buffer, oldest.body.data(), read);
  if ((flags & FI_PEEK) == 0) {
    self.events_.pop_front();
    self.taken();
  }
  return static_cast<ssize_t>(read);
}

ssize_t EventQueue::read_error(fid_eq* queue, fi_eq_err_entry* entry,
                               std::uint64_t flags) noexcept {
  auto& self = *static_cast<EventQueue*>(queue);
  if (entry == nullptr) return -FI_EINVAL;
  Guard guard(self.lock_);
  const auto found = std::find_if(self.events_.begin(), self.events_.end(),
                                  [](const Event& event) { return event.failed; });
  if (found == self.events_.end()) return -FI_EAGAIN;
  // No event here has err_data: 0 bytes of it is right for old and new callers.
  *entry = found->error;
  if ((flags & FI_PEEK) == 0) {
    self.events_.erase(found);
    self.taken();
  }
  return sizeof *entry;
}

ssize_t EventQueue::write(fid_eq* queue, std::uint32_t event, const void* buffer, std::size_t bytes,
                          std::uint64_t flags) noexcept {
  auto& self = *static_cast<EventQueue*>(queue);
  if (!self.writable_) return -FI_EINVAL;
  if (flags != 0) return -FI_EBADFLAGS;
  if (buffer == nullptr && bytes > 0) return -FI_EINVAL;
  self.add(event, buffer, bytes);
  return static_cast<ssize_t>(bytes);
}

ssize_t EventQueue::blocking_read(fid_eq* queue, std::uint32_t* event, void* buffer,
                                  std::size_t bytes, int timeout, std::uint64_t flags) noexcept {
  auto& self = *static_cast<EventQueue*>(queue);
  if (self.wait_ == nullptr || self.set_ != nullptr) return -FI_ENOSYS;
  const Deadline deadline(timeout);
  for (;;) {
    const ssize_t got = read(queue, event, buffer, bytes, flags);
    if (got != -FI_EAGAIN || deadline.passed()) return got;
    self.wait_->sleep(deadline.remaining_ms());
  }
}

bool EventQueue::ready() noexcept {
  Guard guard(lock_);
  return !events_.empty();
}

// The lock is held.
void EventQueue::taken() noexcept {
  if (events_.empty() && wait_ != nullptr && set_ == nullptr) wait_->quiet();
}

}  // namespace haul::fabric
