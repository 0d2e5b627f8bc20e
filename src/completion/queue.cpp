#include "completion/queue.hpp"

#include <algorithm>

#include "base/os/os.hpp"

namespace haul {

bool CompletionQueue::reserve() noexcept {
  if (outstanding_ >= capacity) return false;
  ++outstanding_;
  return true;
}

bool CompletionQueue::post(const Completion& completion) noexcept {
  // Acquire-release: posters take indices in another order than room was reserved in, so this entry
  // may have been freed for a poster with a lower index, who alone has seen that it was.
  return fill(tail_.fetch_add(1, std::memory_order_acq_rel), completion);
}

bool CompletionQueue::fill(std::uint64_t index, const Completion& completion) noexcept {
  // The entry is free: reserve() bounds what is posted and not reaped.
  Entry& entry = entries_[index % capacity];
  entry.completion = completion;
  // Release for front(); sequentially consistent with arm(): either arm() sees this entry, or we
  // see it armed.
  entry.turn.store(index + 1, std::memory_order_seq_cst);
  return disarm();
}

bool CompletionQueue::disarm() noexcept {
  return armed_.load(std::memory_order_seq_cst) != 0 &&
         armed_.exchange(0, std::memory_order_acq_rel) != 0;
}

void CompletionQueue::signal() noexcept {
  const int fd = event_.now().get();
  if (fd >= 0) os::event_signal(fd);
}

bool CompletionQueue::post_once(const Completion& completion) noexcept {
  constexpr unsigned looks = 1000;
  constexpr std::uint64_t pause_ns = 100'000;
  const std::uint64_t tail = tail_.load(std::memory_order_acquire);
  // Entries that were reaped are skipped: the ring may have been emptied at rest since
  // (request/rest.hpp). Relaxed: an older head is as good, except one from before the rest, which
  // came before this request was submitted.
  const std::uint64_t head = __atomic_load_n(&head_, __ATOMIC_RELAXED);
  for (std::uint64_t index = std::max(head, tail > capacity ? tail - capacity : 0); index < tail;
       ++index) {
    const Entry& entry = entries_[index % capacity];
    // A poster of this process fills its entry in a moment.
    for (unsigned look = 0; look < looks && !filled(entry, index); ++look) os::sleep_ns(pause_ns);
    if (!filled(entry, index)) return fill(index, completion);
    // Relaxed: an entry that is refilled meanwhile is another request's, whatever is read of it.
    const Ticket& ticket = entry.completion.ticket;
    if (__atomic_load_n(&ticket.where, __ATOMIC_RELAXED) == completion.ticket.where &&
        __atomic_load_n(&ticket.tenancy, __ATOMIC_RELAXED) == completion.ticket.tenancy) {
      return disarm();
    }
  }
  return post(completion);
}

const Completion* CompletionQueue::front() const noexcept {
  const Entry& entry = entries_[head_ % capacity];
  // Acquire: pairs with the store in fill().
  if (entry.turn.load(std::memory_order_acquire) != head_ + 1) return nullptr;
  return &entry.completion;
}

bool CompletionQueue::pop(std::uint64_t position) noexcept {
  // A single instruction, so that this thread's signal handlers see it done or not begun.
  if (!__atomic_compare_exchange_n(&head_, &position, position + 1, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED))
    return false;
  if (outstanding_ != 0) --outstanding_;
  return true;
}

int CompletionQueue::descriptor() noexcept {
  const os::Descriptor before = event_.now();
  if (const int fd = before.get(); fd >= 0) return fd;
  const int fd = os::event_fd();
  if (fd < 0) return fd;
  event_.set(os::Descriptor::of(fd));
  if (before.valid()) os::event_signal(fd);
  return fd;
}

CompletionQueue::Armed CompletionQueue::arm() noexcept {
  const os::Descriptor event = event_.now();
  const int fd = event.get();
  if (event.valid() && fd < 0) return Armed::event_lost;
  if (fd >= 0) os::event_clear(fd);
  armed_.store(1, std::memory_order_seq_cst);
  const Entry& entry = entries_[head_ % capacity];
  if (entry.turn.load(std::memory_order_seq_cst) != head_ + 1) return Armed::armed;
  armed_.store(0, std::memory_order_relaxed);
  return Armed::entry_waits;
}

void CompletionQueue::abandon() noexcept {
  forget_descriptor();
  head_ = tail_.load(std::memory_order_relaxed);
  outstanding_ = 0;
}

void CompletionQueue::forget_descriptor() noexcept {
  os::Descriptor event = event_.now();
  event_.set(os::Descriptor());
  event.close();
  armed_.store(0, std::memory_order_relaxed);
}

}  // namespace haul
