#include "memory/changes.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "base/machine/clock.hpp"
#include "base/machine/page_facts.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/userfault.hpp"
#include "base/sync/quiet_lock.hpp"
#include "base/thread/own_threads.hpp"

namespace haul {
namespace {

constexpr std::uint64_t settling_ns = 1'000'000'000;
constexpr std::uint64_t nap_ns = 1'000'000'000;
constexpr unsigned most_listeners = 64, most_settling = 32;

enum class WatchStage : std::uint8_t { closed, open, lost };

// Pages that madvise() was about to give back.
struct Settling {
  std::uintptr_t begin = 0, end = 0;
  std::uint64_t until_ns = 0;
};

constinit pthread_mutex_t changes_mutex = PTHREAD_MUTEX_INITIALIZER;
constinit std::atomic<WatchStage> stage{WatchStage::closed};
constinit os::SharedDescriptor userfault;
// Set before an event is read, which lets the program go on, and cleared once all that was read has
// been told of.
constinit std::atomic<bool> telling{false};
constinit std::atomic<ChangeListener*> listeners[most_listeners];
// Held while listeners are told, so that one who leaves is not told afterwards. Within it listeners
// take locks of their own, none of which is held while somebody waits for this one.
constinit pthread_mutex_t telling_lock = PTHREAD_MUTEX_INITIALIZER;
// Under the lock; overwritten in turn. One that is overwritten too early widens all.
constinit Settling settling[most_settling];
constinit unsigned next_settling = 0;

template <class Tell>
void tell_all(Tell tell) noexcept {
  const QuietLock lock(telling_lock);
  for (auto& listener : listeners)
    if (auto* const it = listener.load(std::memory_order_acquire); it != nullptr) tell(*it);
}

void lose() noexcept {
  if (stage.exchange(WatchStage::lost) == WatchStage::lost) return;
  tell_all([](ChangeListener& listener) noexcept { listener.changes_lost(); });
}

void note_settling(std::uintptr_t begin, std::uintptr_t end) noexcept {
  const QuietLock lock(changes_mutex);
  Settling& place = settling[next_settling++ % most_settling];
  const std::uint64_t now = now_ns();
  if (place.until_ns > now) {
    begin = std::min(begin, place.begin);
    end = std::max(end, place.end);
  }
  place = {begin, end, now + settling_ns};
}

bool is_settling(std::uintptr_t begin, std::uintptr_t end) noexcept {
  const QuietLock lock(changes_mutex);
  const std::uint64_t now = now_ns();
  return std::any_of(settling, settling + most_settling, [&](const Settling& place) {
    return place.until_ns > now && place.begin < end && begin < place.end;
  });
}

void* serve(void*) noexcept {
  os::name_thread("haul-memory");
  for (;;) {
    const int fd = userfault.now().get();
    if (fd < 0) break;
    os::await_events(fd, nap_ns);
    // (A process whose own threads have all ended ends when this one does.)
    if (!os::any_event(fd) && os::only_own_threads()) break;
    telling.store(true, std::memory_order_seq_cst);
    os::FaultEvent event;
    // (The descriptor is looked at again: what another file says must not be read.)
    while (userfault.now().get() == fd && os::next_event(fd, &event)) {
      using Kind = os::FaultEvent::Kind;
      if (event.kind == Kind::missing || event.kind == Kind::write) {
        os::wake_held(fd, event.begin, event.end - event.begin);  // none is watched for that
        continue;
      }
      if (event.kind == Kind::removed) note_settling(event.begin, event.end);
      tell_of_change(event.begin, event.end);
    }
    telling.store(false, std::memory_order_release);
  }
  lose();
  userfault.now().close();
  if (!os::end_process_elsewhere()) os::detach_self();
  return nullptr;
}

// Opens the descriptor and makes the thread, once.
bool open() noexcept {
  if (const WatchStage now = stage.load(std::memory_order_acquire); now != WatchStage::closed)
    return now == WatchStage::open;
  const QuietLock lock(changes_mutex);
  if (stage.load(std::memory_order_relaxed) != WatchStage::closed)
    return stage.load(std::memory_order_relaxed) == WatchStage::open;
  const int fd = os::open_memory_events();
  if (fd < 0) {
    stage.store(WatchStage::lost);
    return false;
  }
  userfault.set(os::Descriptor::of(fd));
  pthread_t thread;
  if (os::start_thread(&thread, serve, nullptr) != 0) {
    userfault.now().close();
    stage.store(WatchStage::lost);
    return false;
  }
  stage.store(WatchStage::open, std::memory_order_release);
  return true;
}

}  // namespace

bool listen_to_changes(ChangeListener& listener) noexcept {
  for (const auto& place : listeners)
    if (place.load(std::memory_order_relaxed) == &listener) return true;
  for (auto& place : listeners) {
    ChangeListener* seen = nullptr;
    if (place.compare_exchange_strong(seen, &listener)) return true;
  }
  return false;
}

void end_listening(ChangeListener& listener) noexcept {
  const QuietLock lock(telling_lock);
  end_listening_in_child(listener);
}

void end_listening_in_child(ChangeListener& listener) noexcept {
  for (auto& place : listeners) {
    ChangeListener* seen = &listener;
    if (place.compare_exchange_strong(seen, nullptr)) return;
  }
}

bool watch_changes(std::uintptr_t begin, std::size_t bytes, bool* settles) noexcept {
  os::PageRun whole;
  if (!os::private_mappings(begin, begin + bytes, &whole) || !open()) return false;
  const int fd = userfault.now().get();
  const auto watch = os::WatchFor::writes;
  if (fd < 0 || os::watch(fd, whole.begin, whole.end - whole.begin, watch) != 0) return false;
  *settles = is_settling(begin, begin + bytes);
  return true;
}

bool changes_under_way() noexcept {
  if (stage.load(std::memory_order_acquire) != WatchStage::open) return false;
  const int fd = userfault.now().get();
  if (fd < 0) lose();
  // In this order: what the kernel does not know of any more was read with `telling` set.
  return fd >= 0 && (os::changes_wait(fd) || telling.load(std::memory_order_seq_cst));
}

void tell_of_change(std::uintptr_t begin, std::uintptr_t end) noexcept {
  tell_all([=](ChangeListener& listener) noexcept { listener.memory_changed(begin, end); });
}

void forget_changes() noexcept {
  changes_mutex = telling_lock = PTHREAD_MUTEX_INITIALIZER;
  if (stage.load(std::memory_order_relaxed) == WatchStage::open) userfault.now().close();
  userfault.set(os::Descriptor());
  telling.store(false, std::memory_order_relaxed);
  stage.store(WatchStage::closed, std::memory_order_relaxed);
}

}  // namespace haul
