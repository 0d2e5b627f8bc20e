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
#include "base/own_threads.hpp"
#include "base/quiet_lock.hpp"
#include "memory/arena.hpp"
#include "mover/gate.hpp"
#include "mover/grants.hpp"
#include "mover/recover.hpp"
#include "mover/service_channel.hpp"
#include "mover/service_listen.hpp"
#include "mover/service_talk.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

// Between two looks for a service: doubled while there is none, or none that answers.
constexpr std::uint64_t shortest_pause_ns = 200'000'000, longest_pause_ns = 5'000'000'000;
constexpr std::uint64_t start_pause_ns = 60'000'000'000;  // between two services on demand
constexpr std::uint64_t step_ns = 200'000;
constexpr std::uint64_t parting_ns = 1'000'000'000;

// none: there is no thread. waiting: for the next service, since memory is granted. ending: by
// leave_service(), which joins the thread.
enum class Phase : std::uint32_t { none, greeting, attached, waiting, ending };

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit pthread_t thread{};  // under the mutex, as are the next two
constinit int service_pid = -1;
constinit char sentence[sizeof(ServiceStatus::sentence)] = "No service was looked for yet.";
constinit std::atomic<Phase> phase{Phase::none};
constinit std::atomic<std::uint32_t> tending{0};  // 1 while there is a thread; futex word
constinit std::atomic<bool> leaving{false};
constinit std::atomic<bool> forbidden{false};
constinit std::atomic<std::uint32_t> stirred{0};  // raised to end a wait for the next service
constinit std::atomic<std::uint64_t> looked_ns{0}, pause_ns{shortest_pause_ns};
constinit std::atomic<std::uint64_t> started_ns{0};
constinit std::atomic<bool> in_vain{false};  // the latest greeting was not answered well
constinit std::atomic<ServiceHook> attached_hook{nullptr};
constinit bool hook_ran = false;  // the link's thread only

void note(const Error& said) noexcept {
  {
    const QuietLock lock(mutex);
    std::snprintf(sentence, sizeof sentence, "%s", said.sentence);
  }
  log(LogLevel::info, "%s", said.sentence);
}

bool wanted() noexcept {
  const std::uint64_t mover = knob_number(Knob::plan_mover);
  return knob_number(Knob::service_use) != 1 && mover != 1 && mover != 2 &&
         !gate.closed.load(std::memory_order_relaxed) && !leaving.load(std::memory_order_acquire) &&
         !forbidden.load(std::memory_order_relaxed);
}

void look_later() noexcept {
  looked_ns.store(now_ns(), std::memory_order_relaxed);
  const std::uint64_t pause = pause_ns.load(std::memory_order_relaxed);
  pause_ns.store(std::min(2 * pause, longest_pause_ns), std::memory_order_relaxed);
}

// HAUL_SERVICE_USE=demand, and none was started of late?
bool may_start_one() noexcept {
  if (knob_number(Knob::service_use) != 2) return false;
  const std::uint64_t last = started_ns.load(std::memory_order_relaxed);
  return last == 0 || now_ns() - last >= start_pause_ns;
}

// Starts a service, and connects to it. False: there is none.
bool start_one() noexcept {
  started_ns.store(now_ns(), std::memory_order_relaxed);
  const char* const arguments[] = {"haul", "serve", "--daemon", "--idle-exit", "60", nullptr};
  const int status = os::run_program(arguments);
  if (open_channel() == 0) return true;
  note(make_error(Code::not_supported, 0,
                  "HAUL_SERVICE_USE=demand: `haul serve --daemon` gave no service (%s); is haul in "
                  "PATH?",
                  status < 0 ? describe_errno(-status) : "it failed"));
  return false;
}

