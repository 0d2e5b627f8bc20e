// The link's life: looking, greeting, attached, waiting for the next service, ending.
//
// One thread, the aide "haul-service", does all of it; others only ask. What it is doing stands in
// one word, `phase`, which changes by compare-and-swap alone: from `none` to `looking` by whoever
// asks, onwards by the link's thread, and from anything to `ending` by leave_service(). So the
// thread learns at its next step that the process ends, and nobody else needs a lock. A look may be
// stalled by a file system: threads of the program wait for its answer (a futex on `answers`) a
// bounded time, and a service that has once not answered is not waited for at all.
//
// When the service is gone the order is what makes it safe: the bell is taken out of the gate, then
// every thread that is between the gate and its ring is waited for, then what the service had begun
// is recovered. docs/design/service.md has the steps (Attach, Recovery), tests/model/parting.pml
// and recovery.pml check them.
#include "client/link.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "base/knobs.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/sync/barrier.hpp"
#include "base/thread/aide.hpp"
#include "base/thread/own_threads.hpp"
#include "client/demand.hpp"
#include "client/grants.hpp"
#include "client/link_socket.hpp"
#include "client/link_status.hpp"
#include "client/listen.hpp"
#include "client/recover.hpp"
#include "client/talk.hpp"
#include "gate/gate.hpp"
#include "memory/arena.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

// Between two looks for a service: doubled while there is none, or none that answers.
constexpr std::uint64_t shortest_pause_ns = 200'000'000, longest_pause_ns = 5'000'000'000;
constexpr std::uint64_t step_ns = 200'000;
constexpr std::uint64_t parting_ns = 1'000'000'000;
// A look takes some 0.1 ms. Meanwhile no mover is made, for so long; what takes longer still is
// told.
constexpr std::uint64_t near_ns = 100'000'000, stalled_ns = 200'000'000;

// none: the link's thread, the aide "haul-service", does nothing. looking: it connects, which a
// file system may stall; nothing waits for that. waiting: for the next service, since memory is
// granted. ending: by leave_service().
enum class LinkPhase : std::uint32_t { none, looking, greeting, attached, waiting, ending };

constinit std::atomic<LinkPhase> phase{LinkPhase::none};
constinit std::atomic<std::uint32_t> tending{0};  // 1 while the thread is at it; futex word
constinit std::atomic<bool> leaving{false};
constinit std::atomic<bool> forbidden{false};
constinit std::atomic<std::uint32_t> stirred{0};  // raised to end a wait for the next service
constinit std::atomic<std::uint32_t> answers{0};  // counts ends of looks; futex word
constinit std::atomic<std::uint64_t> looked_ns{0}, pause_ns{shortest_pause_ns};
constinit std::atomic<std::uint64_t> look_began_ns{0};
constinit std::atomic<bool> in_vain{false};  // the latest greeting was not answered well
constinit std::atomic<ServiceHook> attached_hook{nullptr}, rest_hook{nullptr};
constinit bool hook_ran = false;  // the link's thread only

bool wanted() noexcept {
  const std::uint64_t mover = knob_number(Knob::plan_mover);
  return knob_number(Knob::service_use) != 1 && mover != 1 && mover != 2 &&
         !gate.closed.load(std::memory_order_relaxed) && !leaving.load(std::memory_order_acquire) &&
         !forbidden.load(std::memory_order_relaxed);
}

bool phase_is(LinkPhase which) noexcept {
  return phase.load(std::memory_order_acquire) == which;
}

// False if it has become another meanwhile: leave_service() was called.
bool go_on(LinkPhase from, LinkPhase to) noexcept {
  if (!phase.compare_exchange_strong(from, to, std::memory_order_seq_cst)) return false;
  if (from == LinkPhase::looking) {
    answers.fetch_add(1, std::memory_order_release);
    os::futex_wake(&answers, INT_MAX);
  }
  return true;
}

std::uint64_t looking_for_ns() noexcept {
  if (!phase_is(LinkPhase::looking)) return 0;
  return now_ns() - look_began_ns.load(std::memory_order_relaxed);
}

void look_later() noexcept {
  looked_ns.store(now_ns(), std::memory_order_relaxed);
  const std::uint64_t pause = pause_ns.load(std::memory_order_relaxed);
  pause_ns.store(std::min(2 * pause, longest_pause_ns), std::memory_order_relaxed);
}

void welcome_in(const wire::Welcome& welcome) noexcept {
  in_vain.store(false, std::memory_order_relaxed);
  pause_ns.store(shortest_pause_ns, std::memory_order_relaxed);
  say_attached(welcome);
  if (const ServiceHook hook = attached_hook.load(std::memory_order_relaxed);
      hook != nullptr && !hook_ran) {
    hook_ran = true;
    hook();
  }
}

