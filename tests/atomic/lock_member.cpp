#include "tests/atomic/lock_member.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "tests/atomic/lock_board.hpp"
#include "tests/atomic/soak_server.hpp"
#include "tools/failure.hpp"

namespace atomic_test {
namespace {

using haul::tools::CommandFailure;

void sleep_ns(std::uint64_t ns) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

}  // namespace

LockHandle::LockHandle(const LockFacts& facts, const std::string& responder) : facts_(facts) {
  const haul_atomic_node_options options = soak_options();
  must_do(haul_atomic_node_open(responder.c_str(), &options, &node_), "opening a member's node");
  must_do(haul_atomic_window_create(node_, HAUL_ATOMIC_LOCK_MEMBER_BYTES, &window_),
          "making a member's window");
  must_do(haul_atomic_connect(node_, &facts_.home, &remote_), "connecting to the home");
  open();
}

LockHandle::~LockHandle() {
  haul_atomic_lock_close(lock_);
  haul_atomic_disconnect(remote_);
  haul_atomic_window_destroy(window_);
  haul_atomic_node_close(node_);
}

void LockHandle::open() {
  const haul_atomic_lock_place home{facts_.home, 0};
  haul_atomic_lock_options options{};
  options.size = sizeof options;
  options.rank = HAUL_ATOMIC_LOCK_ANY_RANK;
  options.count = facts_.members;
  options.home = &home;
  options.lease_ns = facts_.lease_ns;
  // Full: the place of one that is gone was taken by another that comes at this moment.
  constexpr int tries = 20;
  int result = HAUL_EAGAIN;
  for (int i = 0; i < tries && result == HAUL_EAGAIN; ++i) {
    result = haul_atomic_lock_open(node_, window_, &options, &lock_);
  }
  must_do(result, "joining the lock");
}

void LockHandle::reopen() {
  must_do(haul_atomic_lock_close(lock_), "leaving the lock");
  lock_ = nullptr;
  open();
}

std::uint64_t LockHandle::count_of(const char* counter) const {
  return counters_of(node_)[counter];
}

int LockHandle::run(haul_atomic_code code, std::uint64_t token, std::uint32_t operand,
                    std::uint32_t* old) {
  haul_atomic_operation operation{};
  operation.code = static_cast<std::uint8_t>(code);
  operation.width = 8;
  operation.flags = facts_.guarded ? HAUL_ATOMIC_GUARDED : 0;
  operation.address = facts_.home.address + facts_.word_offset();
  operation.operand = operand;
  operation.token = token;
  int result = HAUL_EAGAIN;  // changed by others again and again
  while (result == HAUL_EAGAIN) result = haul_atomic_run(remote_, &operation, 1);
  if (result != HAUL_ESTALE) must_do(result, "an operation on the shared word");
  *old = static_cast<std::uint32_t>(operation.old);
  return result;
}

namespace {

class Member {
 public:
  Member(const MemberFacts& facts, Board& board)
      : board_(board),
        slot_(board.slots[facts.slot]),
        lease_ns_(facts.lock.lease_ns),
        random_(facts.lock.seed * 1'000'000 + facts.slot * 10'000 + facts.life),
        handle_(facts.lock, facts.responder) {}

  void live() {
    while (board_.stop.load(std::memory_order_acquire) == 0) {
      enter(Phase::waiting);
      const std::uint64_t asked_ns = monotonic_ns();
      std::uint64_t token = 0;
      if (take(&token)) {
        hold(asked_ns, token);
      } else {
        count(slot_.tally.gave_up);
      }
      note_stats();
      enter(Phase::resting);
      if (below(3) == 0) sleep_ns(below(500'000));
      if (below(200) == 0) {
        handle_.reopen();
        seen_ = {};
        count(slot_.tally.reopened);
      }
    }
    count(slot_.tally.by_program, handle_.count_of("replies completed"));
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  static void count(std::atomic<std::uint64_t>& counter, std::uint64_t more = 1) {
    counter.fetch_add(more, std::memory_order_relaxed);
  }
  void enter(Phase phase) {
    slot_.phase.store(phase, std::memory_order_release);
    count(slot_.progress);
  }

  // In one of the ways there are. False: not in time.
  bool take(std::uint64_t* token) {
    haul_atomic_lock* lock = handle_.lock();
    const std::uint64_t kind = below(10);
    const std::uint64_t timeout_ns = kind <= 2 ? below(lease_ns_) : UINT64_MAX;
    int result = 0;
    if (kind == 0) {
      result = haul_atomic_lock_try(lock, token);
      if (result == HAUL_EAGAIN) return false;
    } else if (kind == 1 || kind == 3) {
      result = haul_atomic_lock_start(lock, HAUL_ATOMIC_LOCK_ACQUIRE, timeout_ns);
      while (result == 0 && (result = haul_atomic_lock_test(lock, token)) == 0) sleep_ns(100'000);
    } else {
      result = haul_atomic_lock_acquire(lock, timeout_ns, token);
    }
    if (result == HAUL_ETIMEDOUT && timeout_ns != UINT64_MAX) return false;
    must_do(result, "acquiring the lock");
    return true;
  }

  void hold(std::uint64_t asked_ns, std::uint64_t token) {
    const std::uint64_t index = slot_.hold_count.load(std::memory_order_relaxed);
    if (index == Slot::most_holds)
      throw CommandFailure("the board is full; soak for a shorter time");
    Hold& hold = slot_.holds[index];
    hold.token = token;
    hold.asked_ns = asked_ns;
    hold.held_ns = monotonic_ns();
    // A killed member may have left something here that it had not counted yet.
    hold.safe_until_ns.store(0, std::memory_order_relaxed);
    learn_lease(&hold);
    slot_.hold_count.store(index + 1, std::memory_order_release);
    enter(Phase::holding);

    bool is_stale = false, is_held = true;
    const std::uint64_t increments = 1 + below(Hold::most_increments);
    for (std::uint64_t i = 0; i < increments && !is_stale && is_held; ++i) {
      is_stale = !increment(&hold, i);
      if (!is_stale && below(16) == 0) is_held = renew(&hold);
    }
    if (is_held) release(&hold, is_stale);
  }

  // In this order: what is written down is never more than is so. Of a lease that was over when
  // this was heard of it (0) it is not known when that was.
  void learn_lease(Hold* hold) {
    const std::uint64_t now_ns = monotonic_ns();
    const std::uint64_t remaining_ns = haul_atomic_lock_remaining(handle_.lock());
    if (remaining_ns == 0) return;
    hold->safe_until_ns.store(now_ns + remaining_ns, std::memory_order_release);
  }

  // Another has it: that must not be before the lease is over.
  void lost(const Hold& hold, const char* what) {
    count(slot_.tally.lost);
    if (monotonic_ns() < hold.safe_until_ns.load(std::memory_order_relaxed)) {
      throw CommandFailure(std::string(what) + " as stale, though the lease was not over");
    }
  }

  // Mostly at once; now and then slow, or longer than the lease.
  void think() {
    const std::uint64_t kind = below(300);
    if (kind == 0) {
      sleep_ns(lease_ns_ + below(lease_ns_));
    } else if (kind < 40) {
      sleep_ns(below(1'000'000));
    }
  }

  // False: refused as stale.
  bool increment(Hold* hold, std::uint64_t index) {
    Increment& increment = hold->increments[index];
    std::uint32_t before = 0, found = 0;
    if (handle_.run(HAUL_ATOMIC_READ, hold->token, 0, &before) == 0) {
      think();
      increment.value = before + 1;
      increment.fate.store(Fate::unknown, std::memory_order_release);
      const int result = handle_.run(HAUL_ATOMIC_SWAP, hold->token, before + 1, &found);
      increment.fate.store(result == 0 ? Fate::done : Fate::stale, std::memory_order_release);
      if (result == 0) {
        if (found != before) count(slot_.interleaved);
        return true;
      }
    }
    lost(*hold, "an increment was refused");
    return false;
  }

  bool renew(Hold* hold) {
    const int result = haul_atomic_lock_renew(handle_.lock());
    if (result == HAUL_ESTALE) {
      lost(*hold, "a renewal was refused");
      return false;
    }
    must_do(result, "renewing the lease");
    learn_lease(hold);
    count(slot_.tally.renewed);
    return true;
  }

  void release(Hold* hold, bool is_stale) {
    hold->let_go_ns.store(monotonic_ns(), std::memory_order_release);
    enter(Phase::releasing);
    const int result = haul_atomic_lock_release(handle_.lock());
    if (result == HAUL_ESTALE) {
      if (!is_stale) lost(*hold, "the release was refused");
      return;
    }
    must_do(result, "releasing the lock");
    if (is_stale) count(slot_.tally.unnoticed);
  }

  void note_stats() {
    haul_atomic_lock_counts now{};
    must_do(haul_atomic_lock_stats(handle_.lock(), &now), "asking for the lock's counts");
    count(slot_.tally.handed, now.handed - seen_.handed);
    count(slot_.tally.taken_over, now.taken_over - seen_.taken_over);
    count(slot_.tally.requeued, now.requeued - seen_.requeued);
    count(slot_.tally.forced, now.forced - seen_.forced);
    count(slot_.tally.skipped, now.skipped - seen_.skipped);
    seen_ = now;
  }

  Board& board_;
  Slot& slot_;
  const std::uint64_t lease_ns_;
  std::mt19937_64 random_;
  LockHandle handle_;
  haul_atomic_lock_counts seen_{};
};

}  // namespace

int live_as_member(const MemberFacts& facts) {
  const auto board = map_board(facts.board);
  Slot& slot = board->slots[facts.slot];
  slot.phase.store(Phase::starting, std::memory_order_release);
  try {
    Member(facts, *board).live();
  } catch (const CommandFailure& failure) {
    std::snprintf(slot.complaint, sizeof slot.complaint, "%s", failure.what());
    return 1;
  }
  slot.phase.store(Phase::ended, std::memory_order_release);
  return 0;
}

}  // namespace atomic_test