void welcome_in(const wire::Welcome& welcome) noexcept {
  {
    const QuietLock lock(mutex);
    service_pid = welcome.pid;
  }
  in_vain.store(false, std::memory_order_relaxed);
  pause_ns.store(shortest_pause_ns, std::memory_order_relaxed);
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
void stay(Board* board, const ArenaView& arena, const wire::Welcome& welcome) noexcept {
  welcome_in(welcome);
  allow_telling(true);
  if (arena.bytes == 0) hand_arena_over();  // it may have been made since the hello
  resend_grants();
  set_service_arena(arena.base, arena.bytes);
  set_service(&board->asleep, welcome.reaches_memory != 0);
  Phase greeting = Phase::greeting;
  phase.compare_exchange_strong(greeting, Phase::attached, std::memory_order_release);
  bool let_go = true;
  const Error refusal = listen_to_service(&let_go);
  if (!let_go) return;  // the process ends
  // From here on the service touches nothing of ours: it had let go before it closed, or it is
  // dead, and the kernel takes an address space down before it closes descriptors.
  allow_telling(false);
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

// One link over the open channel, from the hello on.
void link() noexcept {
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
    if (auto welcome = greet_service(channel_fd(), table, &arena); welcome) {
      stay(table.board, arena, *welcome);
    } else {
      error = welcome.error();
    }
  }
  if (error.code != Code::ok) {
    in_vain.store(true, std::memory_order_relaxed);
    look_later();
    note(error);
  }
  close_channel();
  const QuietLock lock(mutex);
  service_pid = -1;
}

// Memory that this process has granted is of use to others only while it is attached, whether it
// copies anything itself or not. So it waits for the next service; false: there is no point in
// that.
bool await_next() noexcept {
  Phase before = phase.load(std::memory_order_relaxed);
  if (before == Phase::ending ||
      !phase.compare_exchange_strong(before, Phase::waiting, std::memory_order_release))
    return false;
  for (std::uint64_t wait_ns = shortest_pause_ns;
       has_grants() && wanted() && !os::only_own_threads();
       wait_ns = std::min(2 * wait_ns, longest_pause_ns)) {
    const std::uint32_t seen = stirred.load(std::memory_order_acquire);
    if (in_vain.exchange(false, std::memory_order_relaxed))
      os::futex_wait(&stirred, seen, longest_pause_ns);
    if (open_channel() == 0) {
      Phase waiting = Phase::waiting;
      return phase.compare_exchange_strong(waiting, Phase::greeting, std::memory_order_release);
    }
    if (wanted()) os::futex_wait(&stirred, seen, wait_ns);
  }
  return false;
}

void* tend(void*) noexcept {
  os::name_thread("haul-service");
  thread_slot.carrying = 1;  // a crash handler that calls exit() here must not join this thread
  if (channel_open() || start_one()) {
    do {
      link();
    } while (await_next());
  }
  close_channel();
  bool joined = false;
  {
    const QuietLock lock(mutex);
    joined = phase.load(std::memory_order_relaxed) == Phase::ending;
    if (!joined) phase.store(Phase::none, std::memory_order_release);
    tending.store(0, std::memory_order_release);
  }
  os::futex_wake(&tending, 1);
  if (!joined && !os::end_process_elsewhere()) os::detach_self();
  return nullptr;
}

// Locked. Begins a link if there is none, and somebody to talk to.
bool begin() noexcept {
  if (!wanted()) return false;
  if (phase.load(std::memory_order_relaxed) != Phase::none)
    return phase.load(std::memory_order_relaxed) <= Phase::attached;
  const int failed = open_channel();
  if (failed == -EKEYREJECTED || (failed != 0 && !may_start_one())) {
    std::snprintf(sentence, sizeof sentence, "%s",
                  failed == -EKEYREJECTED
                      ? "This process acts for two users (it is set-user-id, or has put rights "
                        "aside), so it shares memory with no service; it copies by itself."
                  : failed == -EPERM
                      ? "The service that listens is another user's; start one of your own "
                        "with `haul serve`."
                  : failed == -ENOENT || failed == -ECONNREFUSED
                      ? "No service runs; `haul serve` starts one."
                      : "The service's socket cannot be reached; check its directory's rights, and "
                        "ulimit -n.");
    look_later();
    return false;
  }
  phase.store(Phase::greeting, std::memory_order_relaxed);
  tending.store(1, std::memory_order_relaxed);
  if (os::start_thread(&thread, tend, nullptr) == 0) return true;
  tending.store(0, std::memory_order_relaxed);
  close_channel();
  phase.store(Phase::none, std::memory_order_relaxed);
  return false;
}

void stir() noexcept {
  stirred.fetch_add(1, std::memory_order_release);
  os::futex_wake(&stirred, 1);
}

}  // namespace