// The service that use_service() lets submits use, on the link's thread.
constinit Board* board_in_use = nullptr;
constinit bool reaches_memory = false;
void use_service() noexcept {
  set_service(&board_in_use->asleep, reaches_memory);
  go_on(LinkPhase::greeting, LinkPhase::attached);
}

// From the welcome to the end of the link.
void stay(Board* board, const ArenaView& arena, const wire::Welcome& welcome) noexcept {
  welcome_in(welcome);
  allow_telling(true);
  if (arena.bytes == 0) hand_arena_over();  // it may have been made since the hello
  resend_grants();
  set_service_arena(arena.base, arena.bytes);
  board_in_use = board;
  reaches_memory = welcome.reaches_memory != 0;
  bool let_go = true;
  const Error refusal = listen_to_service(use_service, &let_go);
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
    say_of_link(refusal);
  } else if (!leaving.load(std::memory_order_relaxed)) {
    say_of_link(
        make_error(Code::ok, 0, "The node's service is gone; this process goes on without it."));
  }
}

// One link over the open socket, from the hello on.
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
    if (auto welcome = greet_service(link_socket_fd(), table, &arena); welcome) {
      stay(table.board, arena, *welcome);
    } else {
      error = welcome.error();
    }
  }
  if (error.code != Code::ok) {
    in_vain.store(true, std::memory_order_relaxed);
    look_later();
    say_of_link(error);
  }
  close_link_socket();
  say_detached();
}

// True: a service is to be greeted.
bool find_service() noexcept {
  if (!wanted()) return false;  // leave_service() may have come before the look
  const int failed = open_link_socket();
  if (failed == 0) return go_on(LinkPhase::looking, LinkPhase::greeting);
  if (failed == -EKEYREJECTED || !may_start_service()) {
    say_of_link(error_of_connecting(failed));
  } else if (go_on(LinkPhase::looking, LinkPhase::greeting)) {
    const Error refusal = start_service();
    if (refusal.code == Code::ok) return true;
    say_of_link(refusal);
  }
  look_later();
  return false;
}

// Memory that this process has granted is of use to others only while it is attached, whether it
// copies anything itself or not. So it waits for the next service; false: there is no point in
// that.
bool await_next() noexcept {
  LinkPhase before = phase.load(std::memory_order_relaxed);
  if (before == LinkPhase::ending || !go_on(before, LinkPhase::waiting)) return false;
  for (std::uint64_t wait_ns = shortest_pause_ns;
       has_grants() && wanted() && !os::only_own_threads();
       wait_ns = std::min(2 * wait_ns, longest_pause_ns)) {
    const std::uint32_t seen = stirred.load(std::memory_order_acquire);
    if (in_vain.exchange(false, std::memory_order_relaxed))
      os::futex_wait(&stirred, seen, longest_pause_ns);
    look_began_ns.store(now_ns(), std::memory_order_relaxed);
    if (!go_on(LinkPhase::waiting, LinkPhase::looking)) return false;
    if (open_link_socket() == 0) return go_on(LinkPhase::looking, LinkPhase::greeting);
    if (!go_on(LinkPhase::looking, LinkPhase::waiting)) return false;
    if (wanted()) os::futex_wait(&stirred, seen, wait_ns);
  }
  return false;
}

// The work of the link's thread, from the look to the end of the link.
void tend(void* /*unused*/) noexcept {
  ++thread_slot.carrying;  // a crash handler that calls exit() here must not wait for this thread
  if (find_service()) {
    do {
      link();
    } while (await_next());
  }
  close_link_socket();
  --thread_slot.carrying;
  tending.store(0, std::memory_order_release);
  os::futex_wake(&tending, 1);
  for (LinkPhase now = LinkPhase::none; now != LinkPhase::ending && !go_on(now, LinkPhase::none);)
    now = phase.load(std::memory_order_relaxed);
  if (const ServiceHook hook = rest_hook.load(std::memory_order_relaxed); hook != nullptr) hook();
}

// Has the link's thread look, unless it is at something. 0; -EBUSY: it is just ending that; or why
// there is no thread.
int begin() noexcept {
  if (!go_on(LinkPhase::none, LinkPhase::looking)) return 0;
  look_began_ns.store(now_ns(), std::memory_order_relaxed);
  tending.store(1, std::memory_order_relaxed);
  const int refused = os::ask_aide(os::Aide::service, tend, nullptr);
  if (refused == 0) return 0;
  tending.store(0, std::memory_order_release);
  go_on(LinkPhase::looking, LinkPhase::none);
  return refused;
}

void stir() noexcept {
  stirred.fetch_add(1, std::memory_order_release);
  os::futex_wake(&stirred, 1);
}

