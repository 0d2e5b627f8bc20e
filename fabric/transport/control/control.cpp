// The control thread, and what becomes of it around a fork.
#include "fabric/transport/control/control.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <vector>

#include "base/machine/clock.hpp"
#include "base/net/epoll.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/sync/backoff.hpp"
#include "base/thread/own_threads.hpp"

namespace haul::fabric::control {

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

namespace {

// Held while the thread is started or ended; taken before `mutex`.
constinit pthread_mutex_t life_mutex = PTHREAD_MUTEX_INITIALIZER;

// How often the thread looks whether the program has closed its descriptors; that wakes nobody.
constexpr int look_ms = 1000;
constexpr std::uint64_t look_ns = std::uint64_t{look_ms} * 1'000'000;
// While it has no epoll, and cannot make one.
constexpr std::uint64_t blind_ns = 10'000'000;

struct WatchedDescriptor {
  Subscriber* client = nullptr;
  os::Descriptor descriptor;
};

struct ControlState {
  os::Epoll epoll;
  pthread_t thread{};
  bool running = false;
  bool stop = false;
  std::vector<Subscriber*> clients;
  std::unordered_map<std::uint64_t, WatchedDescriptor> watches;
  std::uint64_t next_watch = os::Epoll::own_event + 1;
  std::uint64_t looked_ns = 0;
};

// Never destroyed: the thread may outlive static objects at exit. A child of fork whose copy is not
// consistent makes a new one.
constinit std::atomic<ControlState*> current{nullptr};

ControlState& state() noexcept {
  ControlState* known = current.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto* const made = new ControlState;
  if (current.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *known;
}

// ---- under the lock ----

// Replaces the thread's epoll if the program has closed it, or (`anyway`) if it still reports a
// file that is not watched any more, because a child of this process has it open too. 0 or -errno.
int renew(ControlState& own, bool anyway) noexcept {
  if (!anyway && own.epoll.intact()) return 0;
  os::Epoll made;
  if (const int error = os::Epoll::open(&made); error != 0) return error;
  for (const auto& [name, watch] : own.watches) {
    if (const int fd = watch.descriptor.get(); fd >= 0) made.add(fd, name);
  }
  // Whoever sleeps in the old one looks up, or does so within look_ms.
  own.epoll.ring();
  own.epoll.close();
  own.epoll = made;
  return 0;
}

// A client reads a lost descriptor as one that was closed.
void tell_lost(ControlState& own) noexcept {
  std::vector<std::uint64_t> lost;
  for (const auto& [name, watch] : own.watches) {
    if (!watch.descriptor.intact()) lost.push_back(name);
  }
  for (const std::uint64_t name : lost) {
    // Looked up each time, since a client that was told before may have ended this watch.
    const auto found = own.watches.find(name);
    if (found == own.watches.end()) continue;
    Subscriber* const client = found->second.client;
    own.watches.erase(found);
    client->ready(name);
  }
}

// The shortest time that a client asks for, and no longer than look_ms.
int tick_clients(ControlState& own) noexcept {
  int shortest = look_ms;
  for (Subscriber* client : own.clients) {
    const int wanted = client->tick();
    if (wanted >= 0) shortest = std::min(shortest, wanted);
  }
  return shortest;
}

// True: the epoll reports something that is not watched.
bool handle(ControlState& own, const epoll_event& event) noexcept {
  const std::uint64_t name = event.data.u64;
  if (name == os::Epoll::own_event) {
    own.epoll.quiet();
    return false;
  }
  const auto found = own.watches.find(name);
  if (found == own.watches.end() || !found->second.descriptor.intact()) return true;
  found->second.client->ready(name);
  return false;
}

// ---- the thread ----

void* run(void* argument) noexcept {
  os::name_thread("haul-fabric");
  ControlState& own = *static_cast<ControlState*>(argument);
  constexpr int batch = 32;
  epoll_event events[batch];
  os::Epoll epoll;  // a copy from when the lock was last held
  int timeout_ms = 0;
  for (;;) {
    const int count = epoll.valid() ? epoll.wait(events, batch, timeout_ms) : 0;
    fork_window::let_pass();
    const bool looks = now_ns() - own.looked_ns >= look_ns;
    const bool alone = looks && os::only_own_threads();
    const ControlLock locked;
    if (own.stop) return nullptr;
    if (alone) {
      own.epoll.close();
      own.running = false;
      break;
    }
    bool stale = false;
    for (int i = 0; i < count; ++i) stale |= handle(own, events[i]);
    if (looks || stale) {
      own.looked_ns = now_ns();
      tell_lost(own);
    }
    timeout_ms = tick_clients(own);
    const bool lost = renew(own, stale) != 0;
    epoll = own.epoll;
    if (lost) os::sleep_ns(blind_ns);
  }
  // The process is to end, and nobody joins this thread any more.
  if (!os::end_process_elsewhere()) os::detach_self();
  return nullptr;
}

// It does not block signals, because a wait under it may take a second. No fork handler and no
// signal handler takes it.
class LifeLock {
 public:
  LifeLock() noexcept { pthread_mutex_lock(&life_mutex); }
  ~LifeLock() { pthread_mutex_unlock(&life_mutex); }
  LifeLock(const LifeLock&) = delete;
  LifeLock& operator=(const LifeLock&) = delete;
};

Expected<bool> start(ControlState& own) noexcept {
  int failure = -renew(own, true);
  own.stop = false;
  own.looked_ns = now_ns();
  if (failure == 0) failure = -os::start_thread(&own.thread, run, &own);
  if (failure == 0) {
    own.running = true;
    return true;
  }
  own.epoll.close();
  return make_error(Code::no_memory, failure,
                    "The thread that watches peers cannot start (%s); raise ulimit -n or -u.",
                    describe_errno(failure));
}

// ---- fork: no thread is in the middle of a change while the process is copied, and no lock is
// held ----

// Waits for a moment in which nobody holds the lock. Its holder may be waiting for a lock of the
// program's (its malloc's), and so for this fork: after a second the child has to do without a
// consistent copy. Signals are blocked only while this thread holds the lock, so that no handler
// forks in between.
bool finds_nobody_within() noexcept {
  constexpr std::uint64_t moment_ns = 1'000'000'000;
  const std::uint64_t begun = now_ns();
  // Not pthread_mutex_clocklock(), of which GCC 12's ThreadSanitizer knows nothing.
  for (Backoff backoff; now_ns() - begun < moment_ns; backoff.pause()) {
    os::SignalMask saved;
    os::block_signals(&saved);
    const bool taken = pthread_mutex_trylock(&mutex) == 0;
    if (taken) {
      fork_window::stands_still();
      pthread_mutex_unlock(&mutex);
    }
    os::restore_signals(saved);
    if (taken) return true;
  }
  return false;
}

void before_fork() noexcept {
  const KeepErrno keep;
  fork_window::open();
  if (!finds_nobody_within()) fork_window::note_change();
}

void after_fork_in_child() noexcept {
  const KeepErrno keep;
  // A thread that is not here may have them.
  pthread_mutex_init(&mutex, nullptr);
  pthread_mutex_init(&life_mutex, nullptr);
  if (!fork_window::close_in_child()) {
    // As after a bare clone, which runs no handler: what was open belongs to the parent.
    current.store(nullptr, std::memory_order_release);
    return;
  }
  ControlState& own = state();
  own.epoll.close();
  own.running = false;
  own.watches.clear();
  const std::vector<Subscriber*> orphans = std::move(own.clients);
  own.clients.clear();
  for (Subscriber* client : orphans) client->forked();
}

}  // namespace

Expected<bool> join(Subscriber& client) noexcept {
  const KeepErrno keep;
  static std::atomic<bool> handlers_set{false};
  if (!handlers_set.exchange(true, std::memory_order_relaxed))
    pthread_atfork(before_fork, fork_window::close, after_fork_in_child);
  ControlState& own = state();
  const LifeLock life;
  const ControlLock locked;
  if (!own.running) {
    Expected<bool> started = start(own);
    if (!started) return started.error();
  }
  own.clients.push_back(&client);
  return true;
}

void leave(Subscriber& client) noexcept {
  const KeepErrno keep;
  ControlState& own = state();
  const LifeLock life;
  {
    const ControlLock locked;
    const auto found = std::find(own.clients.begin(), own.clients.end(), &client);
    if (found == own.clients.end()) return;
    own.clients.erase(found);
    std::erase_if(own.watches, [&](const auto& entry) { return entry.second.client == &client; });
    if (!own.clients.empty() || !own.running) return;
    own.stop = true;
    own.epoll.ring();
  }
  os::join_thread(own.thread);
  const ControlLock locked;
  own.running = false;
  own.epoll.close();
}

std::uint64_t watch(Subscriber& client, const os::Descriptor& descriptor) noexcept {
  ControlState& own = state();
  if (renew(own, false) != 0) return 0;
  const std::uint64_t name = own.next_watch++;
  if (own.epoll.add(descriptor.get(), name) != 0) return 0;
  own.watches.emplace(name, WatchedDescriptor{&client, descriptor});
  return name;
}

void unwatch(std::uint64_t watch) noexcept {
  ControlState& own = state();
  const auto found = own.watches.find(watch);
  if (found == own.watches.end()) return;
  own.epoll.remove(found->second.descriptor.get());
  own.watches.erase(found);
}

void nudge() noexcept {
  const ControlState& own = state();
  if (own.running) own.epoll.ring();
}

}  // namespace haul::fabric::control
