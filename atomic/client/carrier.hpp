// How a node reaches the windows of others: its connections, each with a session, and the waiting
// for answers. Carrier is the contract of what carries the packets: UDP (udp_carrier.hpp) or a
// fabric (fabric/carrier.hpp). A node holds one and knows only this contract.
//
// Calls take turns by one lock. Under it a call hands its packet to the session, which sends it by
// Outlet, and looks for answers (pump()) on behalf of every connection that waits. So one thread
// may find the answer that another one waits for. A waiter spins for spin_ns, then sleeps without
// the lock (sleep()) until something may have come, but never for long, because another thread may
// have taken what woke it. The same look sends packets again that are due (session.hpp): a packet
// that was lost is repeated only while somebody looks.
#pragma once

#include <haul/atomic.h>
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "atomic/client/session.hpp"
#include "atomic/link/presence.hpp"
#include "base/error.hpp"

namespace haul::atomics {

class Carrier;

// A failure with the sentence "HOST port N REST", for the window with this name.
Error failure_at(const haul_atomic_window_name& name, Code code, const char* rest) noexcept;

// What a haul_atomic_remote is.
class RemoteConnection : public Outlet {
 public:
  virtual ~RemoteConnection() = default;
  RemoteConnection(const RemoteConnection&) = delete;
  RemoteConnection& operator=(const RemoteConnection&) = delete;
  Carrier& carrier() const noexcept { return carrier_; }

 protected:
  RemoteConnection(Carrier& carrier, const Session::Names& names, std::uint64_t timeout_ns,
                   Session::Delivery way) noexcept
      : session_(*this, names, timeout_ns, way), carrier_(carrier), place_(names.cookie) {}
  Session session_;

 private:
  friend class Carrier;
  Carrier& carrier_;
  const unsigned place_;
  bool waits_ = false;  // is among the carrier's waiting ones
};

// Any thread may call; calls take turns.
class Carrier {
 public:
  struct Options {
    unsigned connections = 64;
    std::uint64_t timeout_ns = 5'000'000'000, spin_ns = 50'000;
  };
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  std::uint64_t spin_ns() const noexcept { return options_.spin_ns; }
  // False in a child of fork.
  bool is_here() const noexcept { return presence_.is_here(); }

  Expected<RemoteConnection*> connect(const haul_atomic_window_name& name) noexcept;
  // The same without waiting: look() tells when the connection is open, or lost.
  Expected<RemoteConnection*> begin_connect(const haul_atomic_window_name& name) noexcept;
  Session::State look(RemoteConnection& connection) noexcept;
  // Why a connection is lost.
  Code reason(RemoteConnection& connection) noexcept;
  void disconnect(RemoteConnection* connection) noexcept;

  Code submit(RemoteConnection& connection, const haul_atomic_operation* operations,
              std::size_t count, std::uint64_t tag, std::uint64_t* ticket) noexcept;
  // 1: collected, *status says how it went. 0: unanswered. -1: no such ticket.
  int test(RemoteConnection& connection, std::uint64_t ticket, haul_atomic_operation* operations,
           std::size_t count, Code* status) noexcept;
  int wait(RemoteConnection& connection, std::uint64_t ticket, haul_atomic_operation* operations,
           std::size_t count, Code* status) noexcept;
  std::size_t reap(RemoteConnection& connection, haul_atomic_completion* completions,
                   std::size_t capacity) noexcept;

  // Disconnects all connections; nobody uses the carrier afterwards.
  virtual void end() noexcept = 0;

  // Why a window cannot be reached.
  virtual Error refusal(Code code, const haul_atomic_window_name& name) const noexcept = 0;

  // Packets that were sent again, over all connections so far.
  std::uint64_t repeated() noexcept;

 protected:
  Carrier() noexcept = default;
  ~Carrier() = default;

  class Hold {
   public:
    explicit Hold(Carrier& carrier) noexcept : mutex_(carrier.lock_) {
      pthread_mutex_lock(&mutex_);
    }
    ~Hold() { pthread_mutex_unlock(&mutex_); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    pthread_mutex_t& mutex() noexcept { return mutex_; }

   private:
    pthread_mutex_t& mutex_;
  };

  // Called before everything else. False: no memory.
  bool begin(const Options& options) noexcept;
  // Disconnects all connections.
  void disconnect_all() noexcept;

  // ---- what carries; the lock is held ----
  // A connection that is not greeted yet; names.cookie is its place.
  virtual Expected<RemoteConnection*> make(const haul_atomic_window_name& name,
                                           const Session::Names& names) noexcept = 0;
  // Its session has said good-bye; it is deleted next.
  virtual void parting(RemoteConnection& connection) noexcept = 0;
  // Its session is open. Called more than once.
  virtual void is_open(RemoteConnection& connection) noexcept = 0;
  // Looks for answers, of all connections or of this one, and has their sessions tick.
  virtual void pump(std::uint64_t now_ns) noexcept = 0;
  virtual void pump_one(RemoteConnection& connection, std::uint64_t now_ns) noexcept = 0;
  // ---- the lock is not held ----
  // Sleeps until something may have come for it.
  virtual void sleep(RemoteConnection& connection) noexcept = 0;

  static Session& session_of(RemoteConnection& connection) noexcept { return connection.session_; }
  static const Session& session_of(const RemoteConnection& connection) noexcept {
    return connection.session_;
  }
  static unsigned place_of(const RemoteConnection& connection) noexcept {
    return connection.place_;
  }
  // When a session that awaits an answer is to tick next.
  std::uint64_t next_ns() const noexcept;

  // Calls visit(connection) for each connection whose session awaits an answer, and once more when
  // it does not any more. Of many connections few are waiting.
  template <class Visit>
  void for_each_waiting(const Visit& visit) noexcept {
    for (unsigned i = 0; i < waiting_count_;) {
      RemoteConnection& one = *waiting_[i];
      visit(one);
      if (one.session_.awaits_answer()) {
        ++i;
      } else {
        one.waits_ = false;
        waiting_[i] = waiting_[--waiting_count_];
      }
    }
  }
  // Whether asked(connection) is true for any of these.
  template <class Asked>
  bool any_waiting(const Asked& asked) const noexcept {
    return std::any_of(waiting_.get(), waiting_.get() + waiting_count_,
                       [&](const RemoteConnection* one) { return asked(*one); });
  }

  Options options_;
  std::unique_ptr<RemoteConnection*[]> connections_;
  unsigned used_ = 0;  // places of connections_ below this may be taken

 private:
  void begin_waiting(RemoteConnection& connection) noexcept;

  std::unique_ptr<RemoteConnection*[]> waiting_;  // those that for_each_waiting() visits
  unsigned waiting_count_ = 0;
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  Presence presence_;
  std::uint64_t repeated_before_ = 0;  // by connections that are closed
};

}  // namespace haul::atomics
