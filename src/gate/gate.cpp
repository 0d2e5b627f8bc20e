// The gate's thresholds follow from the planner's one function.
#include "gate/gate.hpp"

#include <pthread.h>

#include <bit>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/knobs.hpp"
#include "base/os.hpp"
#include "base/quiet_lock.hpp"
#include "base/seqlock.hpp"
#include "completion/barrier.hpp"
#include "engine/registry.hpp"
#include "request/rights.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

constexpr std::uint64_t default_start_bytes = 1u << 20;
constexpr std::uint64_t default_worth_bytes = 64u << 10;

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit plan::Calibration figures;
constinit std::atomic<double> round_trip_ns{0};  // written under the lock
constinit std::size_t l2_bytes = 1u << 20,
                      l3_bytes = 32u << 20;       // until the mover has read the topology
constinit bool shut = false;                      // for good
constinit unsigned holds = 0;                     // who holds it shut now
constinit thread_local unsigned own_holds = 0;    // of these, the calling thread's
constinit std::atomic<bool> kernel_reach{false};  // the service's
constinit double service_round_trip_ns = 0;
constinit Seqlock<plan::Inputs> published;

static_assert(knob_auto == UINT64_MAX);  // as plan::Settings::inline_bytes means it

plan::Settings read_settings() noexcept {
  plan::Settings settings;
  settings.mover_caller = knob_number(Knob::plan_mover) == 1;
  settings.mover_thread = knob_number(Knob::plan_mover) == 2;
  settings.mover_service = knob_number(Knob::plan_mover) == 3;
  settings.block_log2 =
      static_cast<std::uint32_t>(std::countr_zero(knob_number(Knob::copy_block_bytes)));
  settings.inline_bytes = knob_number(Knob::plan_inline_bytes);
  if (const Engine* engine = engine_by_name(knob_text(Knob::plan_engine)); engine != nullptr) {
    for (std::size_t i = 0; i < engine_count(); ++i) {
      if (&engine_at(i) == engine) settings.engine = static_cast<int>(i);
    }
  }
  return settings;
}