// prepare: the calling thread is the program's.
bool ask(bool prepare) noexcept {
  switch (phase.load(std::memory_order_acquire)) {
    case LinkPhase::attached:
      if (arena_is_owed()) hand_arena_over();
      return true;
    // A service that has not answered before is not counted on.
    case LinkPhase::greeting: return !in_vain.load(std::memory_order_relaxed);
    case LinkPhase::looking:
      return looking_for_ns() < near_ns && !in_vain.load(std::memory_order_relaxed);
    case LinkPhase::ending: return false;
    case LinkPhase::none:
    case LinkPhase::waiting: break;
  }
  if (!wanted()) return false;
  std::uint64_t last = looked_ns.load(std::memory_order_relaxed);
  const std::uint64_t time = now_ns();
  if (last != 0 && time - last < pause_ns.load(std::memory_order_relaxed)) return false;
  if (!looked_ns.compare_exchange_strong(last, time, std::memory_order_relaxed)) return false;
  if (prepare) prepare_to_look();
  if (phase_is(LinkPhase::waiting)) {
    stir();
    return false;
  }
  return begin() == 0 && !in_vain.load(std::memory_order_relaxed);
}

}  // namespace

void prepare_to_look() noexcept {
  if (!wanted()) return;
  asymmetric_barrier_works();  // takes the kernel 10 ms once there are several threads
  // The first for the link; the others load the stored figures once it is made.
  for (const os::Aide aide : {os::Aide::service, os::Aide::files, os::Aide::tune})
    os::make_aide(aide);
}

bool ask_for_service() noexcept {
  return ask(false);
}

bool look_for_service(std::uint64_t patience_ns) noexcept {
  const std::uint32_t seen = answers.load(std::memory_order_acquire);
  if (!ask(true)) return false;
  if (const std::uint64_t since_ns = looking_for_ns();
      phase_is(LinkPhase::looking) && since_ns < patience_ns)
    os::futex_wait(&answers, seen, patience_ns - since_ns);
  return !phase_is(LinkPhase::none) && ask(true);
}

Code await_service(unsigned timeout_ms, Error* error) noexcept {
  const std::uint64_t deadline = now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  if (phase_is(LinkPhase::waiting)) stir();
  prepare_to_look();
  int refused = -EBUSY;
  bool begun = false;
  for (;;) {
    const LinkPhase now = phase.load(std::memory_order_acquire);
    if (now == LinkPhase::attached) return Code::ok;
    if (now == LinkPhase::ending || now_ns() >= deadline) break;
    if (now == LinkPhase::none) {
      // (Waiting it is connecting, just now, for it has been stirred.)
      if (begun || !wanted() || refused != -EBUSY) break;
      refused = begin();
      begun = refused == 0;
    }
    os::sleep_ns(step_ns);
  }
  ServiceStatus status;
  service_status(&status);
  *error = make_error(Code::not_supported, 0, "This needs the node's service. %s",
                      wanted() ? status.sentence : "The settings or haul_shutdown() rule it out.");
  return Code::not_supported;
}

void leave_service(std::uint64_t deadline_ns, bool at_rest) noexcept {
  leaving.store(true, std::memory_order_seq_cst);
  LinkPhase now = phase.load(std::memory_order_seq_cst);
  while (now != LinkPhase::none && now != LinkPhase::ending &&
         !phase.compare_exchange_weak(now, LinkPhase::ending, std::memory_order_seq_cst)) {
  }
  // Without a link there is nothing to end; another thread may be at it already. A look may last,
  // and finds that nobody wants its result.
  if (now == LinkPhase::none || now == LinkPhase::ending || now == LinkPhase::looking) return;
  shut_link_socket(false);
  stir();
  // The service may be amid a copy that another process has asked for, in memory that was granted:
  // it is waited for until it has let go.
  const std::uint64_t parting = std::min(deadline_ns, now_ns() + parting_ns);
  while (link_socket_open() && now_ns() < parting) os::sleep_ns(step_ns);
  // A stopped service that is amid requests of this process would go on with them when it runs
  // again: they are not recovered before it is known to have let go.
  if (at_rest) shut_link_socket(true);
  while (tending.load(std::memory_order_acquire) != 0) {
    const std::uint64_t time = now_ns();
    if (time >= deadline_ns) return;  // it stays as it is: amid memory that does not arrive
    os::futex_wait(&tending, 1, deadline_ns - time);
  }
  phase.store(LinkPhase::none, std::memory_order_relaxed);
}

void forget_service_link() noexcept {
  forget_link_status();
  forget_link_socket();
  phase.store(LinkPhase::none, std::memory_order_relaxed);
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

void on_link_at_rest(ServiceHook hook) noexcept {
  rest_hook.store(hook, std::memory_order_relaxed);
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
  read_link_status(status);
  if (looking_for_ns() >= stalled_ns) {
    std::snprintf(status->sentence, sizeof status->sentence,
                  "Haul's thread haul-service waits for the file system of the service's socket; "
                  "this process goes on without it (HAUL_SERVICE_SOCKET names another place).");
  }
}

}  // namespace haul
