// One member of a lock: the queue lock of paper 002 (IV), made to survive members that die or are
// paused (docs/design/atomic-locks.md). A state machine without system calls: packets go out and
// answers come back through Courier, time is an argument, so that tests can interleave members at
// will.
//
// What makes it safe is one word, the home's `state`: a member holds the lock as long as `state` is
// what that member has made it, and an operation that would change it misses, or changes nothing,
// once somebody else has. The queue only decides who is next, and may break: every wait ends by a
// look at `state`.
//
// To acquire, a member swaps its node into the home's `tail`; if there was none before, the same
// packet sets `held`, and that is all. Else it links its node to the one before, in that member's
// window, and polls its own memory. To release, the holder clears `tail` and `state` in one packet
// if nobody is linked behind it; else it writes the grant, with the `state` that it holds, into its
// successor's window, and the successor makes `state` its own by compare&swap. A member that gives
// up leaves its node marked (abandoned), and a holder that would grant it the lock passes it over.
// A waiter reads `state` now and then: if that has not changed for a lease, it takes the holder for
// dead and the lock over, by another epoch, so that the old holder's fencing token is refused from
// then on.
#pragma once

#include <haul/atomic.h>

#include <cstdint>

#include "atomic/lock/words.hpp"
#include "base/error.hpp"

namespace haul::atomics::lock {

// The other places, as a member reaches them. One packet at a time.
class Courier {
 public:
  static constexpr int home = -1;  // or the rank of a member
  // Sends operations whose addresses are offsets (words.hpp).
  virtual void send(int place, const haul_atomic_operation* operations,
                    unsigned count) noexcept = 0;
  // False: unanswered. ok: `operations` (as sent) have their old values and statuses; else the
  // packet failed, and was executed once or not at all.
  virtual bool answered(haul_atomic_operation* operations, unsigned count, Code* code) noexcept = 0;
  // Has the packet that is out left, so that it may have been executed?
  virtual bool has_left() const noexcept = 0;
  // Stops waiting for it.
  virtual void give_up() noexcept = 0;
  // The words found there are not that member's; the next packet goes to the member's present
  // place. False: its place cannot have changed.
  virtual bool doubt(int place) noexcept = 0;
  // The time, read now: after any answer that was heard.
  virtual std::uint64_t clock_ns() const noexcept = 0;

 protected:
  ~Courier() = default;
};

struct MemberFacts {
  unsigned rank = 0, count = 1;
  std::uint64_t lease_ns = 1'000'000'000;
  std::uint64_t first_tag = 1;  // random: a member that was restarted is not taken for itself
};

class Member {
 public:
  // `words` are its own three (QueueNode), in its window.
  Member(Courier& courier, const MemberFacts& facts, std::uint64_t* words) noexcept;

  enum class Goal : std::uint8_t { none, acquire, try_once, release, renew };
  // Begins; ok, or invalid if it does not fit (acquire while holding, release while not, or
  // something unfinished). until_ns: acquire gives up then.
  Code begin(Goal goal, std::uint64_t now_ns, std::uint64_t until_ns) noexcept;
  // Goes on as far as possible. True once the goal has ended; result() tells how.
  bool step(std::uint64_t now_ns) noexcept;
  // An acquire that is under way gives up as soon as it can.
  void hurry(std::uint64_t now_ns) noexcept { until_ns_ = now_ns < until_ns_ ? now_ns : until_ns_; }
  // acquire, try_once: ok, timed_out, again (try_once: it is held). release, renew: ok, or stale
  // (another has taken it over meanwhile). Any: how the home failed.
  Code result() const noexcept { return result_; }

  bool holds() const noexcept { return holds_; }
  std::uint64_t token() const noexcept { return token_; }
  // Until then nobody else can hold the lock, whatever happens to this member.
  std::uint64_t safe_until_ns() const noexcept { return safe_until_ns_; }

  struct Counts {
    std::uint64_t acquired = 0, handed = 0, taken_over = 0, requeued = 0, forced = 0, skipped = 0;
  };
  const Counts& counts() const noexcept { return counts_; }

 private:
  // What is being done: each step names the packet that is out, or what the member waits for.
  enum class Step : std::uint8_t {
    none,
    peek,          // at home: is the lock free?
    enqueue,       // at home: into the queue, and the lock if that was empty
    link,          // at the predecessor: its `next` is this node
    wait,          // own word
    observe,       // at home, while waiting: does the lock move?
    head,          // waits for the lock itself: there is nobody to be granted it by
    head_try,      // at home: takes it, if it is free
    confirm,       // at home: the grant becomes the lock
    verify,        // at home: is it still ours, as the answer was so late?
    take_over,     // at home: its holder's lease is over
    undo,          // at home: out of the queue, if last
    undo_next,     // own word: another member is about to link itself
    notice,        // at a successor: nobody is in front of it
    release_home,  // at home: out of the queue and released, if last
    release_next,  // own word: another member is about to link itself
    grant,         // at the successor
    skip,          // at a successor that has given up
    skip_home,     // at home: that one was the last
    skip_tell,     // at it: it is in no queue any more
    force,         // at home: released, whoever waits
    renew
  };

