// Getting the lock: entering the queue, waiting there, and going on when the queue breaks.
#include <algorithm>

#include "atomic/lock/member.hpp"

namespace haul::atomics::lock {

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t first_pause_ns = 20'000, longest_pause_ns = ms;
constexpr unsigned tries_of_a_try = 8;
constexpr unsigned looks_that_convince = 2;

// Between two looks at the lock from the queue.
std::uint64_t look_every_ns(std::uint64_t lease_ns) noexcept {
  return std::clamp(lease_ns / 8, ms, 125 * ms);
}
// Clocks of two hosts do not run alike.
std::uint64_t lease_of_others_ns(std::uint64_t lease_ns) noexcept {
  return lease_ns + lease_ns / 64 + ms;
}

}  // namespace

void Member::start(std::uint64_t now_ns) noexcept {
  const bool abandoned_still =
      may_come_back_ && own(QueueNode::waiting) == waiting(tag_, abandoned);
  if (abandoned_still && goal_ == Goal::try_once) {
    add(HAUL_ATOMIC_READ, Home::state);
    send(Courier::home, Step::peek, now_ns);
    return;
  }
  // The place in the queue that was abandoned, if nobody has passed it over meanwhile.
  const bool back = abandoned_still &&
                    swap_own(QueueNode::waiting, waiting(tag_, abandoned), waiting(tag_, waits));
  may_come_back_ = false;
  if (!back) {
    enqueue(now_ns);
    return;
  }
  seen_free_ = 0;
  seen_since_ns_ = now_ns;
  sent_ns_ = now_ns;
  step_ = Step::wait;
}

// This member has an abandoned place in the queue. If the lock is free, that queue is no more.
void Member::heard_peek(std::uint64_t now_ns) noexcept {
  if (is_held(old(0))) {
    finish(Code::again);
    return;
  }
  may_come_back_ = false;
  enqueue(now_ns);
}

void Member::enqueue(std::uint64_t now_ns) noexcept {
  ++tag_;
  put_own(QueueNode::hint, 0);
  put_own(QueueNode::waiting, waiting(tag_, waits));
  close_next(tag_);
  add(HAUL_ATOMIC_READ, Home::state);
  if (goal_ == Goal::try_once) {
    add_cas(Home::tail, 0, node(), true);
  } else {
    add(HAUL_ATOMIC_SWAP, Home::tail, node());
    operations_[1].flags = HAUL_ATOMIC_LINK;  // compare 0: only if nobody was there
  }
  add(HAUL_ATOMIC_OR, Home::state, held);
  send(Courier::home, Step::enqueue, now_ns);
}

void Member::heard_enqueue(std::uint64_t now_ns) noexcept {
  const std::uint64_t predecessor = old(1);
  seen_ = old(0);
  seen_since_ns_ = now_ns;
  seen_free_ = 0;
  epoch_ = epoch_of(seen_);
  holders_ = holders_of(seen_);
  if (predecessor == 0) {
    seen_ = old(2);
    if (!is_held(seen_)) {
      hold(seen_ | held);
      have_it(now_ns);
      return;
    }
    tries_ = 0;
    step_ = Step::head;
    return;
  }
  if (goal_ == Goal::try_once) {
    put_own(QueueNode::waiting, waiting(tag_, idle));
    finish(Code::again);
    return;
  }
  tries_ = 0;
  if (rank_of(predecessor) >= facts_.count) {
    step_ = Step::head;
    return;
  }
  add_cas(QueueNode::next, nobody(tag_of(predecessor)), node());
  send(static_cast<int>(rank_of(predecessor)), Step::link, now_ns);
}

void Member::go_on_waiting(std::uint64_t now_ns) noexcept {
  const std::uint64_t word = own(QueueNode::waiting);
  const std::uint64_t hint = own(QueueNode::hint);
  if (word == waiting(tag_, granted) && hint != 0) {
    add_cas(Home::state, hint, passed_on(hint));
    send(Courier::home, Step::confirm, now_ns);
    return;
  }
  if (word == waiting(tag_, requeue)) {
    // This node is the head of the queue now. (If every member that is told so queued again, two
    // could chase each other for ever, each behind the other.) A look at the lock tells whether the
    // queue is an old one.
    put_own(QueueNode::waiting, waiting(tag_, waits));
    tries_ = 0;
    step_ = Step::head;
    return;
  }
  const bool tried = goal_ == Goal::try_once && tries_ >= tries_of_a_try;
  if (word == waiting(tag_, waits) && (now_ns >= until_ns_ || tried)) {
    give_up(now_ns);
    return;
  }
  const std::uint64_t pause_ns =
      step_ == Step::wait ? look_every_ns(facts_.lease_ns)
                          : std::min(longest_pause_ns, first_pause_ns << std::min(tries_, 10u));
  if (now_ns - sent_ns_ < pause_ns) return;
  if (step_ == Step::wait) {
    add(HAUL_ATOMIC_READ, Home::state);
    send(Courier::home, Step::observe, now_ns);
  } else {
    ++tries_;
    add(HAUL_ATOMIC_OR, Home::state, held);
    send(Courier::home, Step::head_try, now_ns);
  }
}

// In the queue a holder that comes to this node passes it over. At the head there is no such
// holder, so the node has to leave the queue.
void Member::give_up(std::uint64_t now_ns) noexcept {
  if (step_ == Step::wait) {
    if (!swap_own(QueueNode::waiting, waiting(tag_, waits), waiting(tag_, abandoned))) return;
    may_come_back_ = true;
    finish(Code::timed_out);
    return;
  }
  add_cas(Home::tail, node(), 0);
  send(Courier::home, Step::undo, now_ns);
}