// Locked. Recomputes what submit reads.
void refresh() noexcept {
  const bool held = gate.held.load(std::memory_order_relaxed);
  plan::Inputs inputs;
  inputs.mover = gate.state.load(std::memory_order_relaxed);
  inputs.round_trip_ns = round_trip_now();
  inputs.l2_bytes = l2_bytes;
  inputs.l3_bytes = l3_bytes;
  inputs.calibration = figures;
  inputs.settings = read_settings();
  plan::Thresholds worth{UINT64_MAX, UINT64_MAX, UINT64_MAX};
  const bool possible =
      inputs.mover != plan::MoverState::denied && inputs.mover != plan::MoverState::impossible;
  if (!possible || held || inputs.settings.mover_caller) {
    inputs.thresholds = plan::Thresholds{UINT64_MAX, UINT64_MAX, UINT64_MAX};
    // Who copies much looks for the node's service now and then.
    const bool may_look = !held && !inputs.settings.mover_caller &&
                          gate.service_bell.load(std::memory_order_relaxed) == nullptr &&
                          knob_number(Knob::service_use) != 1;
    if (may_look)
      worth = plan::Thresholds{default_worth_bytes, default_worth_bytes, default_worth_bytes};
  } else if (inputs.settings.mover_thread) {
    inputs.thresholds = plan::Thresholds{0, 0, 0};
  } else {
    inputs.thresholds = plan::thresholds_of(inputs);
    if (inputs.mover == plan::MoverState::none) {
      // Nothing is known before the mover's first start: not the distance, not the stored figures.
      // A process that copies much is worth finding out for, once.
      worth = plan::Thresholds{default_worth_bytes, default_worth_bytes, default_worth_bytes};
    } else if (inputs.mover != plan::MoverState::awake) {
      plan::Inputs awake = inputs;
      awake.mover = plan::MoverState::awake;
      worth = plan::thresholds_of(awake);
    }
  }
  inputs.service.attached = gate.service_bell.load(std::memory_order_relaxed) != nullptr;
  const plan::Thresholds never{UINT64_MAX, UINT64_MAX, UINT64_MAX};
  inputs.mapped = inputs.mapped_asleep = never;
  if (inputs.service.attached && !held) {
    plan::Inputs service = inputs;
    if (service_round_trip_ns > 0) service.round_trip_ns = service_round_trip_ns;
    service.mover = plan::MoverState::awake;
    inputs.mapped =
        inputs.settings.mover_service ? plan::Thresholds{0, 0, 0} : plan::thresholds_of(service);
    service.mover = plan::MoverState::asleep;
    inputs.mapped_asleep =
        inputs.settings.mover_service ? plan::Thresholds{0, 0, 0} : plan::thresholds_of(service);
  }
  inputs.held = held;
  published.write(inputs);
  // Private memory the service can reach goes to it where no thread of this process can be had.
  std::uint64_t own_below = inputs.thresholds.in_memory;
  if (inputs.service.attached && !held && kernel_reach.load(std::memory_order_relaxed)) {
    const std::uint64_t from = inputs.settings.mover_service ? 0 : plan::kernel_reach_from_bytes;
    if (!possible || inputs.settings.mover_service) own_below = std::min(own_below, from);
  }
  const bool engine_set = inputs.settings.engine >= 0;
  const bool keyed = mover_keys.keyed.load(std::memory_order_relaxed);
  gate.special.store(
      static_cast<std::uint8_t>((engine_set ? Gate::by_plan : 0) | (keyed ? Gate::by_keys : 0)),
      std::memory_order_relaxed);
  gate.block_log2.store(static_cast<std::uint8_t>(inputs.settings.block_log2),
                        std::memory_order_relaxed);
  gate.min_chunk_bytes.store(static_cast<std::uint32_t>(plan::min_chunk_bytes(
                                 round_trip_now() > 0 ? round_trip_now() : figures.round_trip_ns)),
                             std::memory_order_relaxed);
  gate.worth_below.store(worth.in_memory, std::memory_order_relaxed);
  gate.worth_from.store(worth.any, std::memory_order_relaxed);
  gate.piece_from.store(inputs.thresholds.piece, std::memory_order_relaxed);
  gate.mover_from.store(inputs.thresholds.any, std::memory_order_relaxed);
  gate.inline_below.store(engine_set ? 0 : own_below, std::memory_order_relaxed);
  gate.mapped_piece_from.store(inputs.mapped.piece, std::memory_order_relaxed);
  gate.mapped_from.store(inputs.mapped.any, std::memory_order_relaxed);
  gate.mapped_asleep_from.store(inputs.mapped_asleep.any, std::memory_order_relaxed);
  gate.mapped_below.store(inputs.mapped.in_memory, std::memory_order_relaxed);
}

}  // namespace

constinit Gate gate{{default_start_bytes},
                    {default_start_bytes},
                    {default_start_bytes},
                    {default_worth_bytes},
                    {default_worth_bytes},
                    {0},
                    {plan::MoverState::none},
                    {64u << 10},
                    {12},
                    {0},
                    {false},
                    {false},
                    {0},
                    {UINT64_MAX},
                    {UINT64_MAX},
                    {UINT64_MAX},
                    {UINT64_MAX},
                    {0},
                    {nullptr}};

void fill_inputs(plan::Inputs* inputs) noexcept {
  if (!published.read(inputs)) {
    const QuietLock lock(mutex);
    refresh();
    published.read(inputs);
  }
  const std::atomic<std::uint32_t>* bell = gate.service_bell.load(std::memory_order_acquire);
  inputs->service.attached = bell != nullptr;
  inputs->service.asleep = bell != nullptr && bell->load(std::memory_order_relaxed) != 0;
}

