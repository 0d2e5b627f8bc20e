// The control thread, and what becomes of it around a fork.
#include "fabric/transport/control.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <unordered_map>
#include <vector>

#include "base/keep_errno.hpp"
#include "base/os.hpp"

namespace haul::fabric::control {

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

namespace {

// Held while the thread is started or ended; taken before `mutex`.
constinit pthread_mutex_t life_mutex = PTHREAD_MUTEX_INITIALIZER;

struct State {
  int epoll = -1;
  int wake = -1;
  pthread_t thread{};
  bool running = false;
  bool stop = false;
  std::vector<Client*> clients;
  std::unordered_map<std::uint64_t, Client*> watches;
  std::uint64_t next_watch = 1;
};

constexpr std::uint64_t wake_watch = 0;

// Never destroyed: the thread may outlive static objects at exit.
State& state() noexcept {
  static State& made = *new State;
  return made;
}

bool add_to_epoll(int epoll, int fd, std::uint64_t name) noexcept {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = name;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

// The shortest of what the clients want.
int tick_clients(State& own) noexcept {
  int shortest = -1;
  for (Client* client : own.clients) {
    const int wanted = client->tick();
    if (wanted >= 0 && (shortest < 0 || wanted < shortest)) shortest = wanted;
  }
  return shortest;
}

void* run(void* argument) noexcept {
  os::name_thread("haul-fabric");
  State& own = *static_cast<State*>(argument);
  constexpr int batch = 32;
  epoll_event events[batch];
  int timeout_ms = 0;
  for (;;) {
    const int count = epoll_wait(own.epoll, events, batch, timeout_ms);
    const Lock locked;
    if (own.stop) return nullptr;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == wake_watch) {
        os::event_clear(own.wake);
        continue;
      }
      // Looked up each time: what came before may have ended it.
      const auto found = own.watches.find(events[i].data.u64);
      if (found != own.watches.end()) found->second->ready(found->first);
    }
    timeout_ms = tick_clients(own);
  }
}

void close_descriptors(State& own) noexcept {
  os::close_fd(own.epoll);
  os::close_fd(own.wake);
  own.epoll = own.wake = -1;
}

Expected<bool> start(State& own) noexcept {
  own.epoll = epoll_create1(EPOLL_CLOEXEC);
  int failure = own.epoll < 0 ? errno : 0;
  own.wake = os::event_fd();
  if (own.wake < 0) failure = -own.wake;
  own.stop = false;
  if (failure == 0 && !add_to_epoll(own.epoll, own.wake, wake_watch)) failure = errno;
  if (failure == 0) failure = -os::start_thread(&own.thread, run, &own);
  if (failure == 0) {
    own.running = true;
    return true;
  }
  close_descriptors(own);
  return make_error(Code::no_memory, failure,
                    "The thread that watches peers cannot start (%s); raise ulimit -n or -u.",
                    describe_errno(failure));
}

// ---- fork: nobody is amid anything while the process is copied ----

constinit os::SignalMask signals_before_fork{};

void before_fork() noexcept {
  os::SignalMask saved;
  os::block_signals(&saved);
  pthread_mutex_lock(&life_mutex);
  pthread_mutex_lock(&mutex);
  signals_before_fork = saved;
}

void unlock_after_fork() noexcept {
  const os::SignalMask saved = signals_before_fork;
  pthread_mutex_unlock(&mutex);
  pthread_mutex_unlock(&life_mutex);
  os::restore_signals(saved);
}

void after_fork_in_child() noexcept {
  State& own = state();
  close_descriptors(own);
  own.running = false;
  own.watches.clear();
  const std::vector<Client*> orphans = std::move(own.clients);
  own.clients.clear();
  for (Client* client : orphans) client->forked();
  unlock_after_fork();
}

}  // namespace

Expected<bool> join(Client& client) noexcept {
  const KeepErrno keep;
  static std::atomic<bool> handlers_set{false};
  if (!handlers_set.exchange(true, std::memory_order_relaxed))
    pthread_atfork(before_fork, unlock_after_fork, after_fork_in_child);
  State& own = state();
  const QuietLock life(life_mutex);
  const Lock locked;
  if (!own.running) {
    Expected<bool> started = start(own);
    if (!started) return started.error();
  }
  own.clients.push_back(&client);
  return true;
}

void leave(Client& client) noexcept {
  const KeepErrno keep;
  State& own = state();
  const QuietLock life(life_mutex);
  {
    const Lock locked;
    const auto found = std::find(own.clients.begin(), own.clients.end(), &client);
    if (found == own.clients.end()) return;
    own.clients.erase(found);
    std::erase_if(own.watches, [&](const auto& entry) { return entry.second == &client; });
    if (!own.clients.empty()) return;
    own.stop = true;
    os::event_signal(own.wake);
  }
  pthread_join(own.thread, nullptr);
  const Lock locked;
  own.running = false;
  close_descriptors(own);
}

std::uint64_t watch(Client& client, int fd) noexcept {
  const KeepErrno keep;
  State& own = state();
  const std::uint64_t name = own.next_watch++;
  if (!add_to_epoll(own.epoll, fd, name)) return 0;
  own.watches.emplace(name, &client);
  return name;
}

void unwatch(std::uint64_t watch, int fd) noexcept {
  const KeepErrno keep;
  State& own = state();
  if (own.watches.erase(watch) != 0) epoll_ctl(own.epoll, EPOLL_CTL_DEL, fd, nullptr);
}

void nudge() noexcept {
  State& own = state();
  if (own.running) os::event_signal(own.wake);
}

}  // namespace haul::fabric::control
