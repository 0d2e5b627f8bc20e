// Attaching, listening, parting.
#include "mover/service_link.hpp"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/clock.hpp"
#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/os.hpp"
#include "base/socket.hpp"
#include "memory/arena.hpp"
#include "mover/gate.hpp"
#include "mover/grants.hpp"
#include "mover/recover.hpp"
#include "mover/service_talk.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

constexpr std::uint64_t look_pause_ns = 200'000'000;
constexpr std::uint64_t await_step_ns = 200'000;
constexpr std::uint64_t shortest_wait_ns = 200'000'000, longest_wait_ns = 5'000'000'000;

// waiting: for the next service, since memory is granted. over: the thread has ended and is to be
// joined.
enum class Phase : std::uint32_t { none, greeting, attached, waiting, over };

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit pthread_t thread{};  // under the mutex, as are the next two
constinit int service_pid = -1;
constinit char sentence[sizeof(ServiceStatus::sentence)] = "No service was looked for yet.";
// Closed only once the gate says that there is no service.
constinit std::atomic<int> link_fd{-1};
constinit std::atomic<Phase> phase{Phase::none};
constinit std::atomic<bool> leaving{false};
constinit std::atomic<bool> may_tell{false};      // the service has welcomed us
constinit std::atomic<std::uint32_t> stirred{0};  // raised to end a wait for the next service
constinit std::atomic<std::uint64_t> looked_ns{0};
constinit std::atomic<ServiceHook> attached_hook{nullptr};
constinit bool hook_ran = false;  // the link's thread only

