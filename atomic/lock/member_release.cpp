// Releasing the lock: to the successor, past one that has given up to the next, or to nobody.
#include "atomic/lock/member.hpp"

namespace haul::atomics::lock {

void Member::release(std::uint64_t now_ns) noexcept {
  const std::uint64_t next = own(QueueNode::next);
  if (renewal_unknown_) {
    force(now_ns);  // it tells which state it is; the hint of a grant must be right
    return;
  }
  if (is_linked(next)) {
    grant_to(next, now_ns);
    return;
  }
  add_cas(Home::tail, node(), 0, true);
  add_cas(Home::state, state_, released(state_));
  send(Courier::home, Step::release_home, now_ns);
}

void Member::heard_release(std::uint64_t now_ns) noexcept {
  if (step_ == Step::force) {
    if (swapped(0)) {
      ++counts_.forced;
      holds_ = false;
      finish(Code::ok);
    } else if (is_own_renewal(old(0))) {
      force(now_ns);
    } else {
      lose(old(0));
    }
    return;
  }
  if (!swapped(0)) {
    // Another member is behind this one, and about to link itself.
    step_since_ns_ = now_ns;
    step_ = Step::release_next;
  } else if (swapped(1)) {
    holds_ = false;
    finish(Code::ok);
  } else {
    lose(old(1));
  }
}

void Member::grant_to(std::uint64_t successor, std::uint64_t now_ns) noexcept {
  successor_ = successor;
  if (rank_of(successor) >= facts_.count) {
    force(now_ns);
    return;
  }
  const std::uint64_t tag = tag_of(successor);
  add(HAUL_ATOMIC_READ, QueueNode::next);
  add_cas(QueueNode::waiting, waiting(tag, waits), waiting(tag, granted), true);
  // Behind the grant, so that only the granting member writes it.
  add(HAUL_ATOMIC_WRITE, QueueNode::hint, state_);
  send(static_cast<int>(rank_of(successor)), Step::grant, now_ns);
}

void Member::heard_grant(std::uint64_t now_ns) noexcept {
  const std::uint64_t tag = tag_of(successor_);
  if (swapped(1)) {
    holds_ = false;
    finish(Code::ok);
    return;
  }
  if (old(1) != waiting(tag, abandoned)) {
    force(now_ns);  // the successor is elsewhere by now
    return;
  }
  behind_successor_ = old(0);
  if (is_linked(behind_successor_)) {
    add_cas(QueueNode::waiting, waiting(tag, abandoned), waiting(tag, skipped));
    send(static_cast<int>(rank_of(successor_)), Step::skip, now_ns);
    return;
  }
  add_cas(Home::tail, successor_, 0, true);
  add_cas(Home::state, state_, released(state_));
  send(Courier::home, Step::skip_home, now_ns);
}

void Member::heard_skip(std::uint64_t now_ns) noexcept {
  const std::uint64_t tag = tag_of(successor_);
  switch (step_) {
    case Step::skip:
      if (!swapped(0)) {
        grant_to(successor_, now_ns);  // the successor has come back
        return;
      }
      ++counts_.skipped;
      tries_ = 0;
      grant_to(behind_successor_, now_ns);
      return;
    case Step::skip_home:
      if (!swapped(0)) {
        // Another member is behind the successor, and about to link itself: look again, for a
        // while.
        constexpr unsigned patience = 100;
        ++tries_ < patience ? grant_to(successor_, now_ns) : force(now_ns);
        return;
      }
      holds_ = false;
      if (!swapped(1)) {
        lose(old(1));
        return;
      }
      ++counts_.skipped;
      add_cas(QueueNode::waiting, waiting(tag, abandoned), waiting(tag, skipped));
      send(static_cast<int>(rank_of(successor_)), Step::skip_tell, now_ns);
      return;
    default: break;
  }
  // If the successor has come back, its place is in no queue any more.
  if (old(0) == waiting(tag, waits)) {
    add_cas(QueueNode::waiting, waiting(tag, waits), waiting(tag, requeue));
    send(static_cast<int>(rank_of(successor_)), Step::skip_tell, now_ns);
    return;
  }
  finish(Code::ok);
}

void Member::force(std::uint64_t now_ns) noexcept {
  add_cas(Home::state, state_, released(state_));
  send(Courier::home, Step::force, now_ns);
}

}  // namespace haul::atomics::lock
