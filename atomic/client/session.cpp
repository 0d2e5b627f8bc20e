#include "atomic/client/session.hpp"

#include <algorithm>
#include <cstring>

#include "atomic/wire/convert.hpp"

namespace haul::atomics {

namespace {

constexpr std::uint64_t never = ~std::uint64_t{0};

// `status` is what a peer has written: any number, and so no wire_status.
Code code_of(unsigned status, bool greeting) noexcept {
  switch (status) {
    case WIRE_OK: return Code::ok;
    case WIRE_NO_WINDOW: return greeting ? Code::permission : Code::stale;
    case WIRE_NO_SESSION:
    case WIRE_TAKEN: return Code::peer_gone;
    case WIRE_FULL: return Code::again;
    case WIRE_OTHER_VERSION: return Code::not_supported;
    case WIRE_MALFORMED: break;
  }
  return Code::io;
}

}  // namespace

void Session::fill_header(WirePacket* packet, wire_kind kind, unsigned count,
                          std::uint64_t ticket) const noexcept {
  wire_header& header = packet->header;
  header = wire_header{};
  header.magic = WIRE_MAGIC;
  header.version = WIRE_VERSION;
  header.kind = static_cast<__u8>(kind);
  header.count = static_cast<__u8>(count);
  header.session = names_.id;
  header.slot = slot_;
  header.sequence = static_cast<__u32>(ticket);
  header.window = names_.window;
  header.cookie = names_.cookie;
  header.key = names_.key;
}

std::uint64_t Session::before_again_ns(unsigned tries) const noexcept {
  if (way_ == Delivery::lossy) return retransmit_.before_again_ns(tries);
  return state_ == State::greeting ? RetransmitTimer::most_ns : timeout_ns_;
}

bool Session::is_unanswered(std::uint32_t sequence) const noexcept {
  const Exchange& exchange = exchanges_[sequence % exchanges];
  return (waiting_ & bit_of(exchange.ticket)) != 0 &&
         static_cast<std::uint32_t>(exchange.ticket) == sequence;
}

void Session::greet_again(std::uint64_t now_ns) noexcept {
  WirePacket hello;
  fill_header(&hello, WIRE_HELLO, 0, 0);
  seal(&hello);
  greeting_sent_ns_ = now_ns;
  next_ns_ = now_ns + before_again_ns(greetings_++);
  outlet_.send(hello);
}

void Session::greet(std::uint64_t now_ns) noexcept {
  state_ = State::greeting;
  greeted_ns_ = now_ns;
  greet_again(now_ns);
}

void Session::leave() noexcept {
  if (state_ == State::open) {
    WirePacket bye;
    fill_header(&bye, WIRE_BYE, 0, 0);
    seal(&bye);
    outlet_.send(bye);
  }
  lose(Code::closed);
}

Code Session::submit(const haul_atomic_operation* operations, std::size_t count, std::uint64_t tag,
                     std::uint64_t now_ns, std::uint64_t* ticket) noexcept {
  if (state_ != State::open) return reason_;
  const std::uint64_t used = waiting_ | answered_;
  if (__builtin_popcountll(used) >= HAUL_ATOMIC_MAX_OUTSTANDING) return Code::again;
  // The exchange that had this place before has been collected, so it was answered, and the
  // responder's copy of its results may go. A place in use is skipped, which sequences allow: one
  // old exchange must not stop the others.
  std::uint64_t mine = last_ticket_ + 1;
  while ((used & bit_of(mine)) != 0) ++mine;
  Exchange& exchange = exchanges_[mine % exchanges];
  fill_header(&exchange.packet, WIRE_REQUEST, static_cast<unsigned>(count), mine);
  for (std::size_t i = 0; i < count; ++i) exchange.packet.operations[i] = to_wire(operations[i]);
  seal(&exchange.packet);
  exchange.ticket = mine;
  exchange.tag = tag;
  exchange.first_ns = exchange.sent_ns = now_ns;
  exchange.tries = 0;
  exchange.status = Code::ok;
  last_ticket_ = mine;
  waiting_ |= bit_of(mine);
  next_ns_ = std::min(next_ns_, now_ns + std::min(before_again_ns(0), timeout_ns_));
  outlet_.send(exchange.packet);
  *ticket = mine;
  return Code::ok;
}

void Session::answered(Exchange& exchange, unsigned repetition, std::uint64_t now_ns) noexcept {
  waiting_ &= ~bit_of(exchange.ticket);
  answered_ |= bit_of(exchange.ticket);
  // A round trip is measured from the repetition that was answered, never from an earlier one:
  // otherwise the time waited before repeating would make the next wait longer, and so on.
  const std::uint64_t asked_ns = repetition == 0 ? exchange.first_ns : exchange.sent_ns;
  if ((repetition == 0 || repetition == exchange.tries) && now_ns > asked_ns) {
    retransmit_.measured(now_ns - asked_ns);
  }
}

void Session::refused(Exchange& exchange, unsigned status, unsigned repetition,
                      std::uint64_t now_ns) noexcept {
  exchange.status = code_of(status, false);
  answered(exchange, repetition, now_ns);
  // A session that the responder does not know stays unknown.
  if (exchange.status == Code::peer_gone) lose(Code::peer_gone);
}

void Session::heard_greeting(const WirePacket& packet, std::uint64_t now_ns) noexcept {
  if (state_ != State::greeting) return;
  const Code code = code_of(packet.header.status, true);
  if (code != Code::ok) {
    lose(code);
    return;
  }
  slot_ = packet.header.slot;
  state_ = State::open;
  next_ns_ = never;
  if (greetings_ == 1 && now_ns > greeting_sent_ns_)
    retransmit_.measured(now_ns - greeting_sent_ns_);
}

void Session::heard(const WirePacket& packet, std::uint64_t now_ns) noexcept {
  const wire_header& header = packet.header;
  if (header.session != names_.id) return;
  if (header.kind == (WIRE_HELLO | WIRE_REPLY)) {
    heard_greeting(packet, now_ns);
    return;
  }
  if (header.kind != (WIRE_REQUEST | WIRE_REPLY)) return;
  if (!is_unanswered(header.sequence)) return;  // late: answered already
  Exchange& exchange = exchanges_[header.sequence % exchanges];
  const unsigned repetition = header.cookie >> 16;
  if (header.status != WIRE_OK) {
    refused(exchange, header.status, repetition, now_ns);
    return;
  }
  if (header.count != exchange.packet.header.count) return;
  std::memcpy(exchange.packet.operations, packet.operations, header.count * sizeof(wire_operation));
  answered(exchange, repetition, now_ns);
}

void Session::look(completion_slot& slot, std::uint64_t now_ns) noexcept {
  for (std::uint64_t left = waiting_; left != 0; left &= left - 1) {
    const unsigned place = static_cast<unsigned>(__builtin_ctzll(left));
    Exchange& exchange = exchanges_[place];
    const completion_entry& entry = slot.entries[place];
    // Acquire: pairs with the program's swap.
    const std::uint64_t state = __atomic_load_n(&entry.state, __ATOMIC_ACQUIRE);
    if (state != completion_state(static_cast<std::uint32_t>(exchange.ticket), COMPLETION_DONE)) {
      continue;
    }
    if (entry.status != WIRE_OK) {
      refused(exchange, entry.status, entry.repetition, now_ns);
      if (state_ == State::lost) return;
      continue;
    }
    for (unsigned i = 0; i < exchange.packet.header.count; ++i) {
      exchange.packet.operations[i].operand = entry.old[i];
      exchange.packet.operations[i].result = entry.result[i];
    }
    answered(exchange, entry.repetition, now_ns);
  }
}

void Session::tick(std::uint64_t now_ns) noexcept {
  if (now_ns < next_ns_) return;
  next_ns_ = never;
  if (state_ == State::greeting) {
    if (now_ns - greeted_ns_ >= timeout_ns_) {
      lose(Code::timed_out);
    } else {
      greet_again(now_ns);
    }
    return;
  }
  for (std::uint64_t left = waiting_; left != 0; left &= left - 1) {
    Exchange& exchange = exchanges_[__builtin_ctzll(left)];
    if (now_ns - exchange.first_ns >= timeout_ns_) {
      exchange.status = Code::timed_out;
      waiting_ &= ~bit_of(exchange.ticket);
      answered_ |= bit_of(exchange.ticket);
      continue;
    }
    if (now_ns - exchange.sent_ns >= before_again_ns(exchange.tries)) {
      ++exchange.tries;
      ++repeated_;
      exchange.sent_ns = now_ns;
      // The answer says which of them it answers.
      exchange.packet.header.cookie = names_.cookie | exchange.tries << 16;
      seal(&exchange.packet);
      outlet_.send(exchange.packet);
    }
    next_ns_ = std::min({next_ns_, exchange.sent_ns + before_again_ns(exchange.tries),
                         exchange.first_ns + timeout_ns_});
  }
}

Session::Found Session::find(std::uint64_t ticket) const noexcept {
  const std::uint64_t bit = bit_of(ticket);
  if (exchanges_[ticket % exchanges].ticket != ticket || ((waiting_ | answered_) & bit) == 0) {
    return Found::unknown;
  }
  return (answered_ & bit) != 0 ? Found::answered : Found::unanswered;
}

Code Session::collect(std::uint64_t ticket, haul_atomic_operation* operations,
                      std::size_t count) noexcept {
  Exchange& exchange = exchanges_[ticket % exchanges];
  answered_ &= ~bit_of(ticket);
  count = std::min<std::size_t>(operations == nullptr ? 0 : count, exchange.packet.header.count);
  for (std::size_t i = 0; i < count; ++i) {
    take_answer(exchange.packet.operations[i], exchange.status, &operations[i]);
  }
  return exchange.status;
}

bool Session::collect_any(haul_atomic_completion* completion) noexcept {
  if (answered_ == 0) return false;
  const Exchange& exchange = exchanges_[__builtin_ctzll(answered_)];
  haul_atomic_operation operations[HAUL_ATOMIC_MAX_BATCH];
  completion->tag = exchange.tag;
  completion->ticket = exchange.ticket;
  completion->count = exchange.packet.header.count;
  completion->status =
      static_cast<std::int32_t>(collect(exchange.ticket, operations, HAUL_ATOMIC_MAX_BATCH));
  for (unsigned i = 0; i < completion->count; ++i) {
    completion->old[i] = operations[i].old;
    completion->statuses[i] = operations[i].status;
  }
  return true;
}

void Session::lose(Code reason) noexcept {
  if (state_ == State::lost) return;
  state_ = State::lost;
  reason_ = reason;
  next_ns_ = never;
  for (std::uint64_t left = waiting_; left != 0; left &= left - 1) {
    exchanges_[__builtin_ctzll(left)].status = reason;
  }
  answered_ |= waiting_;
  waiting_ = 0;
}

}  // namespace haul::atomics
