// One client's session at a responder: sequence numbers, what is unanswered, repetition, answers
// not yet collected.
//
// greet() asks the responder for a slot (WIRE_HELLO) and says the number of the session, random and
// the client's own; the answer brings the slot, and the session is open. Each packet then has the
// next sequence number and occupies the exchange of sequence % 64 until its answer is collected, so
// at most 63 are out, and the responder, which keeps the results of 64, still knows each that may
// be repeated. A packet without an answer is sent again, the same but for the count of its
// repetitions, after a time that RetransmitTimer measures and doubles; an answer says which
// repetition it answers, so round trips are measured of one packet and its own answer. The
// responder executes whichever copy comes first and answers all others from its memory
// (wire/serve.h): that is exactly once. What is unanswered for timeout_ns fails, and nobody knows
// whether it was executed. A responder that does not know the session (restarted, or silent clients
// forgotten) loses it for good: all fails with peer_gone.
//
// Pure: time comes in as an argument, packets go out through Outlet, so that tests can lose, repeat
// and reorder them.
#pragma once

#include <haul/atomic.h>

#include <cstdint>

#include "atomic/client/retransmit_timer.hpp"
#include "atomic/wire/completion.h"
#include "atomic/wire/wire_packet.hpp"
#include "base/error.hpp"

namespace haul::atomics {

class Outlet {
 public:
  // Sends it, or loses it.
  virtual void send(const WirePacket& packet) noexcept = 0;

 protected:
  ~Outlet() = default;
};

// Not thread-safe.
class Session {
 public:
  // What it says in each packet.
  struct Names {
    std::uint64_t id = 0;  // random, not 0
    std::uint32_t window = 0;
    std::uint64_t key = 0;
    std::uint32_t cookie = 0;  // below 2^16
  };
  enum class State : std::uint8_t { closed, greeting, open, lost };
  // `sure`: every packet is answered, or its peer is gone, so only greetings, of which any number
  // may be answered, are sent again.
  enum class Delivery : std::uint8_t { lossy, sure };

  Session(Outlet& outlet, const Names& names, std::uint64_t timeout_ns,
          Delivery way = Delivery::lossy) noexcept
      : outlet_(outlet), names_(names), timeout_ns_(timeout_ns), way_(way) {}

  State state() const noexcept { return state_; }
  // Why it is lost.
  Code reason() const noexcept { return reason_; }

  // Asks for a session; state() tells when there is one.
  void greet(std::uint64_t now_ns) noexcept;
  // Ends it: says good-bye if it is open, once, unheard.
  void leave() noexcept;

  // Sends a packet of 1 to 16 operations. ok and *ticket, again (63 are not collected), or why the
  // session is lost.
  Code submit(const haul_atomic_operation* operations, std::size_t count, std::uint64_t tag,
              std::uint64_t now_ns, std::uint64_t* ticket) noexcept;

  // An answer that came as a packet, intact.
  void heard(const WirePacket& packet, std::uint64_t now_ns) noexcept;
  // Looks for answers in the completion map.
  void look(completion_slot& slot, std::uint64_t now_ns) noexcept;
  // Repeats what is due, gives up what is too old. When it is next to be called: next_ns().
  void tick(std::uint64_t now_ns) noexcept;
  std::uint64_t next_ns() const noexcept { return next_ns_; }
  bool anything_unanswered() const noexcept { return waiting_ != 0; }
  // Whether it awaits the answer to operations or to its greeting.
  bool awaits_answer() const noexcept { return waiting_ != 0 || state_ == State::greeting; }
  // Has the packet of this sequence neither been answered nor given up?
  bool is_unanswered(std::uint32_t sequence) const noexcept;

  // A collected answer: the ticket is spent.
  enum class Found : std::uint8_t { unknown, unanswered, answered };
  Found find(std::uint64_t ticket) const noexcept;
  // Of an answered ticket: its old values and statuses into `operations` (may be nullptr); how the
  // packet as a whole went.
  Code collect(std::uint64_t ticket, haul_atomic_operation* operations, std::size_t count) noexcept;
  // Any answered one. False: there is none.
  bool collect_any(haul_atomic_completion* completion) noexcept;

  // Ends it: what is unanswered fails.
  void lose(Code reason) noexcept;

  std::uint64_t repeated() const noexcept { return repeated_; }
  std::uint64_t round_trip_ns() const noexcept { return retransmit_.round_trip_ns(); }

 private:
  struct Exchange {
    WirePacket packet;  // its answer, once there is one
    std::uint64_t ticket = 0, tag = 0;
    std::uint64_t first_ns = 0, sent_ns = 0;
    unsigned tries = 0;
    Code status = Code::ok;
  };
  static constexpr unsigned exchanges = WIRE_RESULTS;
  static std::uint64_t bit_of(std::uint64_t ticket) noexcept { return 1ull << ticket % exchanges; }

  void fill_header(WirePacket* packet, wire_kind kind, unsigned count,
                   std::uint64_t ticket) const noexcept;
  std::uint64_t before_again_ns(unsigned tries) const noexcept;
  void answered(Exchange& exchange, unsigned repetition, std::uint64_t now_ns) noexcept;
  void refused(Exchange& exchange, unsigned status, unsigned repetition,
               std::uint64_t now_ns) noexcept;
  void heard_greeting(const WirePacket& packet, std::uint64_t now_ns) noexcept;
  void greet_again(std::uint64_t now_ns) noexcept;

  Outlet& outlet_;
  const Names names_;
  const std::uint64_t timeout_ns_;
  const Delivery way_;
  State state_ = State::closed;
  Code reason_ = Code::closed;
  std::uint32_t slot_ = 0;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t waiting_ = 0, answered_ = 0;  // bits of exchanges
  std::uint64_t next_ns_ = ~std::uint64_t{0};
  std::uint64_t greeted_ns_ = 0, greeting_sent_ns_ = 0;
  unsigned greetings_ = 0;
  std::uint64_t repeated_ = 0;
  RetransmitTimer retransmit_;
  Exchange exchanges_[exchanges];
};

}  // namespace haul::atomics
