// Help first, then spin, then yield, then sleep.
//
// A waiter claims chunks of its request by the same compare-and-swap as a mover, so the two share
// one request without speaking to each other, and a mover that never comes (its core was taken, its
// process is the child of a fork) delays nobody. A waiter leaves the chunks that it must not do:
// those that need other rights than its own, those in memory that only the node's service reaches,
// and any chunk of the service's while a dead service's work is being sorted out
// (client/recover.cpp). It then waits for the end of the tenancy: Tenancy::sleep counts it in
// before it looks at the state, and Tenancy::end stores the state before it looks at the count.
#include "execution/help.hpp"

#include <algorithm>

#include "base/knobs.hpp"
#include "base/machine/clock.hpp"
#include "base/machine/cpu.hpp"
#include "base/os/os.hpp"
#include "execution/channel.hpp"
#include "execution/counters.hpp"
#include "execution/drive.hpp"
#include "execution/inherit.hpp"
#include "execution/own_rings.hpp"
#include "request/rights.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

bool ended(const Ring& ring, std::uint64_t seq, Code* code) noexcept {
  // Acquire: pairs with Tenancy::end.
  const std::uint64_t word = ring.state_word(seq).load(std::memory_order_acquire);
  if (State::seq(word) < seq && !ring.ended(seq)) return false;
  *code = State::seq(word) == seq ? State::code(word) : Code::ok;
  return true;
}

// May a waiter do part of a request of the node's service? Not where it names memory that only the
// service reaches, and not while what a dead service left is being sorted out (recover.hpp).
class HelpsService {
 public:
  HelpsService(Ring& ring, const Job& job) noexcept : ring_(job.service ? &ring : nullptr) {
    if (ring_ == nullptr) return;
    // Sequentially consistent, both: either the recovery sees this helper, or it sees the recovery.
    ring_->helpers.fetch_add(1, std::memory_order_seq_cst);
    may_ = job.is_local() && ring_->recovering.load(std::memory_order_seq_cst) == 0;
  }
  ~HelpsService() {
    if (ring_ != nullptr) count_out(ring_->helpers);
  }
  HelpsService(const HelpsService&) = delete;
  HelpsService& operator=(const HelpsService&) = delete;
  explicit operator bool() const noexcept { return may_; }

 private:
  Ring* ring_;
  bool may_ = true;
};

// Does the calling thread have the rights of the thread that asked, as the movers do? If not, it
// leaves the work to them. (The node's service reaches what it moves without them.)
bool has_rights_for(const Job& job) noexcept {
  if (job.service) return true;
  return (job.rights == nobodys || may_act_for(job.rights)) && !keyed_apart();
}

// May a CPU do part of it? Not in memory that only a device reaches.
bool is_for_cpus(const Job& job) noexcept {
  return !is_asynchronous(job.engine) ||
         cpu_engine().reaches(job.operation, job.dst_space, job.src_space);
}

// Claims one chunk among `only` and moves it. False if there was none.
bool help(Ring& ring, const Job& job, const Tenancy& tenancy, std::uint32_t only) noexcept {
  // (A signal handler may have forked since the caller looked.)
  if (job.seq < ring.inherited_below.load(std::memory_order_relaxed)) return false;
  const HelpsService may_help(ring, job);
  if (!may_help || !has_rights_for(job) || !is_for_cpus(job)) return false;
  ++thread_slot.carrying;  // before the claim, since a signal handler may interrupt right after it
  os::compiler_barrier();
  const int chunk = ring.claim(tenancy, job.chunks, only);
  if (chunk >= 0) {
    count_helped();
    run_here(ring, job, static_cast<unsigned>(chunk));
  }
  os::compiler_barrier();
  --thread_slot.carrying;
  return chunk >= 0;
}

// A fenced request cannot begin before the earlier ones have ended, so help those first.
bool pass_fence(Ring& ring, const Job& job, std::uint64_t deadline_ns) noexcept {
  if (!job.fence) return true;
  for (std::uint64_t earlier = ring.first_unfinished(job.seq); earlier < job.seq;
       earlier = ring.first_unfinished(job.seq)) {
    if (wait_for(ring, earlier, deadline_ns) == Code::timed_out) return false;
  }
  return true;
}

}  // namespace

Code wait_for(Ring& ring, std::uint64_t seq, std::uint64_t deadline_ns) noexcept {
  Code code = Code::ok;
  if (ended(ring, seq, &code)) return code;
  const Tenancy tenancy = ring.tenancy(seq);
  Job job;
  bool brief = false, polls = false;
  if (ring.read(seq, &job)) {
    brief = job.service && !job.is_local();
    polls = is_driven(job);
    // Two levels deep at most: pass_fence waits for the lowest unfinished request, which no fence
    // holds back.
    if (!pass_fence(ring, job, deadline_ns)) return Code::timed_out;
    if (polls) drive(ring, seq);
    while (help(ring, job, tenancy, ~std::uint32_t{0})) {
      if (deadline_ns != no_deadline && now_ns() >= deadline_ns) break;
      if (polls) drive(ring, seq);
    }
  }
  WaitPace pace(deadline_ns, polls ? WaitPace::Until::polled : WaitPace::Until::end, brief);
  while (!ended(ring, seq, &code)) {
    if (ring.nobody_moves(seq)) tend_inherited(ring, seq, deadline_ns);
    if (polls && drive(ring, seq)) pace.start_over();
    if (ended(ring, seq, &code)) break;
    const std::uint64_t left_ns = polls ? channel_of(ring, job).left_ns() : 0;
    if (!pace.wait(tenancy, left_ns)) return ended(ring, seq, &code) ? code : Code::timed_out;
  }
  return code;
}

Code wait_for_range(Ring& ring, std::uint64_t seq, std::size_t from, std::size_t to,
                    std::uint64_t deadline_ns) noexcept {
  Code code = Code::ok;
  if (ended(ring, seq, &code)) return code;
  const Tenancy tenancy = ring.tenancy(seq);
  Job job;
  WaitPace pace(deadline_ns, WaitPace::Until::range);
  if (!ring.read(seq, &job)) return wait_for(ring, seq, deadline_ns);
  // The parameters may be a torn copy if the tenancy ended meanwhile; then its state says so.
  if (ended(ring, seq, &code)) return code;
  to = std::min(to, job.chunks.length);
  if (!pass_fence(ring, job, deadline_ns)) return Code::timed_out;
  const bool polls = is_driven(job);
  for (bool over = false;;) {
    if (ring.nobody_moves(seq)) tend_inherited(ring, seq, deadline_ns);
    if (polls && drive(ring, seq)) pace.start_over();
    std::uint32_t missing = 0;
    const bool visible = tenancy.range_visible(job.chunks, from, to, &missing);
    if (ended(ring, seq, &code)) return code;
    if (visible) return Code::ok;
    if (over) return Code::timed_out;
    if (help(ring, job, tenancy, missing)) {
      over = deadline_ns != no_deadline && now_ns() >= deadline_ns;
    } else {
      tenancy.want(missing);
      over = !pace.wait(tenancy);
    }
  }
}

std::uint64_t mover_patience_ns() noexcept {
  return knob_number(Knob::mover_patience_ms) * 1'000'000;
}

void drain(Ring& ring, std::uint64_t end) noexcept {
  for (std::uint64_t seq = ring.first_unfinished(end); seq < end;
       seq = ring.first_unfinished(end)) {
    wait_for(ring, seq, no_deadline);
  }
}

}  // namespace haul