// No signal handler may find the lock held by its own thread.
class Lock {
 public:
  Lock() noexcept {
    os::block_signals(&saved_);
    pthread_mutex_lock(&mutex);
  }
  ~Lock() {
    pthread_mutex_unlock(&mutex);
    os::restore_signals(saved_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  os::SignalMask saved_;
};

void note(const Error& said) noexcept {
  const Lock lock;
  std::snprintf(sentence, sizeof sentence, "%s", said.sentence);
  log(LogLevel::info, "%s", said.sentence);
}

bool wanted() noexcept {
  const std::uint64_t mover = knob_number(Knob::plan_mover);
  return knob_number(Knob::service_use) != 1 && mover != 1 && mover != 2 &&
         !gate.closed.load(std::memory_order_relaxed) && !leaving.load(std::memory_order_relaxed);
}

bool on_demand() noexcept {
  return knob_number(Knob::service_use) == 2;
}

// HAUL_SERVICE_USE=demand: starts one, and waits until it answers.
int start_one() noexcept {
  const char* const arguments[] = {"haul", "serve", "--daemon", "--idle-exit", "60", nullptr};
  const int status = os::run_program(arguments);
  const int fd = connect_to_service();
  if (fd < 0) {
    note(make_error(
        Code::not_supported, 0,
        "HAUL_SERVICE_USE=demand: `haul serve --daemon` gave no service (%s); is haul in "
        "PATH?",
        status < 0 ? describe_errno(-status) : "it failed"));
  }
  return fd;
}

// The arena came after the link. (A hello on its way may have handed it over already; the service
// takes it twice.)
void hand_arena_over() noexcept {
  const ArenaView arena = arena_view();
  wire::Arena message;
  message.base = arena.base;
  message.bytes = arena.bytes;
  if (arena.fd >= 0) tell_service(&message, sizeof message, &arena.fd, 1);
}

// Until the other side closes; what it said last, if that was a refusal. Takes no lock that a
// thread may hold which waits for the service: the gate's and this link's are held around a fork,
// whose copies are finished by the recovery that comes after this, if the service dies.
Error listen(int fd) noexcept {
  ServiceMessage message;
  std::size_t bytes = 0;
  Error last;
  for (;;) {
    const int ready = os::wait_readable(fd, -1);
    if (ready < 0 && ready != -EINTR) os::sleep_ns(await_step_ns);
    switch (receive_from_service(fd, &message, &bytes)) {
      case Received::closed: return last;
      case Received::trouble:
        // It may be amid a chunk of ours. It lets go when it reads that we have closed, and closes.
        os::shut_sending(fd);
        os::sleep_ns(await_step_ns);
        continue;
      case Received::nothing: continue;
      case Received::message: break;
    }
    wire::Bound bound;
    wire::Withdrawn withdrawn;
    wire::Reap reap;
    wire::Refused refused;
    wire::ArenaKnown arena;
    wire::Distance distance;
    if (read_as(message, bytes, &arena)) {
      set_service_arena(arena.base, arena.bytes);
    } else if (read_as(message, bytes, &distance)) {
      set_service_round_trip(2.0 * distance.line_ns);
    } else if (read_as(message, bytes, &bound)) {
      answer_bound(bound);
    } else if (read_as(message, bytes, &withdrawn)) {
      answer_withdrawn(withdrawn);
    } else if (read_as(message, bytes, &reap)) {
      if (reap.ring < ring_table.count.load(std::memory_order_acquire))
        ring_table.ring(reap.ring).completions.signal();
    } else if (read_as(message, bytes, &refused)) {
      last = error_of(refused);
    }
  }
}

void welcome_in(const wire::Welcome& welcome) noexcept {
  {
    const Lock lock;
    service_pid = welcome.pid;
  }
  if (welcome.reaches_memory != 0) {
    note(make_error(Code::ok, 0, "Attached to the node's service, process %d.", welcome.pid));
  } else {
    note(make_error(Code::ok, 0,
                    "Attached to the node's service, process %d; it reaches memory of haul_alloc() "
                    "only: %.*s",
                    welcome.pid, static_cast<int>(sizeof welcome.why) - 1, welcome.why));
  }
  if (const ServiceHook hook = attached_hook.load(std::memory_order_relaxed);
      hook != nullptr && !hook_ran) {
    hook_ran = true;
    hook();
  }
}

// From the welcome to the end of the link.
void stay(int fd, Board* board, const ArenaView& arena, const wire::Welcome& welcome) noexcept {
  welcome_in(welcome);
  may_tell.store(true, std::memory_order_release);
  if (arena.bytes == 0) hand_arena_over();  // it may have been made since the hello
  resend_grants();
  set_service_arena(arena.base, arena.bytes);
  set_service(&board->asleep, welcome.reaches_memory != 0);
  phase.store(Phase::attached, std::memory_order_release);
  const Error refusal = listen(fd);
  // From here on the service touches nothing of ours: it had let go before it closed, or it is
  // dead, and the kernel takes an address space down before it closes descriptors.
  may_tell.store(false, std::memory_order_relaxed);
  set_service_arena(0, 0);
  gate.service_bell.store(nullptr, std::memory_order_relaxed);
  await_publishers();
  recover_from_service();
  fail_requests();
  set_service(nullptr, false);
  if (refusal.code != Code::ok) {
    note(refusal);
  } else if (!leaving.load(std::memory_order_relaxed)) {
    note(make_error(Code::ok, 0, "The node's service is gone; this process goes on without it."));
  }
}

// One link over fd, from the hello on.
void link(int fd) noexcept {
  SharedTable table;
  Error error;
  on_arena_made(hand_arena_over);
  if (!os::membarrier_register_global()) {
    // Then the service could not know that its last look before it sleeps has seen everything.
    error = make_error(Code::not_supported, 0,
                       "The kernel or a filter refuses membarrier(), without which the service "
                       "cannot be used; allow that call.");
  } else if (make_shared_table(&table, &error) == Code::ok) {
    ArenaView arena;
    if (auto welcome = greet_service(fd, table, &arena); welcome) {
      stay(fd, table.board, arena, *welcome);
    } else {
      error = welcome.error();
    }
  }
  if (error.code != Code::ok) note(error);
  const Lock lock;
  os::close_fd(link_fd);
  link_fd = service_pid = -1;
}

// Memory that this process has granted is of use to others only while it is attached, whether it
// copies anything itself or not. So it waits for the next service; false: there is no point in
// that.
bool await_next() noexcept {
  phase.store(Phase::waiting, std::memory_order_release);
  for (std::uint64_t wait_ns = shortest_wait_ns; has_granted() && wanted();
       wait_ns = std::min(2 * wait_ns, longest_wait_ns)) {
    const std::uint32_t seen = stirred.load(std::memory_order_acquire);
    const int fd = connect_to_service();
    if (fd >= 0) {
      const Lock lock;
      link_fd = fd;
      phase.store(Phase::greeting, std::memory_order_release);
      return true;
    }
    if (wanted()) os::futex_wait(&stirred, seen, wait_ns);
  }
  return false;
}

void* tend(void*) noexcept {
  os::name_thread("haul-service");
  thread_slot.carrying = 1;  // a crash handler that calls exit() here must not join this thread
  if (link_fd < 0) {
    const int started = start_one();
    const Lock lock;
    link_fd = started;
  }
  if (link_fd >= 0) {
    do {
      link(link_fd);  // nobody else changes it while this thread runs
    } while (await_next());
  }
  phase.store(Phase::over, std::memory_order_release);
  return nullptr;
}

// Locked. Clears up after a link that is over, and begins a new one if there is somebody to talk
// to.
bool begin() noexcept {
  if (phase.load(std::memory_order_acquire) == Phase::over) {
    pthread_join(thread, nullptr);
    phase.store(Phase::none, std::memory_order_relaxed);
  }
  if (phase.load(std::memory_order_relaxed) != Phase::none) return true;
  const int fd = connect_to_service();
  if (fd < 0 && !on_demand()) {
    std::snprintf(sentence, sizeof sentence, "%s",
                  fd == -EPERM
                      ? "The service that listens is another user's; start one of your own "
                        "with `haul serve`."
                  : fd == -ENOENT || fd == -ECONNREFUSED
                      ? "No service runs; `haul serve` starts one."
                      : "The service's socket cannot be reached; check its directory's rights, and "
                        "ulimit -n.");
    return false;
  }
  link_fd = fd;
  phase.store(Phase::greeting, std::memory_order_relaxed);
  if (os::start_thread(&thread, tend, nullptr) == 0) return true;
  os::close_fd(link_fd);
  link_fd = -1;
  phase.store(Phase::none, std::memory_order_relaxed);
  return false;
}

}  // namespace

namespace {

void stir() noexcept {
  stirred.fetch_add(1, std::memory_order_release);
  os::futex_wake(&stirred, 1);
}

}  // namespace

bool look_for_service() noexcept {
  const Phase now = phase.load(std::memory_order_acquire);
  if (now == Phase::attached || now == Phase::greeting) return true;
  if (!wanted()) return false;
  if (now == Phase::waiting) {
    stir();
    return false;
  }
  std::uint64_t last = looked_ns.load(std::memory_order_relaxed);
  const std::uint64_t time = now_ns();
  if (last != 0 && time - last < look_pause_ns) return false;
  if (!looked_ns.compare_exchange_strong(last, time, std::memory_order_relaxed)) return false;
  const Lock lock;
  return begin();
}

Code await_service(unsigned timeout_ms, Error* error) noexcept {
  const std::uint64_t deadline = now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  if (wanted() && phase.load(std::memory_order_acquire) != Phase::attached) {
    looked_ns.store(0, std::memory_order_relaxed);
    look_for_service();
  }
  // (Waiting it is connecting, just now, for it has been stirred.)
  for (Phase now = phase.load(std::memory_order_acquire);
       (now == Phase::greeting || now == Phase::waiting) && now_ns() < deadline;
       now = phase.load(std::memory_order_acquire)) {
    os::sleep_ns(await_step_ns);
  }
  if (phase.load(std::memory_order_acquire) == Phase::attached) return Code::ok;
  const Lock lock;
  *error = make_error(Code::not_supported, 0, "This needs the node's service. %s",
                      wanted() ? sentence : "The settings or haul_shutdown() rule it out.");
  return Code::not_supported;
}

void wake_service() noexcept {
  const Lock lock;  // the socket stays open meanwhile
  std::atomic<std::uint32_t>* bell = gate.service_bell.load(std::memory_order_acquire);
  if (bell != nullptr && bell->load(std::memory_order_relaxed) != 0) ring_service_bell(bell);
}

void ring_service_bell(std::atomic<std::uint32_t>* bell) noexcept {
  const wire::Bell message;
  if (bell->exchange(0, std::memory_order_relaxed) != 0)
    os::send_packet(link_fd, &message, sizeof message);
}

Code tell_service(const void* message, std::size_t bytes, const int* fds,
                  unsigned fd_count) noexcept {
  const Lock lock;
  if (!may_tell.load(std::memory_order_acquire) || link_fd < 0) return Code::closed;
  const ssize_t sent = os::send_packet(link_fd, message, bytes, fds, fd_count);
  return sent == static_cast<ssize_t>(bytes) ? Code::ok : Code::closed;
}

void leave_service() noexcept {
  pthread_t ending{};
  leaving.store(true, std::memory_order_relaxed);
  {
    const Lock lock;
    if (phase.load(std::memory_order_acquire) == Phase::none) return;
    if (link_fd >= 0) os::shut_socket(link_fd);
    stir();
    ending = thread;
    phase.store(Phase::over, std::memory_order_relaxed);
  }
  pthread_join(ending, nullptr);
  phase.store(Phase::none, std::memory_order_relaxed);
}

void lock_service_link() noexcept {
  pthread_mutex_lock(&mutex);
}

void unlock_service_link() noexcept {
  pthread_mutex_unlock(&mutex);
}

void forget_service_link() noexcept {
  mutex = PTHREAD_MUTEX_INITIALIZER;
  os::close_fd(link_fd);
  link_fd = service_pid = -1;
  phase.store(Phase::none, std::memory_order_relaxed);
  leaving.store(false, std::memory_order_relaxed);
  looked_ns.store(0, std::memory_order_relaxed);
  may_tell.store(false, std::memory_order_relaxed);
}

void on_service_attached(ServiceHook hook) noexcept {
  attached_hook.store(hook, std::memory_order_relaxed);
}

void service_status(ServiceStatus* status) noexcept {
  const std::atomic<std::uint32_t>* bell = gate.service_bell.load(std::memory_order_acquire);
  if (bell != nullptr) {
    status->state =
        bell->load(std::memory_order_relaxed) != 0 ? ServiceState::asleep : ServiceState::awake;
    status->reaches_memory = service_reaches_memory();
    SharedTable table;
    Error ignored;
    if (make_shared_table(&table, &ignored) == Code::ok)
      status->chunks = table.board->chunks.load(std::memory_order_relaxed);
  }
  const Lock lock;
  status->pid = service_pid;
  std::snprintf(status->sentence, sizeof status->sentence, "%s", sentence);
}

}  // namespace haul
