// The sockets of one endpoint: the one that peers connect to, and one or two to each peer. A
// side that wants to send makes a segment and hands it over in an Introduction, by a connection
// that is there already or a new one. The receiving side never answers: it maps the segment and
// reads what already lies there. So each direction opens on its own, and two processes that begin
// at the same time have nothing to agree on; they may end up with two connections, of which each is
// used for what came by it.
//
// A connection stays while both endpoints live. Its end without a good-bye, or the end of the
// peer's process (a pidfd tells: children of the peer may hold its sockets open), is the peer's
// death. A socket that the endpoint was told of is closed by it alone (forget()), since it rings
// bells there without the lock.
//
// Threads: everything is under the control thread's lock; ready(), tick() and forked() are called
// by it, the rest by the endpoint's thread, or another that arms.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/os/descriptor.hpp"
#include "fabric/protocol/transport_contract.hpp"
#include "fabric/transport/control/control.hpp"
#include "fabric/transport/local/introduction.hpp"
#include "fabric/transport/local/peer_memory.hpp"
#include "fabric/transport/local/segment.hpp"
#include "fabric/transport/report.hpp"

namespace haul::fabric {

// What the endpoint's thread is told.
struct Arrival {
  NetworkEvent::What what = NetworkEvent::What::opened;
  Address address{};
  std::uint64_t connection = 0;              // its name; 0: of a connect() that made none
  os::Descriptor socket{};                   // connected: where to ring
  std::unique_ptr<SharedSegment> segment{};  // opened, connected
  std::shared_ptr<PeerMemory> reach{};       // opened
  int error = 0;                             // refused
};

class PeerSockets : public control::Subscriber {
 public:
  // `news` is set when something has arrived.
  explicit PeerSockets(std::atomic<std::uint32_t>& news) noexcept : news_(news) {}
  virtual ~PeerSockets();
  PeerSockets(const PeerSockets&) = delete;
  PeerSockets& operator=(const PeerSockets&) = delete;

  // Listens under `address`.
  Expected<bool> listen(const Address& address) noexcept;

  // Sends `segment` to the peer, now or as soon as it takes connections: `connected` or `refused`
  // arrives. `arena` is this process's at the moment.
  void connect(const Address& peer, std::unique_ptr<SharedSegment> segment,
               const OwnArena& arena) noexcept;
  // `refused` arrives: there is nothing to share.
  void refuse(const Address& peer, int error) noexcept;
  // Tells the peer of an arena that was made after the Introduction.
  void tell_arena(const Address& peer, const OwnArena& arena) noexcept;
  // The next arrival; false if there is none.
  bool next(Arrival& arrival) noexcept;
  // Ends the connections with these names, and a connect() that is under way, in good order, and
  // forgets their arrivals. (Connections that the peer has begun since stay.)
  void forget(const Address& peer, std::vector<std::uint64_t> names) noexcept;
  // The same with all, and with listening.
  void close() noexcept;

  // From now on `bell` (an event; or none) is rung at news and when a peer rings; with by_time also
  // every millisecond.
  void arm(const os::Descriptor& bell, bool by_time) noexcept;
  void disarm() noexcept { bell_ = os::Descriptor(); }
  void ring() const noexcept;

  void publish(const Statistics* statistics, const Observation* observation) noexcept {
    statistics_ = statistics;
    observation_ = observation;
  }
  void report(MonitorReply* reply) const noexcept;
  // This process is a child of the one that opened it: everything is lost.
  bool orphaned() const noexcept { return orphaned_; }

  void ready(std::uint64_t watch) noexcept override;
  int tick() noexcept override;
  void forked() noexcept override;

 private:
  struct Connection {
    os::Descriptor socket;
    os::Descriptor process;  // pidfd
    std::uint64_t socket_watch = 0, process_watch = 0;
    bool known = false;     // `address` is set
    bool told = false;      // the endpoint knows it: only it closes the socket
    bool over = false;      // it has ended
    bool end_said = false;  // the peer has said good-bye
    Address address;
    pid_t pid = 0;
    std::shared_ptr<PeerMemory> reach;  // after its Introduction
  };
  // A connect() that found the peer's queue full.
  struct Waiting {
    Address peer;
    std::unique_ptr<SharedSegment> segment;
    OwnArena arena;
  };
  struct Received {
    alignas(8) unsigned char bytes[packet_bytes];
    std::size_t length = 0;
    int fds[4] = {-1, -1, -1, -1};
    unsigned fd_count = 0;
    SocketWord word() const noexcept;
    template <class T>
    bool read_as(T* out) const noexcept;
  };

  bool try_connect(Waiting& waiting) noexcept;
  int open_socket(const Address& peer, Connection** made) noexcept;
  Connection* connected_to(const Address& peer) noexcept;
  Connection* adopt(const os::Descriptor& socket, std::uint64_t* name) noexcept;
  void watch_process(std::uint64_t name, Connection& connection) noexcept;
  void accept_all() noexcept;
  void accept_without_descriptors() noexcept;
  void read_packets(std::uint64_t name, Connection& connection, unsigned most) noexcept;
  // False: the connection ends.
  bool take(std::uint64_t name, Connection& connection, const Received& packet) noexcept;
  bool on_hello(std::uint64_t name, Connection& connection, const Received& packet) noexcept;
  bool on_arena(Connection& connection, const Received& packet) noexcept;
  void answer_monitor(const Connection& connection) noexcept;
  void end(std::uint64_t name, Connection& connection) noexcept;
  void hear_out(const Address& peer) noexcept;
  void release(Connection& connection, bool say_end) noexcept;
  void arrive(Arrival&& arrival) noexcept;
  std::unordered_map<std::uint64_t, Connection>::iterator erase(
      std::unordered_map<std::uint64_t, Connection>::iterator at, bool say_end) noexcept;

  std::atomic<std::uint32_t>& news_;
  Address own_;
  os::Descriptor listener_;
  std::uint64_t listener_watch_ = 0;
  os::Descriptor spare_;  // to be given up when none is left
  os::Descriptor bell_;
  bool by_time_ = false;
  bool orphaned_ = false;
  unsigned strangers_ = 0;  // accepted, and no Introduction yet
  std::unordered_map<std::uint64_t, Connection>
      connections_;  // by name: that of its socket's watch
  std::unordered_map<std::uint64_t, std::uint64_t> processes_;  // pidfd's watch -> name
  std::vector<Waiting> waiting_;
  std::deque<Arrival> arrivals_;
  const Statistics* statistics_ = nullptr;
  const Observation* observation_ = nullptr;
  std::uint64_t opened_ns_ = 0;
};

}  // namespace haul::fabric
