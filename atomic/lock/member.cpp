#include "atomic/lock/member.hpp"

namespace haul::atomics::lock {

Member::Member(Reach& reach, const MemberFacts& facts, std::uint64_t* words) noexcept
    : reach_(reach), facts_(facts), words_(words), tag_(facts.first_tag) {
  put_own(Node::next, nobody(tag_));
  put_own(Node::waiting, waiting(tag_, idle));
}

// Own words are changed by the CPU, by others through the responder: both are full barriers.
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

// From now on `next` is that of the node `tag`: whoever links himself to the old one misses.
// Returns what the old one said.
std::uint64_t Member::close_next(std::uint64_t tag) noexcept {
  return __atomic_exchange_n(&words_[Node::next / 8], nobody(tag), __ATOMIC_SEQ_CST);
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
  sent_ns_ = now_ns;
  reach_.send(place, operations_, sent_);
}

Code Member::begin(Goal goal, std::uint64_t now_ns, std::uint64_t until_ns) noexcept {
  const bool needs_it = goal == Goal::release || goal == Goal::renew;
  if (goal_ != Goal::none || goal == Goal::none || needs_it != holds_) return Code::invalid;
  goal_ = goal;
  until_ns_ = until_ns;
  tries_ = 0;
  if (goal == Goal::release) {
    release(now_ns);
  } else if (goal == Goal::renew) {
    add_cas(Home::state, state_, renewed(state_));
    send(Reach::home, Step::renew, now_ns);
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
  holds_ = true;
  // Nobody can have seen this state before the packet left that made it.
  safe_until_ns_ = sent_ns_ + facts_.lease_ns;
  // A grant that comes now is late.
  put_own(Node::waiting, waiting(tag_, idle));
}

// The lock was in another state than we left it in: granted on, or taken over?
void Member::lose(std::uint64_t found) noexcept {
  holds_ = false;
  finish(epoch_of(found) == epoch_of(state_) ? Code::ok : Code::stale);
}

bool Member::step(std::uint64_t now_ns) noexcept {
  while (goal_ != Goal::none) {
    const Step before = step_;
    if (sent_ != 0) {
      Code code = Code::ok;
      if (!reach_.answered(operations_, sent_, &code)) return false;
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
      if (is_linked(own(Node::next)) || too_long) {
        tell_to_begin_anew(close_next(tag_ + 1), Then::end, now_ns);
      }
      break;
    case Step::release_next:
      if (is_linked(own(Node::next))) {
        grant_to(own(Node::next), now_ns);
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
    case Step::link: step_ = swapped(0) ? Step::wait : Step::head; break;
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
    case Step::renew:
      if (!swapped(0)) {
        holds_ = false;
        finish(Code::stale);
        break;
      }
      state_ = renewed(state_);
      safe_until_ns_ = sent_ns_ + facts_.lease_ns;
      finish(Code::ok);
      break;
    default: break;
  }
}

// Nobody knows what became of the packet. Neighbours that cannot be reached are done without;
// without the home nothing can be done, and what was half-done there ends with the lease.
void Member::failed(Code code, std::uint64_t now_ns) noexcept {
  switch (step_) {
    case Step::link: step_ = Step::head; return;
    case Step::notice: after_notice(now_ns); return;
    case Step::grant:
    case Step::skip: force(now_ns); return;
    case Step::skip_tell: finish(Code::ok); return;
    case Step::renew: finish(code); return;  // still held, as long as it was safe before
    default: break;
  }
  // The node is never used again, whatever queue it is in.
  close_next(++tag_);
  put_own(Node::waiting, waiting(tag_, idle));
  holds_ = false;
  finish(code);
}

}  // namespace haul::atomics::lock
