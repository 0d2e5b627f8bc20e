// Opening, closing and reading completion queues.
#include "fabric/endpoint/completion/completion_queue.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "fabric/endpoint/completion/error_text.hpp"
#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/object.hpp"
#include "fabric/endpoint/offer/info.hpp"
#include "fabric/endpoint/waiting/wait_set.hpp"

namespace haul::fabric {

namespace {

// 0: no such format. The default is the smallest: a program that names none reads contexts.
std::size_t bytes_of(fi_cq_format format) noexcept {
  switch (format) {
    case FI_CQ_FORMAT_UNSPEC:
    case FI_CQ_FORMAT_CONTEXT: return sizeof(fi_cq_entry);
    case FI_CQ_FORMAT_MSG: return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA: return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED: return sizeof(fi_cq_tagged_entry);
  }
  return 0;
}

}  // namespace

fi_ops_cq FabricCompletionQueue::cq_ops = {
    .size = sizeof(fi_ops_cq),
    .read = read,
    .readfrom = read_from,
    .readerr = read_error,
    .sread = blocking_read,
    .sreadfrom = blocking_read_from,
    .signal = signal,
    .strerror = [](fid_cq*, int error, const void*, char* buffer,
                   std::size_t bytes) { return error_text(error, buffer, bytes); },
};

FabricCompletionQueue::FabricCompletionQueue(Domain& domain, const fi_cq_attr& attr,
                                             void* user_context) noexcept
    : fid_cq{},
      Progressed(domain),
      size_(attr.size != 0 ? attr.size : default_queue_size),
      entry_bytes_(bytes_of(attr.format)),
      ring_(std::min(size_, default_queue_size)) {
  static fi_ops base_ops = object_calls(close, unimplemented, control);
  begin_object(fid, FI_CLASS_CQ, user_context, base_ops);
  ops = &cq_ops;
}

FabricCompletionQueue::~FabricCompletionQueue() {
  for (std::size_t i = 0; i < ring_.size(); ++i) delete ring_.at(i).error;
}

int FabricCompletionQueue::open(fid_domain* domain, fi_cq_attr* attr, fid_cq** queue,
                                void* context) noexcept {
  if (queue == nullptr) return -FI_EINVAL;
  const fi_cq_attr asked = attr != nullptr ? *attr : fi_cq_attr{};
  if ((asked.flags & ~FI_AFFINITY) != 0) return -FI_EBADFLAGS;
  if (bytes_of(asked.format) == 0) return -FI_ENOSYS;
  if (asked.wait_obj != FI_WAIT_NONE && asked.wait_cond != FI_CQ_COND_NONE &&
      asked.wait_cond != FI_CQ_COND_THRESHOLD) {
    return -FI_EINVAL;
  }
  Domain& owner = Domain::of(domain);
  auto* made = new (std::nothrow) FabricCompletionQueue(owner, asked, context);
  if (made == nullptr) return -FI_ENOMEM;
  const int error =
      made->ring_.valid() ? made->choose_wait(asked.wait_obj, asked.wait_set) : -FI_ENOMEM;
  if (error != 0) {
    delete made;
    return error;
  }
  if (attr != nullptr) attr->size = made->size_;
  owner.references.fetch_add(1, std::memory_order_relaxed);
  *queue = made;
  return 0;
}

int FabricCompletionQueue::close(fid_t object) noexcept {
  FabricCompletionQueue& self = of(object);
  if (const int error = self.prepare_close(); error != 0) return error;
  self.owner_.references.fetch_sub(1, std::memory_order_release);
  delete &self;
  return 0;
}

int FabricCompletionQueue::control(fid_t object, int command, void* argument) noexcept {
  return of(object).control_wait(command, argument);
}

// Copies successes until the first failure. The shorter formats are the front of the longest.
std::size_t FabricCompletionQueue::copy_out(void* buffer, std::size_t count,
                                            fi_addr_t* sources) noexcept {
  auto* out = static_cast<char*>(buffer);
  const std::size_t most = std::min(count, ring_.size());
  std::size_t done = 0;
  for (; done < most; ++done) {
    const CompletionEntry& entry = ring_.at(done);
    if (entry.error != nullptr) break;
    if (entry_bytes_ == sizeof entry.shown) {
      std::memcpy(out, &entry.shown, sizeof entry.shown);
    } else {
      std::memcpy(out, &entry.shown, entry_bytes_);
    }
    out += entry_bytes_;
    if (sources != nullptr) sources[done] = entry.source;
  }
  ring_.drop(done);
  return done;
}

ssize_t FabricCompletionQueue::read_now(void* buffer, std::size_t count,
                                        fi_addr_t* sources) noexcept {
  {
    Guard guard(owner_.lock);
    if (tried_) [[unlikely]]
      stop_trying();
    if (ring_.empty() || count == 0) group_.progress();
    const std::size_t done = copy_out(buffer, count, sources);
    if (done > 0) {
      backoff_.reset();
      // Other threads may be asleep although there is more to read, since each ring wakes one.
      if (parked_ > 0 && !ring_.empty()) wait_->ring();
      return static_cast<ssize_t>(done);
    }
    if (!ring_.empty()) return ring_.at(0).error != nullptr ? -FI_EAVAIL : 0;
    if (overrun_) return -FI_EAVAIL;
  }
  if (backoff_.exhausted()) backoff_.give_way();
  return -FI_EAGAIN;
}

ssize_t FabricCompletionQueue::read(fid_cq* queue, void* buffer, std::size_t count) noexcept {
  return static_cast<FabricCompletionQueue*>(queue)->read_now(buffer, count, nullptr);
}

ssize_t FabricCompletionQueue::read_from(fid_cq* queue, void* buffer, std::size_t count,
                                         fi_addr_t* sources) noexcept {
  return static_cast<FabricCompletionQueue*>(queue)->read_now(buffer, count, sources);
}

void FabricCompletionQueue::write_error(const CompletionEntry& entry,
                                        fi_cq_err_entry* out) noexcept {
  const bool owns_data = owner_.api_version < FI_VERSION(1, 5) || out->err_data_size == 0;
  void* const room = out->err_data;
  const std::size_t room_bytes = out->err_data_size;
  fi_cq_err_entry made = {};
  made.op_context = entry.shown.op_context;
  made.flags = entry.shown.flags;
  made.len = entry.shown.len;
  made.buf = entry.shown.buf;
  made.data = entry.shown.data;
  made.tag = entry.shown.tag;
  made.olen = entry.error->overflow;
  made.err = made.prov_errno = entry.error->error;
  if (owns_data) {
    if (entry.error->has_address) {
      error_address_ = entry.error->address;
      made.err_data = &error_address_;
      made.err_data_size = sizeof error_address_;
    }
  } else {
    made.err_data = room;
    if (entry.error->has_address && room != nullptr) {
      made.err_data_size = std::min(room_bytes, sizeof error_address_);
      std::memcpy(room, &entry.error->address, made.err_data_size);
    }
  }
  // Later versions have a source address behind these 80 bytes.
  constexpr std::size_t old_bytes = 80;
  static_assert(sizeof made == old_bytes);
  std::memcpy(out, &made, old_bytes);
  if (owner_.api_version >= FI_VERSION(1, 20)) {
    std::memcpy(reinterpret_cast<char*>(out) + old_bytes, &entry.source, sizeof entry.source);
  }
}

ssize_t FabricCompletionQueue::read_error(fid_cq* queue, fi_cq_err_entry* out,
                                          std::uint64_t) noexcept {
  auto& self = *static_cast<FabricCompletionQueue*>(queue);
  if (out == nullptr) return -FI_EINVAL;
  Guard guard(self.owner_.lock);
  if (self.ring_.empty()) self.group_.progress();
  for (std::size_t i = 0; i < self.ring_.size(); ++i) {
    CompletionEntry& entry = self.ring_.at(i);
    if (entry.error == nullptr) continue;
    self.write_error(entry, out);
    delete entry.error;
    self.ring_.erase(i);
    return 1;
  }
  if (!self.overrun_) return -FI_EAGAIN;
  CompletionError overrun;
  overrun.error = FI_EOVERRUN;
  CompletionEntry entry;
  entry.error = &overrun;
  self.write_error(entry, out);
  self.overrun_ = false;
  return 1;
}

bool FabricCompletionQueue::take_signal() noexcept {
  unsigned left = signals_.load(std::memory_order_relaxed);
  while (left > 0) {
    if (!signals_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) continue;
    if (left > 1) wait_->ring();  // for the next sleeper
    return true;
  }
  return false;
}

ssize_t FabricCompletionQueue::blocking_read_from(fid_cq* queue, void* buffer, std::size_t count,
                                                  fi_addr_t* sources, const void*,
                                                  int timeout) noexcept {
  auto& self = *static_cast<FabricCompletionQueue*>(queue);
  if (self.wait_ == nullptr || self.set_ != nullptr) return -FI_ENOSYS;
  const Deadline deadline(timeout);
  self.sleepers_.fetch_add(1, std::memory_order_relaxed);
  ssize_t done = 0;
  for (;;) {
    done = self.read_now(buffer, count, sources);
    if (done != -FI_EAGAIN || self.take_signal() || deadline.passed()) break;
    self.rest(deadline);
  }
  self.sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return done;
}

ssize_t FabricCompletionQueue::blocking_read(fid_cq* queue, void* buffer, std::size_t count,
                                             const void* condition, int timeout) noexcept {
  return blocking_read_from(queue, buffer, count, nullptr, condition, timeout);
}

int FabricCompletionQueue::signal(fid_cq* queue) noexcept {
  auto& self = *static_cast<FabricCompletionQueue*>(queue);
  if (self.wait_ == nullptr) return -FI_ENOSYS;
  // A signal ends blocking reads, not fi_wait().
  if (self.set_ == nullptr) {
    self.signals_.store(std::max(1u, self.sleepers_.load(std::memory_order_relaxed)),
                        std::memory_order_relaxed);
  }
  self.wait_->ring();
  return 0;
}

bool FabricCompletionQueue::ready() noexcept {
  Guard guard(owner_.lock);
  if (ring_.empty()) group_.progress();
  return !ring_.empty() || overrun_;
}

// A signal that came before quiet() is still counted.
bool FabricCompletionQueue::has_news() const noexcept {
  return !ring_.empty() || overrun_ || signals_.load(std::memory_order_relaxed) != 0;
}

}  // namespace haul::fabric
