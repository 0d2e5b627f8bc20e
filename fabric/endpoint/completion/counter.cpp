// Counting, and waiting for a count.
#include "fabric/endpoint/completion/counter.hpp"

#include <rdma/fi_errno.h>

#include <new>

#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/object.hpp"
#include "fabric/endpoint/waiting/wait_set.hpp"

namespace haul::fabric {

fi_ops_cntr Counter::cntr_ops = {
    .size = sizeof(fi_ops_cntr),
    .read = read,
    .readerr = read_errors,
    .add = add,
    .set = set,
    .wait = wait,
    .adderr = add_errors,
    .seterr = set_errors,
};

Counter::Counter(Domain& domain, void* user_context) noexcept : fid_cntr{}, owner_(domain) {
  static fi_ops base_ops = object_calls(close, unimplemented, control);
  begin_object(fid, FI_CLASS_CNTR, user_context, base_ops);
  ops = &cntr_ops;
}

int Counter::open(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** counter,
                  void* context) noexcept {
  if (counter == nullptr) return -FI_EINVAL;
  const fi_cntr_attr asked = attr != nullptr ? *attr : fi_cntr_attr{};
  if (asked.flags != 0) return -FI_EBADFLAGS;
  if (asked.events != FI_CNTR_EVENTS_COMP) return -FI_ENOSYS;
  Domain& owner = Domain::of(domain);
  std::unique_ptr<Counter> made(new (std::nothrow) Counter(owner, context));
  if (made == nullptr) return -FI_ENOMEM;
  const int error = made->choose_wait(asked.wait_obj, asked.wait_set);
  if (error != 0) return error;
  owner.references.fetch_add(1, std::memory_order_relaxed);
  *counter = made.release();
  return 0;
}

int Counter::close(fid_t object) noexcept {
  Counter& self = of(object);
  if (const int error = self.prepare_close(); error != 0) return error;
  self.owner_.references.fetch_sub(1, std::memory_order_release);
  delete &self;
  return 0;
}

int Counter::control(fid_t object, int command, void* argument) noexcept {
  switch (command) {
    case FI_GETOPSFLAG:  // counters have no operation flags
      if (argument == nullptr) return -FI_EINVAL;
      *static_cast<std::uint64_t*>(argument) = 0;
      return 0;
    case FI_SETOPSFLAG:
      if (argument == nullptr) return -FI_EINVAL;
      return *static_cast<std::uint64_t*>(argument) == 0 ? 0 : -FI_EBADFLAGS;
    default: return of(object).control_wait(command, argument);
  }
}

void Counter::count(bool failed) noexcept {
  (failed ? errors_ : value_).fetch_add(1, std::memory_order_relaxed);
  if (parked_ > 0) wait_->ring();
}

void Counter::bind_region() noexcept {
  bind();
  Guard guard(owner_.lock);
  if (regions_++ == 0 && wait_ != nullptr) wait_->watch(-1);
}

void Counter::unbind_region() noexcept {
  {
    Guard guard(owner_.lock);
    if (--regions_ == 0 && wait_ != nullptr) wait_->unwatch(-1);
  }
  unbind();
}

void Counter::progress() noexcept {
  group_.progress();
  if (regions_ > 0) owner_.endpoints.progress();
}

std::uint64_t Counter::read(const std::atomic<std::uint64_t>& value) noexcept {
  bool in_vain = false;
  std::uint64_t now = 0;
  {
    Guard guard(owner_.lock);
    if (tried_) [[unlikely]] {
      tried_ = false;
      --parked_;
      group_.disarm();
    }
    progress();
    in_vain = !unseen();
    see();
    now = value.load(std::memory_order_relaxed);
  }
  if (!in_vain) {
    backoff_.reset();
  } else if (backoff_.exhausted()) {
    backoff_.give_way();
  }
  return now;
}

std::uint64_t Counter::read(fid_cntr* counter) noexcept {
  auto& self = *static_cast<Counter*>(counter);
  return self.read(self.value_);
}

std::uint64_t Counter::read_errors(fid_cntr* counter) noexcept {
  auto& self = *static_cast<Counter*>(counter);
  return self.read(self.errors_);
}

// fi_cntr_add, fi_cntr_set and the like: what the program did itself is nothing new to it.
int Counter::change(std::atomic<std::uint64_t>& value, std::uint64_t to) noexcept {
  value.store(to, std::memory_order_relaxed);
  polled_value_ = value_.load(std::memory_order_relaxed);
  polled_errors_ = errors_.load(std::memory_order_relaxed);
  if (parked_ > 0) wait_->ring();
  return 0;
}

int Counter::add(fid_cntr* counter, std::uint64_t value) noexcept {
  auto& self = *static_cast<Counter*>(counter);
  Guard guard(self.owner_.lock);
  return self.change(self.value_, self.value_.load(std::memory_order_relaxed) + value);
}

int Counter::set(fid_cntr* counter, std::uint64_t value) noexcept {
  auto& self = *static_cast<Counter*>(counter);
  Guard guard(self.owner_.lock);
  return self.change(self.value_, value);
}

int Counter::add_errors(fid_cntr* counter, std::uint64_t value) noexcept {
  auto& self = *static_cast<Counter*>(counter);
  Guard guard(self.owner_.lock);
  return self.change(self.errors_, self.errors_.load(std::memory_order_relaxed) + value);
}

int Counter::set_errors(fid_cntr* counter, std::uint64_t value) noexcept {
  auto& self = *static_cast<Counter*>(counter);
  Guard guard(self.owner_.lock);
  return self.change(self.errors_, value);
}

int Counter::wait(fid_cntr* counter, std::uint64_t threshold, int timeout) noexcept {
  auto& self = *static_cast<Counter*>(counter);
  if (self.wait_ == nullptr || self.set_ != nullptr) return -FI_ENOSYS;
  const Deadline deadline(timeout);
  const std::uint64_t errors = self.errors_.load(std::memory_order_relaxed);
  for (;;) {
    if (self.read(self.value_) >= threshold) return 0;
    if (self.errors_.load(std::memory_order_relaxed) != errors) return -FI_EAVAIL;
    if (deadline.passed()) return -FI_ETIMEDOUT;
    if (deadline.young() || !self.park()) continue;
    self.wait_->sleep(deadline.remaining_ms());
    self.unpark();
  }
}

bool Counter::unseen() const noexcept {
  return value_.load(std::memory_order_relaxed) != seen_value_ ||
         errors_.load(std::memory_order_relaxed) != seen_errors_;
}

void Counter::see() noexcept {
  seen_value_ = value_.load(std::memory_order_relaxed);
  seen_errors_ = errors_.load(std::memory_order_relaxed);
}

bool Counter::changed() noexcept {
  Guard guard(owner_.lock);
  progress();
  const std::uint64_t value = value_.load(std::memory_order_relaxed);
  const std::uint64_t errors = errors_.load(std::memory_order_relaxed);
  const bool changed = value != polled_value_ || errors != polled_errors_;
  polled_value_ = value;
  polled_errors_ = errors;
  return changed;
}

bool Counter::ready() noexcept {
  Guard guard(owner_.lock);
  progress();
  return unseen();
}

bool Counter::park() noexcept {
  Guard guard(owner_.lock);
  if (set_ == nullptr && wait_ != nullptr && parked_ == 0) wait_->quiet();
  ++parked_;
  group_.arm();
  progress();
  // Nothing rings when a copy is done.
  if (!unseen() && group_.idle()) return true;
  --parked_;
  group_.disarm();
  return false;
}

void Counter::unpark() noexcept {
  Guard guard(owner_.lock);
  --parked_;
  group_.disarm();
}

bool Counter::try_park() noexcept {
  if (wait_ == nullptr) return false;
  {
    Guard guard(owner_.lock);
    if (tried_) {
      tried_ = false;
      --parked_;
      group_.disarm();
    }
  }
  if (!park()) return false;
  Guard guard(owner_.lock);
  tried_ = true;
  return true;
}

}  // namespace haul::fabric