  // What follows when a successor has been told to queue again.
  enum class Then : std::uint8_t { enqueue, end };

  std::uint64_t own(std::uint64_t word) const noexcept;
  void put_own(std::uint64_t word, std::uint64_t value) noexcept;
  bool swap_own(std::uint64_t word, std::uint64_t from, std::uint64_t to) noexcept;
  std::uint64_t close_next(std::uint64_t tag) noexcept;
  void add(haul_atomic_code code, std::uint64_t word, std::uint64_t operand = 0) noexcept;
  void add_cas(std::uint64_t word, std::uint64_t from, std::uint64_t to,
               bool link = false) noexcept;
  void send(int place, Step step, std::uint64_t now_ns) noexcept;
  void send_again(std::uint64_t now_ns) noexcept;
  bool may_be_sent_twice() const noexcept;
  bool is_worth_another(Code code) noexcept;
  bool is_elsewhere() const noexcept;
  bool is_overdue(std::uint64_t now_ns) const noexcept;
  std::uint64_t old(unsigned operation) const noexcept { return operations_[operation].old; }
  bool swapped(unsigned operation) const noexcept {
    return old(operation) == operations_[operation].compare;
  }
  std::uint64_t node() const noexcept { return reference(tag_, facts_.rank); }

  void finish(Code result) noexcept;
  void hold(std::uint64_t state) noexcept;
  void have_it(std::uint64_t now_ns) noexcept;
  void lose(std::uint64_t found) noexcept;
  void renew(std::uint64_t now_ns) noexcept;
  void heard_renew(std::uint64_t now_ns) noexcept;
  bool is_own_renewal(std::uint64_t found) noexcept;
  void go_on(std::uint64_t now_ns) noexcept;
  void heard(std::uint64_t now_ns) noexcept;
  void failed(Code code, std::uint64_t now_ns) noexcept;

  // Waiting (member_wait.cpp).
  void start(std::uint64_t now_ns) noexcept;
  void enqueue(std::uint64_t now_ns) noexcept;
  void go_on_waiting(std::uint64_t now_ns) noexcept;
  void give_up(std::uint64_t now_ns) noexcept;
  void begin_anew(std::uint64_t now_ns) noexcept;
  void tell_to_begin_anew(std::uint64_t next, Then then, std::uint64_t now_ns) noexcept;
  void after_notice(std::uint64_t now_ns) noexcept;
  void look_at(std::uint64_t state, std::uint64_t now_ns) noexcept;
  void take_over(std::uint64_t now_ns) noexcept;
  void heard_peek(std::uint64_t now_ns) noexcept;
  void heard_enqueue(std::uint64_t now_ns) noexcept;
  void heard_lock(std::uint64_t now_ns) noexcept;
  void heard_undo(std::uint64_t now_ns) noexcept;

  // Releasing (member_release.cpp).
  void release(std::uint64_t now_ns) noexcept;
  void grant_to(std::uint64_t successor, std::uint64_t now_ns) noexcept;
  void force(std::uint64_t now_ns) noexcept;
  void heard_release(std::uint64_t now_ns) noexcept;
  void heard_grant(std::uint64_t now_ns) noexcept;
  void heard_skip(std::uint64_t now_ns) noexcept;

  Courier& courier_;
  const MemberFacts facts_;
  std::uint64_t* const words_;
  std::uint64_t tag_;           // of the present node
  bool may_come_back_ = false;  // that one was abandoned in the queue

  Goal goal_ = Goal::none;
  Step step_ = Step::none;
  Code result_ = Code::ok;
  bool holds_ = false;
  std::uint64_t state_ = 0;       // as this member made it, while it holds
  bool renewal_unknown_ = false;  // ... or renewed(state_): an answer was lost
  std::uint64_t token_ = 0;
  std::uint64_t until_ns_ = 0, safe_until_ns_ = 0;
  std::uint64_t sent_ns_ = 0;        // the packet that is out, or was last
  std::uint64_t step_since_ns_ = 0;  // waiting for a neighbour's link
  unsigned tries_ = 0;
  // The lock as it was last seen, since when; and how often it was seen free.
  std::uint64_t seen_ = 0, seen_since_ns_ = 0;
  unsigned seen_free_ = 0;
  std::uint64_t epoch_ = 0, holders_ = 0;  // when this node went into the queue
  std::uint64_t successor_ = 0, behind_successor_ = 0;
  Then then_ = Then::end;
  Counts counts_;

  haul_atomic_operation operations_[3];
  unsigned sent_ = 0;  // operations of the packet that is out
  int to_ = Courier::home;
  bool again_ = false;  // it is out for the second time
  bool anew_ = false;   // this goal has queued again, because the home did not know us any more
};

}  // namespace haul::atomics::lock
