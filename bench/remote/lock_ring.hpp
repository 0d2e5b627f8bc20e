// Nodes that contend for one lock: its members and its home, each in a namespace of its own, joined
// by a switch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/remote/hosts/atomic_calls.hpp"
#include "bench/remote/hosts/atomic_stage.hpp"

namespace haul::bench {

// The home has one interface, and members reach each other without it, as in the paper's clusters.
// So there is a bridge in a namespace of its own rather than a cable from each member to the home.
class LockRing {
 public:
  LockRing(unsigned members, Cores cores);
  ~LockRing();
  LockRing(const LockRing&) = delete;
  LockRing& operator=(const LockRing&) = delete;

  void place(PacketSteering placement);
  // What serves the members' own words ("xdp-skb" or "block"). Locks must be closed.
  void open_members(const std::string& responder);
  // What serves the home. Makes a lock there, which all members join.
  void open_lock(const ResponderChoice& responder);
  void close_lock();

  struct Times {
    Samples cycles_us;  // from asking for the lock until releasing it, of all members
    double rate_per_s = 0;
    double handed_share = 0;  // acquisitions that the previous holder granted
  };
  // So many members acquire and release the lock without a pause; the calling thread drives them
  // all. Throws CommandFailure if two hold it at once or if fencing tokens do not grow. Untimed
  // cycles before the timed ones look for two holders: in them a member keeps the lock for a while.
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