bool look_for_service() noexcept {
  const Phase now = phase.load(std::memory_order_acquire);
  if (now == Phase::attached) {
    if (arena_is_owed()) hand_arena_over();
    return true;
  }
  // A service that has not answered before is not counted on.
  if (now == Phase::greeting) return !in_vain.load(std::memory_order_relaxed);
  if (!wanted()) return false;
  std::uint64_t last = looked_ns.load(std::memory_order_relaxed);
  const std::uint64_t time = now_ns();
  if (last != 0 && time - last < pause_ns.load(std::memory_order_relaxed)) return false;
  if (!looked_ns.compare_exchange_strong(last, time, std::memory_order_relaxed)) return false;
  if (now == Phase::waiting) {
    stir();
    return false;
  }
  const QuietLock lock(mutex);
  return begin() && !in_vain.load(std::memory_order_relaxed);
}

Code await_service(unsigned timeout_ms, Error* error) noexcept {
  const std::uint64_t deadline = now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  if (phase.load(std::memory_order_acquire) == Phase::waiting) {
    stir();
  } else if (phase.load(std::memory_order_acquire) != Phase::attached) {
    const QuietLock lock(mutex);
    begin();
  }
  // (Waiting it is connecting, just now, for it has been stirred.)
  for (Phase now = phase.load(std::memory_order_acquire);
       (now == Phase::greeting || now == Phase::waiting) && now_ns() < deadline;
       now = phase.load(std::memory_order_acquire)) {
    os::sleep_ns(step_ns);
  }
  if (phase.load(std::memory_order_acquire) == Phase::attached) return Code::ok;
  const QuietLock lock(mutex);
  *error = make_error(Code::not_supported, 0, "This needs the node's service. %s",
                      wanted() ? sentence : "The settings or haul_shutdown() rule it out.");
  return Code::not_supported;
}

void leave_service(std::uint64_t deadline_ns, bool at_rest) noexcept {
  pthread_t ending{};
  {
    const QuietLock lock(mutex);
    leaving.store(true, std::memory_order_release);
    Phase now = phase.load(std::memory_order_acquire);
    // Without a thread there is nothing to end; another thread may be at it already.
    while (now != Phase::none && now != Phase::ending &&
           !phase.compare_exchange_weak(now, Phase::ending, std::memory_order_acq_rel)) {
    }
    if (now == Phase::none || now == Phase::ending) return;
    ending = thread;
  }
  shut_channel(false);
  stir();
  // The service may be amid a copy that another process has asked for, in memory that was granted:
  // it is waited for until it has let go.
  const std::uint64_t parting = std::min(deadline_ns, now_ns() + parting_ns);
  while (channel_open() && now_ns() < parting) os::sleep_ns(step_ns);
  // A stopped service that is amid requests of this process would go on with them when it runs
  // again: they are not recovered before it is known to have let go.
  if (at_rest) shut_channel(true);
  while (tending.load(std::memory_order_acquire) != 0) {
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) return;  // it stays as it is: amid memory that does not arrive
    os::futex_wait(&tending, 1, deadline_ns - now);
  }
  os::join_thread(ending);
  phase.store(Phase::none, std::memory_order_relaxed);
}

void forget_service_link() noexcept {
  mutex = PTHREAD_MUTEX_INITIALIZER;
  forget_channel();
  service_pid = -1;
  phase.store(Phase::none, std::memory_order_relaxed);
  tending.store(0, std::memory_order_relaxed);
  leaving.store(false, std::memory_order_relaxed);
  in_vain.store(false, std::memory_order_relaxed);
  looked_ns.store(0, std::memory_order_relaxed);
}

void forbid_service_link() noexcept {
  forget_service_link();
  forbidden.store(true, std::memory_order_relaxed);
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
    if (const Board* board = shared_board(); board != nullptr)
      status->chunks = board->chunks.load(std::memory_order_relaxed);
  }
  const QuietLock lock(mutex);
  status->pid = service_pid;
  std::snprintf(status->sentence, sizeof status->sentence, "%s", sentence);
}

}  // namespace haul
