// Offering a half, taking it back, and what to do about a hand that is stopped in the middle.
#include "service/second_hand.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/os.hpp"
#include "engine/registry.hpp"
#include "request/request.hpp"

namespace haul::service {
namespace {

// Below, the hand-over costs more than it saves.
constexpr std::size_t least_piece_bytes = std::size_t{128} << 10;
constexpr std::uint64_t spin_ns = 100'000;  // the hand waits so long for its next half
// Nobody takes what is offered: no core is idle. Then it is not tried again for a while.
constexpr std::uint64_t first_pause_ns = 200'000, longest_pause_ns = 20'000'000;
constexpr std::uint64_t stuck_ns = 200'000;  // many times what half a piece takes
constexpr std::uint64_t page_bytes = 4096;

void move_whole(const Piece& piece, Outcome& outcome) {
  cpu_engine().submit(piece, 0, outcome);
}

}  // namespace

SecondHand::SecondHand(int own_cpu) : own_cpu_(own_cpu) {
  if (own_cpu < 0 || own_cpu >= CPU_SETSIZE ||
      sched_getaffinity(0, sizeof elsewhere_, &elsewhere_) != 0)
    return;
  CPU_CLR(own_cpu, &elsewhere_);
  possible_ = CPU_COUNT(&elsewhere_) > 0;
}

SecondHand::~SecondHand() {
  if (!started_) return;
  ending_.store(true, std::memory_order_seq_cst);
  asleep_.store(0, std::memory_order_release);
  os::futex_wake(&asleep_, 1);
  pthread_join(thread_, nullptr);
}

Outcome SecondHand::move(const Piece& piece) {
  Outcome outcome;
  if (!wanted(piece)) {
    move_whole(piece, outcome);
    return outcome;
  }
  // The front is this thread's, for its progress shows; up to a page of the destination.
  std::size_t front = piece.length / 2;
  front -= (piece.dst + front) % page_bytes;
  piece_ = piece;
  piece_.dst += front;
  if (piece.operation == Operation::copy) piece_.src += front;
  piece_.pattern = pattern_at(piece.pattern, front);
  piece_.length -= front;
  piece_.watermark = Watermark{};
  // Sequentially consistent: the piece before the offer, and the offer before the look at asleep_.
  half_.store(Half::offered, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst) != 0) summon();
  Piece own = piece;
  own.length = front;
  move_whole(own, outcome);
  Half offered = Half::offered;
  if (half_.compare_exchange_strong(offered, Half::none, std::memory_order_acquire)) {
    take_back();
    Outcome rest;
    move_whole(piece_, rest);
  } else {
    await_done();
    half_.store(Half::none, std::memory_order_relaxed);
    pause_ns_ = 0;
    ++halves_;
  }
  piece.watermark.publish(piece.length);
  return Outcome{piece.length, Code::ok};
}

bool SecondHand::wanted(const Piece& piece) {
  if (!possible_ || piece.length < least_piece_bytes ||
      (piece.operation == Operation::copy && overlaps(piece.dst, piece.src, piece.length)))
    return false;
  if (retry_ns_ != 0) {
    if (now_ns() < retry_ns_) return false;
    retry_ns_ = 0;
  }
  return started_ || start();
}

bool SecondHand::start() {
  started_ = os::start_thread(&thread_, run, this) == 0;
  possible_ = started_;
  return started_;
}

void SecondHand::summon() {
  if (asleep_.exchange(0, std::memory_order_seq_cst) != 0) os::futex_wake(&asleep_, 1);
}

// It has just been woken, or it does not run: then the core is another's.
void SecondHand::take_back() {
  pause_ns_ = std::clamp(2 * pause_ns_, first_pause_ns / 8, longest_pause_ns);
  if (pause_ns_ >= first_pause_ns) retry_ns_ = now_ns() + pause_ns_;
}

// A hand that was displaced amid its half (a program wants that core again) must not be waited for
// as long as the program computes, and what it writes cannot be taken from it: so it comes to this
// core, which is left to it meanwhile.
void SecondHand::await_done() {
  const std::uint64_t began = now_ns();
  for (unsigned spins = 1; half_.load(std::memory_order_acquire) != Half::done; ++spins) {
    cpu_relax();
    if (spins % 64 == 0 && now_ns() - began > stuck_ns) break;
  }
  if (half_.load(std::memory_order_acquire) == Half::done) return;
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(own_cpu_, &here);
  const int thread = thread_id_.load(std::memory_order_relaxed);
  sched_setaffinity(thread, sizeof here, &here);
  awaited_.store(true, std::memory_order_seq_cst);
  while (half_.load(std::memory_order_seq_cst) != Half::done) {
    os::futex_wait(reinterpret_cast<std::atomic<std::uint32_t>*>(&half_),
                   static_cast<std::uint32_t>(Half::taken), first_pause_ns);
  }
  awaited_.store(false, std::memory_order_relaxed);
  sched_setaffinity(thread, sizeof elsewhere_, &elsewhere_);
  retry_ns_ = now_ns() + longest_pause_ns;
}

void* SecondHand::run(void* hand) {
  static_cast<SecondHand*>(hand)->work();
  return nullptr;
}

void SecondHand::work() {
  os::name_thread("haul-hand");
  thread_id_.store(os::thread_id(), std::memory_order_relaxed);
  sched_setaffinity(0, sizeof elsewhere_, &elsewhere_);
  const sched_param none{};
  sched_setscheduler(0, SCHED_IDLE, &none);
  std::uint64_t idle_since = now_ns();
  for (unsigned turn = 0; !ending_.load(std::memory_order_relaxed); ++turn) {
    Half offered = Half::offered;
    if (half_.load(std::memory_order_relaxed) == Half::offered &&
        half_.compare_exchange_strong(offered, Half::taken, std::memory_order_acquire)) {
      Outcome outcome;
      move_whole(piece_, outcome);
      // Sequentially consistent: the bytes; and either await_done() sees it, or we see awaited_.
      half_.store(Half::done, std::memory_order_seq_cst);
      if (awaited_.load(std::memory_order_seq_cst))
        os::futex_wake(reinterpret_cast<std::atomic<std::uint32_t>*>(&half_), 1);
      idle_since = now_ns();
      continue;
    }
    cpu_relax();
    if (turn % 64 != 0 || now_ns() - idle_since < spin_ns) continue;
    // Either this look sees the offer, or the offer sees that we sleep.
    asleep_.store(1, std::memory_order_seq_cst);
    while (half_.load(std::memory_order_seq_cst) != Half::offered &&
           !ending_.load(std::memory_order_seq_cst) && asleep_.load(std::memory_order_acquire) == 1)
      os::futex_wait(&asleep_, 1, 0);
    asleep_.store(0, std::memory_order_relaxed);
    idle_since = now_ns();
  }
}

}  // namespace haul::service
