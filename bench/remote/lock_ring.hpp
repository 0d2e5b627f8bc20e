// Nodes that contend for one lock: members and its home, each in a namespace of its own, joined by
// a switch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/remote/hosts/atomic_calls.hpp"
#include "bench/remote/hosts/atomic_stage.hpp"

namespace haul::bench {

// A home has one interface, and members reach each other past it, as in the paper's clusters: so
// there is a bridge in a namespace of its own, not a cable from each member to the home.
class LockRing {
 public:
  LockRing(unsigned members, Cores cores);
  ~LockRing();
  LockRing(const LockRing&) = delete;
  LockRing& operator=(const LockRing&) = delete;

  void place(PacketSteering placement);
  // Who serves the members' own words ("xdp-skb" or "block"). Locks must be closed.
  void open_members(const std::string& responder);
  // Who serves the home, and a lock there that all members have joined.
  void open_lock(const ResponderChoice& responder);
  void close_lock();

  struct Times {
    Samples cycles_us;  // from asking for the lock until it is released, of all members
    double rate_per_s = 0;
    double handed_share = 0;  // of the acquisitions: granted by the holder before
  };
  // That many members acquire and release it without a pause, driven by the calling thread.
  // Throws Failure if two held it at once (looked for in some cycles before those that are timed,
  // which keep it for a while), or if tokens did not grow.
  Times contend(unsigned contenders, const Limit& limit);

 private:
  enum class Doing { nothing, acquiring, holding, releasing };
  struct Member;
  struct Turns;
  void start(Member& member, Doing doing, haul_atomic_lock_action action);
  void go_on(Member& member, Turns& turns);
  void run(unsigned contenders, const Limit& limit, Turns& turns);
  std::string address_of(unsigned host) const;
  haul_atomic_lock_counts counts() const;

  Cores cores_;
  Namespace switch_, home_;
  std::vector<std::unique_ptr<Member>> members_;
  Node home_node_;
  Window home_window_;
};

}  // namespace haul::bench
