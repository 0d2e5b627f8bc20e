// Counting, and waiting for a count.
#include "fabric/endpoint/completion/counter.hpp"

#include <rdma/fi_errno.h>

#include <new>

#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/object.hpp"
#include "fabric/endpoint/waiting/wait_set.hpp"

namespace haul::fabric {

Counter::Counter(Domain& domain, void* user_context) noexcept : fid_cntr{}, Progressed(domain) {
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
    if (tried_) [[unlikely]]
      stop_trying();
    progress();
    in_vain = !has_news();
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

template <Counter::Word word>
std::uint64_t Counter::read(fid_cntr* counter) noexcept {
  auto& self = *static_cast<Counter*>(counter);
  return self.read(self.*word);
}

// fi_cntr_add, fi_cntr_set and their like for errors.
template <Counter::Word word, Counter::Change change>
int Counter::change(fid_cntr* counter, std::uint64_t operand) noexcept {
  auto& self = *static_cast<Counter*>(counter);
  Guard guard(self.owner_.lock);
  std::atomic<std::uint64_t>& value = self.*word;
  if (change == Change::add) operand += value.load(std::memory_order_relaxed);
  value.store(operand, std::memory_order_relaxed);
  // To fi_poll() a change that the program made itself is no news.
  self.polled_value_ = self.value_.load(std::memory_order_relaxed);
  self.polled_errors_ = self.errors_.load(std::memory_order_relaxed);
  if (self.parked_ > 0) self.wait_->ring();
  return 0;
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
    self.rest(deadline);
  }
}

bool Counter::has_news() const noexcept {
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
  return has_news();
}

fi_ops_cntr Counter::cntr_ops = {
    .size = sizeof(fi_ops_cntr),
    .read = read<&Counter::value_>,
    .readerr = read<&Counter::errors_>,
    .add = change<&Counter::value_, Change::add>,
    .set = change<&Counter::value_, Change::set>,
    .wait = wait,
    .adderr = change<&Counter::errors_, Change::add>,
    .seterr = change<&Counter::errors_, Change::set>,
};

}  // namespace haul::fabric
