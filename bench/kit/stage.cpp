// Pinning, waking, and the ping-pong of a cache line.
#include "bench/kit/stage.hpp"

#include <haul/haul.h>

#include <atomic>
#include <thread>

#include "base/knobs.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "bench/kit/stats.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr std::uint64_t wake_limit_ns = 20'000'000;
constexpr std::uint64_t ms = 1'000'000;

haul_state query() {
  haul_state state{};
  state.size = sizeof state;
  tools::require(haul_query(&state), "haul_query()");
  return state;
}

// Waits for the word and yields the CPU now and then, since the partner may share it.
bool await(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t deadline_ns) {
  for (unsigned spins = 1; word.load(std::memory_order_acquire) != value; ++spins) {
    if (spins % 4096 == 0) {
      if (now_ns() > deadline_ns) return false;
      os::yield();
    }
  }
  return true;
}

}  // namespace

bool wake_mover() {
  if (haul_wake() != 0) return false;
  std::uint64_t deadline_ns = now_ns() + wake_limit_ns;
  for (haul_state state = query(); state.mover_state != 1 && state.service_state != 1;
       state = query()) {
    if (now_ns() > deadline_ns) return false;
    os::yield();
  }
  return true;
}

bool let_mover_sleep() {
  std::uint64_t spin_ns = knob_number(Knob::mover_spin_us) * 1000;
  std::uint64_t deadline_ns = now_ns() + 2 * spin_ns + 50 * ms;
  for (haul_state state = query(); state.mover_state == 1 || state.service_state == 1;
       state = query()) {
    if (now_ns() > deadline_ns) return false;
    os::sleep_ns(ms / 4);
  }
  return true;
}

bool settle_mover() {
  if (!wake_mover()) return false;
  std::uint64_t from = 1, to = 0;
  haul_request request = haul_request_copy(&to, &from, sizeof to);
  request.flags = HAUL_DEDICATED;
  haul_ticket ticket{};
  tools::require(haul_submit(&request, 1, &ticket), "haul_submit()");
  tools::require(haul_wait(ticket), "haul_wait()");
  let_mover_sleep();
  return wake_mover();
}

Stage::Stage() : topology_(std::make_unique<Topology>()) {
  // The mover must start first: to a thread that is already pinned the machine looks as if it had
  // one CPU.
  (void)settle_mover();
  auto read = read_topology("");
  if (!read) throw tools::CommandFailure(read.error().sentence);
  *topology_ = *read;
  int mover_cpu = query().mover_cpu;
  for (unsigned i = 0; i < topology_->allowed_count && caller_cpu_ < 0; ++i) {
    if (topology_->allowed[i].cpu != mover_cpu) caller_cpu_ = topology_->allowed[i].cpu;
  }
  if (caller_cpu_ < 0) caller_cpu_ = topology_->allowed[0].cpu;
  partner_cpu_ = mover_cpu;
  if (partner_cpu_ < 0) {
    std::uint16_t order[1];
    if (mover_candidates(*topology_, static_cast<unsigned>(caller_cpu_), order, 1) != 0) {
      partner_cpu_ = topology_->allowed[order[0]].cpu;
    }
  }
  os::pin_thread(static_cast<unsigned>(caller_cpu_));
}

Stage::~Stage() {
  os::unpin_thread();
}

double Stage::round_trip_ns() {
  if (partner_cpu_ < 0) return 0;
  let_mover_sleep();  // A mover that spins would share the partner's CPU.
  constexpr std::uint32_t batch = 200, batches = 60, rounds = batch * batches;
  struct alignas(128) Line {
    std::atomic<std::uint32_t> word{0};
  } line;
  std::uint64_t deadline_ns = now_ns() + 500 * ms;
  std::thread partner([&] {
    os::pin_thread(static_cast<unsigned>(partner_cpu_));
    for (std::uint32_t i = 0; i < rounds; ++i) {
      if (!await(line.word, 2 * i + 1, deadline_ns)) return;
      line.word.store(2 * i + 2, std::memory_order_release);
    }
  });
  Samples samples;
  bool answered = true;
  for (std::uint32_t b = 0; b < batches && answered; ++b) {
    std::uint64_t begin_ns = now_ns();
    for (std::uint32_t i = b * batch; i < (b + 1) * batch && answered; ++i) {
      line.word.store(2 * i + 1, std::memory_order_release);
      answered = await(line.word, 2 * i + 2, deadline_ns);
    }
    if (answered && b > 2) samples.push_back(static_cast<double>(now_ns() - begin_ns) / batch);
  }
  partner.join();
  return median(samples);
}

}  // namespace haul::bench