void Member::heard_undo(std::uint64_t now_ns) noexcept {
  if (!swap_own(QueueNode::waiting, waiting(tag_, waits), waiting(tag_, idle)) &&
      own(QueueNode::waiting) == waiting(tag_, granted)) {
    step_ = Step::wait;  // granted after all: the member that granted it has let go of the lock
    return;
  }
  put_own(QueueNode::waiting, waiting(tag_, idle));
  if (swapped(0)) {
    finish(goal_ == Goal::try_once ? Code::again : Code::timed_out);
    return;
  }
  step_since_ns_ = now_ns;
  step_ = Step::undo_next;
}

// The queue is broken at this node: the member leaves it, and enters it again at its end.
void Member::begin_anew(std::uint64_t now_ns) noexcept {
  ++counts_.requeued;
  tell_to_begin_anew(close_next(tag_ + 1), Then::enqueue, now_ns);
}

void Member::tell_to_begin_anew(std::uint64_t next, Then then, std::uint64_t now_ns) noexcept {
  then_ = then;
  if (!is_linked(next) || rank_of(next) >= facts_.count) {
    after_notice(now_ns);
    return;
  }
  add_cas(QueueNode::waiting, waiting(tag_of(next), waits), waiting(tag_of(next), requeue));
  send(static_cast<int>(rank_of(next)), Step::notice, now_ns);
}

void Member::after_notice(std::uint64_t now_ns) noexcept {
  if (holds_) {
    have_it(now_ns);  // taken over
  } else if (then_ == Then::enqueue) {
    enqueue(now_ns);
  } else {
    finish(goal_ == Goal::try_once ? Code::again : Code::timed_out);
  }
}

// Decides by the lock's state whether to wait on, to queue again, or to take the lock.
void Member::look_at(std::uint64_t state, std::uint64_t now_ns) noexcept {
  // Equal means unchanged, because `state` only grows; so take_over() may compare with it later.
  const bool same = state == seen_;
  if (!same) {
    if (may_have_carried(seen_, state)) ++holders_;  // a holder that renews is no other one
    seen_ = state;
    seen_since_ns_ = now_ns;
  }
  // The member leaves its node by compare&swap: otherwise a grant that comes meanwhile would be
  // lost, and the lock without a holder for a lease.
  const std::uint64_t word = own(QueueNode::waiting), left = waiting(tag_, idle);
  const bool waits_still = word == waiting(tag_, waits);
  if (!waits_still && (word != waiting(tag_, granted) || own(QueueNode::hint) != 0)) return;
  // Everybody else can be in front once.
  const std::uint64_t most_in_front = 2 * facts_.count + 8;
  const bool over = epoch_of(state) != epoch_ || holders_of(state) - holders_ > most_in_front;
  if (over && waits_still) {
    // That queue does not exist any more, or goes on without this node.
    if (swap_own(QueueNode::waiting, word, left)) begin_anew(now_ns);
  } else if (!is_held(state)) {
    // Free, and nobody in front takes it.
    if (++seen_free_ >= looks_that_convince) {
      tries_ = 0;
      step_ = Step::head;
    }
  } else if (same && now_ns - seen_since_ns_ >= lease_of_others_ns(facts_.lease_ns)) {
    if (swap_own(QueueNode::waiting, word, left)) take_over(now_ns);
  }
}

void Member::take_over(std::uint64_t now_ns) noexcept {
  // A new node, alone in a new queue. The old node's successor is told when that is done.
  successor_ = close_next(++tag_);
  put_own(QueueNode::waiting, waiting(tag_, idle));
  add_cas(Home::state, seen_, stolen(seen_), true);
  add(HAUL_ATOMIC_WRITE, Home::tail, node());
  send(Courier::home, Step::take_over, now_ns);
}

// An answer that comes after the lease has ended proves nothing: the member asks whether the lock
// is still its own.
void Member::have_it(std::uint64_t now_ns) noexcept {
  if (now_ns < safe_until_ns_) {
    ++counts_.acquired;
    finish(Code::ok);
    return;
  }
  add_cas(Home::state, state_, renewed(state_));
  send(Courier::home, Step::verify, now_ns);
}

// The answer to an attempt at the lock itself.
void Member::heard_lock(std::uint64_t now_ns) noexcept {
  const std::uint64_t found = old(0);
  switch (step_) {
    case Step::head_try:
      step_ = Step::head;
      if (is_held(found)) {
        look_at(found, now_ns);
        return;
      }
      hold(found | held);
      have_it(now_ns);
      return;
    case Step::confirm:
      if (!swapped(0)) {
        begin_anew(now_ns);  // granted by a member that no longer held it
        return;
      }
      hold(passed_on(found));
      ++counts_.handed;
      have_it(now_ns);
      return;
    case Step::verify:
      holds_ = false;
      if (!swapped(0)) {
        begin_anew(now_ns);
        return;
      }
      hold(renewed(found));
      have_it(now_ns);
      return;
    default: break;
  }
  if (swapped(0)) {
    hold(stolen(found));
    ++counts_.taken_over;
  } else {
    ++counts_.requeued;
  }
  tell_to_begin_anew(successor_, Then::enqueue, now_ns);
}

}  // namespace haul::atomics::lock