void set_calibration(const plan::Calibration& calibration) noexcept {
  const QuietLock lock(mutex);
  figures = calibration;
  refresh();
}

void set_mover_state(plan::MoverState state) noexcept {
  const QuietLock lock(mutex);
  gate.state.store(state, std::memory_order_relaxed);
  refresh();
}

void set_round_trip(double measured_ns) noexcept {
  const QuietLock lock(mutex);
  round_trip_ns.store(measured_ns, std::memory_order_relaxed);
  refresh();
}

void set_caches(std::size_t l2, std::size_t l3) noexcept {
  const QuietLock lock(mutex);
  if (l2 != 0) l2_bytes = l2;
  if (l3 != 0) l3_bytes = l3;
  refresh();
}

void set_service(std::atomic<std::uint32_t>* bell, bool reaches_memory) noexcept {
  const QuietLock lock(mutex);
  kernel_reach.store(reaches_memory, std::memory_order_relaxed);
  // Release: the board is mapped, and this process is registered for barriers.
  gate.service_bell.store(bell, std::memory_order_release);
  refresh();
}

void forget_kernel_reach() noexcept {
  kernel_reach.store(false, std::memory_order_relaxed);
}

void set_service_arena(std::uintptr_t base, std::size_t bytes) noexcept {
  // Both change while nobody relies on them: an arena is made once, and maps() of half a change is
  // false, or a range of the arena all the same.
  gate.mapped_bytes.store(0, std::memory_order_relaxed);
  gate.mapped_base.store(base, std::memory_order_release);
  gate.mapped_bytes.store(bytes, std::memory_order_release);
}

void set_service_round_trip(double measured_ns) noexcept {
  const QuietLock lock(mutex);
  service_round_trip_ns = measured_ns;
  refresh();
}

bool service_reaches_memory() noexcept {
  return kernel_reach.load(std::memory_order_relaxed);
}

double round_trip_now() noexcept {
  return round_trip_ns.load(std::memory_order_relaxed);
}

void hold_gate(std::uint64_t patience_ns) noexcept {
  {
    const QuietLock lock(mutex);
    ++holds;
    ++own_holds;
    gate.held.store(true, std::memory_order_relaxed);
    refresh();
  }
  await_publishers(patience_ns);
}

void await_publishers(std::uint64_t patience_ns) noexcept {
  // A submitter raises `publishing`, then looks at the gate. After the barrier either it saw us, or
  // we see it. (Without membarrier: store buffers have drained within the nap.)
  if (!asymmetric_barrier()) os::sleep_ns(1'000'000);
  const std::uint64_t begun = now_ns();
  for_each_ring([&](const Ring& ring) {
    for (Backoff backoff; &ring != thread_slot.ring &&
                          ring.publishing.load(std::memory_order_acquire) &&
                          now_ns() - begun < patience_ns;)
      backoff.pause();
  });
}

void release_gate(After after) noexcept {
  const QuietLock lock(mutex);
  if (after == After::shut) shut = true;
  if (own_holds != 0) {
    --own_holds;
    --holds;
  }
  gate.held.store(shut || holds != 0, std::memory_order_relaxed);
  refresh();
}

namespace {

// Whoever held the lock or the gate, or was writing, is not here.
void begin_anew(plan::MoverState state) noexcept {
  mutex = PTHREAD_MUTEX_INITIALIZER;
  holds = own_holds = 0;
  gate.service_bell.store(nullptr, std::memory_order_relaxed);
  gate.mapped_bytes.store(0, std::memory_order_relaxed);
  gate.state.store(state, std::memory_order_relaxed);
  gate.asleep.store(0, std::memory_order_relaxed);
  gate.held.store(shut, std::memory_order_relaxed);
  published.remake();
  refresh();
}

}  // namespace

void reset_gate_in_child() noexcept {
  begin_anew(plan::MoverState::none);
}

void remake_gate() noexcept {
  begin_anew(plan::MoverState::impossible);
}

}  // namespace haul
