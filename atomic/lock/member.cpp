#include "atomic/lock/member.hpp"

#include <algorithm>

namespace haul::atomics::lock {

Member::Member(Courier& courier, const MemberFacts& facts, std::uint64_t* words) noexcept
    : courier_(courier), facts_(facts), words_(words), tag_(facts.first_tag) {
  put_own(QueueNode::next, nobody(tag_));
  put_own(QueueNode::waiting, waiting(tag_, idle));
}

// A member's own words are changed by its CPU, and by others through the responder; both are full
// barriers.
std::uint64_t Member::own(std::uint64_t word) const noexcept {
  return __atomic_load_n(&words_[word / 8], __ATOMIC_SEQ_CST);
}

void Member::put_own(std::uint64_t word, std::uint64_t value) noexcept {
  __atomic_store_n(&words_[word / 8], value, __ATOMIC_SEQ_CST);
}

bool Member::swap_own(std::uint64_t word, std::uint64_t from, std::uint64_t to) noexcept {
  return __atomic_compare_exchange_n(&words_[word / 8], &from, to, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

// From now on `next` belongs to the node `tag`, so a member that links itself to the old node
// misses. Returns what `next` said for the old node.
std::uint64_t Member::close_next(std::uint64_t tag) noexcept {
  return __atomic_exchange_n(&words_[QueueNode::next / 8], nobody(tag), __ATOMIC_SEQ_CST);
}

void Member::add(haul_atomic_code code, std::uint64_t word, std::uint64_t operand) noexcept {
  haul_atomic_operation& operation = operations_[sent_++];
  operation = haul_atomic_operation{};
  operation.code = static_cast<std::uint8_t>(code);
  operation.width = 8;
  operation.address = word;
  operation.operand = operand;
}

void Member::add_cas(std::uint64_t word, std::uint64_t from, std::uint64_t to, bool link) noexcept {
  add(HAUL_ATOMIC_CAS, word, to);
  operations_[sent_ - 1].compare = from;
  if (link) operations_[sent_ - 1].flags = HAUL_ATOMIC_LINK;
}

void Member::send(int place, Step step, std::uint64_t now_ns) noexcept {
  step_ = step;
  to_ = place;
  again_ = false;
  sent_ns_ = now_ns;
  courier_.send(place, operations_, sent_);
}

void Member::send_again(std::uint64_t now_ns) noexcept {
  again_ = true;
  sent_ns_ = now_ns;
  courier_.send(to_, operations_, sent_);
}

// Asked when the receiver did not know this client any more, which may happen after a minute of
// silence. Either the packet was not executed, or, if an earlier copy of it was, a second execution
// must do no harm. Reads never do. Nor does a compare&swap whose compared value never comes again
// (tags and `state` only grow): it misses. How each step goes on then: link and renew find their
// own value; undo and skip have been done; a notice says the same again; release and grant end at
// force(), which misses a lock that was passed on. The other steps could do harm: others may make
// the same value (confirm, take_over, head_try, verify), or the node may be in the queue (enqueue,
// which begins with a new node instead).
bool Member::may_be_sent_twice() const noexcept {
  switch (step_) {
    case Step::peek:
    case Step::observe:
    case Step::link:
    case Step::undo:
    case Step::notice:
    case Step::release_home:
    case Step::grant:
    case Step::skip:
    case Step::skip_home:
    case Step::skip_tell:
    case Step::force:
    case Step::renew: return true;
    default: return false;
  }
}

// Whether a compare&swap at a neighbour has found a tag that cannot be that member's. Each member
// counts its tags up from a random one, so another member has the rank by now, elsewhere.
bool Member::is_elsewhere() const noexcept {
  constexpr std::uint64_t nodes_since = std::uint64_t{1} << 24;
  for (unsigned i = 0; i < sent_; ++i) {
    const haul_atomic_operation& one = operations_[i];
    if (one.code != HAUL_ATOMIC_CAS) continue;
    if (tag_of(one.old) - tag_of(one.compare) >= nodes_since) return true;
  }
  return false;
}

// Whether a packet that ended with this code is sent once more.
bool Member::is_worth_another(Code code) noexcept {
  if (again_) return false;
  if (code == Code::peer_gone) return may_be_sent_twice();
  // The member's window is another by now, or it has none any more.
  const bool elsewhere =
      code == Code::ok ? is_elsewhere() : code == Code::permission || code == Code::stale;
  return to_ != Courier::home && elsewhere && courier_.doubt(to_);
}

// A member that gives up at a certain time does not wait longer for a home that is silent. But a
// packet that may change the lock gets a lease more, because abandoning it can leave the lock
// without a holder for as long.
bool Member::is_overdue(std::uint64_t now_ns) const noexcept {
  const bool limited = goal_ == Goal::acquire || goal_ == Goal::try_once;
  if (!limited || to_ != Courier::home || now_ns < until_ns_) return false;
  const bool harmless = step_ == Step::peek || step_ == Step::observe || !courier_.has_left();
  return now_ns - sent_ns_ >= facts_.lease_ns / 4 &&
         (harmless || now_ns - until_ns_ >= facts_.lease_ns);
}

Code Member::begin(Goal goal, std::uint64_t now_ns, std::uint64_t until_ns) noexcept {
  const bool needs_it = goal == Goal::release || goal == Goal::renew;
  if (goal_ != Goal::none || goal == Goal::none || needs_it != holds_) return Code::invalid;
  goal_ = goal;
  until_ns_ = until_ns;
  tries_ = 0;
  anew_ = false;
  if (goal == Goal::release) {
    release(now_ns);
  } else if (goal == Goal::renew) {
    renew(now_ns);
  } else {
    start(now_ns);
  }
  return Code::ok;
}

void Member::finish(Code result) noexcept {
  result_ = result;
  goal_ = Goal::none;
  step_ = Step::none;
}

// The lock is ours, in this state.
void Member::hold(std::uint64_t state) noexcept {
  state_ = state;
  token_ = token_of(state);
  renewal_unknown_ = false;
  holds_ = true;
  // Nobody can have seen this state before the packet left that made it.
  safe_until_ns_ = sent_ns_ + facts_.lease_ns;
  // A grant that comes now is late.
  put_own(QueueNode::waiting, waiting(tag_, idle));
}

// The lock is not in the state in which this member left it: it was passed on, or taken over.
void Member::lose(std::uint64_t found) noexcept {
  holds_ = false;
  finish(epoch_of(found) == epoch_of(state_) ? Code::ok : Code::stale);
}

// A renewal less than 1/128 of a lease after the last one only asks. So a waiter, which looks each
// eighth of a lease, sees the beats before a carry, and does not take the carry for another holder.
void Member::renew(std::uint64_t now_ns) noexcept {
  const std::uint64_t since_ns = now_ns - (safe_until_ns_ - facts_.lease_ns);
  add_cas(Home::state, state_, since_ns < facts_.lease_ns / 128 ? state_ : renewed(state_));
  send(Courier::home, Step::renew, now_ns);
}

void Member::heard_renew(std::uint64_t now_ns) noexcept {
  if (swapped(0)) {
    if (state_ != operations_[0].operand) safe_until_ns_ = sent_ns_ + facts_.lease_ns;
    state_ = operations_[0].operand;
    renewal_unknown_ = false;
    finish(Code::ok);
  } else if (is_own_renewal(old(0))) {
    renew(now_ns);  // the lease that it began may be long over
  } else {
    holds_ = false;
    finish(Code::stale);
  }
}

// Whether this is what a renewal whose answer was lost has made of the state; if so, it is this
// member's state from now on.
bool Member::is_own_renewal(std::uint64_t found) noexcept {
  if (!(renewal_unknown_ || again_) || found != renewed(state_)) return false;
  renewal_unknown_ = false;
  state_ = found;
  return true;
}

bool Member::step(std::uint64_t now_ns) noexcept {
  while (goal_ != Goal::none) {
    const Step before = step_;
    if (sent_ != 0) {
      Code code = Code::ok;
      if (!courier_.answered(operations_, sent_, &code)) {
        if (!is_overdue(now_ns)) return false;
        courier_.give_up();
        code = Code::timed_out;
      }
      // `now_ns` is older than the answer may be: a state seen now must not count as seen before.
      now_ns = std::max(now_ns, courier_.clock_ns());
      if (is_worth_another(code)) {
        send_again(now_ns);
        continue;
      }
      sent_ = 0;
      code == Code::ok ? heard(now_ns) : failed(code, now_ns);
    } else {
      go_on(now_ns);
      if (sent_ == 0 && goal_ != Goal::none && step_ == before) return false;
    }
  }
  return true;
}

void Member::go_on(std::uint64_t now_ns) noexcept {
  const std::uint64_t most_ns = facts_.lease_ns / 8;
  constexpr std::uint64_t link_patience_ns = 50'000'000;
  const bool too_long =
      now_ns - step_since_ns_ > (most_ns < link_patience_ns ? most_ns : link_patience_ns);
  switch (step_) {
    case Step::wait:
    case Step::head: go_on_waiting(now_ns); break;
    case Step::undo_next:
      if (is_linked(own(QueueNode::next)) || too_long) {
        tell_to_begin_anew(close_next(tag_ + 1), Then::end, now_ns);
      }
      break;
    case Step::release_next:
      if (is_linked(own(QueueNode::next))) {
        grant_to(own(QueueNode::next), now_ns);
      } else if (too_long) {
        force(now_ns);
      }
      break;
    default: break;
  }
}

void Member::heard(std::uint64_t now_ns) noexcept {
  switch (step_) {
    case Step::peek: heard_peek(now_ns); break;
    case Step::enqueue: heard_enqueue(now_ns); break;
    case Step::link: step_ = swapped(0) || old(0) == node() ? Step::wait : Step::head; break;
    case Step::observe:
      step_ = Step::wait;
      look_at(old(0), now_ns);
      break;
    case Step::head_try:
    case Step::confirm:
    case Step::verify:
    case Step::take_over: heard_lock(now_ns); break;
    case Step::undo: heard_undo(now_ns); break;
    case Step::notice: after_notice(now_ns); break;
    case Step::release_home:
    case Step::force: heard_release(now_ns); break;
    case Step::grant: heard_grant(now_ns); break;
    case Step::skip:
    case Step::skip_home:
    case Step::skip_tell: heard_skip(now_ns); break;
    case Step::renew: heard_renew(now_ns); break;
    default: break;
  }
}

// Nobody knows what became of the packet. The member does without neighbours that it cannot reach.
// Without the home it can do nothing, and what was half done there ends with the lease.
void Member::failed(Code code, std::uint64_t now_ns) noexcept {
  switch (step_) {
    case Step::link: step_ = Step::head; return;
    case Step::notice: after_notice(now_ns); return;
    case Step::grant:
    case Step::skip: force(now_ns); return;
    case Step::skip_tell: finish(Code::ok); return;
    case Step::renew:  // still held, as long as it was safe before
      renewal_unknown_ = true;
      finish(code);
      return;
    case Step::observe:
      if (now_ns < until_ns_) break;
      step_ = Step::wait;  // and gives up there
      return;
    case Step::enqueue:
      if (code != Code::peer_gone || anew_) break;
      // As if the acquire had failed and the caller had asked again: it begins with a new node, so
      // that the old one, should it be in the queue after all, is an abandoned one.
      anew_ = true;
      enqueue(now_ns);
      return;
    default: break;
  }
  // The node is never used again, whatever queue it is in.
  close_next(++tag_);
  put_own(QueueNode::waiting, waiting(tag_, idle));
  holds_ = false;
  finish(code);
}

}  // namespace haul::atomics::lock
