// What the protocol needs of a transport: packets to a peer (Outbox), packets from peers (Inbox),
// bytes moved directly between two address spaces (DirectAccess), and peers that come and go
// (Network). Implementations: transport/local (shared memory), transport/offnode, and the tests'
// own.
//
// Threads: all calls are made under the endpoint's lock, or by the one thread that uses the
// endpoint.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/private.hpp"
#include "fabric/protocol/address.hpp"
#include "fabric/protocol/message_way.hpp"
#include "fabric/protocol/packet.hpp"
#include "fabric/protocol/statistics.hpp"

namespace haul::fabric {

struct Peer;

// Packets to one peer, in order, none lost while the peer lives.
class Outbox {
 public:
  struct Slot {
    Header* header = nullptr;  // to be filled in, but for `ready`; nullptr: no room now
    std::byte* payload = nullptr;
  };
  enum class Lane : std::uint8_t {
    control,  // must not wait behind bulk data
    eager,    // whole messages
    bulk,     // pieces of large ones; refused early, so that the other lanes always find room
  };
  // Room for a packet with `payload_bytes` behind its header (none where it goes inline). At most
  // one slot is out at a time; commit() sends it, and a slot that is not committed is forgotten by
  // the next reserve().
  virtual Slot reserve(std::size_t payload_bytes, Lane lane) noexcept = 0;
  virtual void commit() noexcept = 0;

  // Largest message that should go unasked, and largest payload of a packet.
  std::size_t eager_bytes = 0, packet_bytes = 0;
  bool off_node = false;
  // Whole messages above this leave in parts of it, so that the receiver copies one out while the
  // next is copied in; 0: never.
  std::size_t part_bytes = 0;
  // Payload of a packet that carries a piece of a message that was asked for.
  std::size_t piece_bytes = 0;
  HaulPrivateCopy copies_in = HaulPrivateCopy::strings;  // how payloads are best written
  // Whether reserve() will have room for all parts of a message of this size, one by one.
  virtual bool holds(std::size_t) noexcept { return false; }
  // When a packet has reached the peer's endpoint, so that it is lost only with that endpoint.
  enum class Delivery : std::uint8_t {
    by_answer,  // nobody knows until the peer says so
    not_yet,    // as `at_once`, but the endpoint has not accepted this way to it; it will soon, or
                // is lost
    at_once,    // with commit()
  };
  virtual Delivery delivery() noexcept { return Delivery::by_answer; }
  virtual ~Outbox() = default;
};

class Inbox;

// A packet that has come. The header is a private copy; the payload lies where the peer may still
// write, `payload_bytes` of it can be read (already checked against the packet's bounds).
struct ReceivedPacket {
  Header header;
  const std::byte* payload = nullptr;
  HaulPrivateCopy copies_out = HaulPrivateCopy::strings;  // how the payload is best read
  const Address* from = nullptr;  // inboxes of many peers: the sender; until release()
  const Inbox* inbox = nullptr;   // that can look ahead; nullptr: it cannot
};

class Inbox {
 public:
  // A packet may be there if *ready_word == ready_value: asked before receive(), without a call.
  const std::atomic<std::uint64_t>* ready_word = nullptr;
  std::uint64_t ready_value = 0;
  bool ready() const noexcept { return ready_word->load(std::memory_order_acquire) == ready_value; }

  enum class Got : std::uint8_t { nothing, packet, garbage };
  // The oldest packet that was not released. garbage: the peer broke the rules; it must be dropped.
  virtual Got receive(ReceivedPacket& packet) noexcept = 0;
  // Before the packet that receive() gave last is released: asks for the next one's header; and,
  // later, if that has come, for the first lines of its payload. Changes nothing.
  virtual void ask_ahead() const noexcept {}
  virtual void fetch_ahead() const noexcept {}
  // The packet that receive() gave last is no longer needed.
  virtual void release() noexcept = 0;
  virtual ~Inbox() = default;
};

// Moves bytes between this process and a peer's memory directly, without packets: through a mapping
// of it, or by the kernel (process_vm_readv). A bulk copy is a haul request over extents, so haul's
// plan decides who moves it.
class DirectAccess {
 public:
  // The ways that are open to bytes between here and `place` of this peer: pieces only where it
  // cannot be reached, or where a direct copy is slower whatever the program does.
  virtual MessageWays ways(const Peer& peer, const MemoryPlace& place, std::size_t bytes,
                           bool huge_pages) const noexcept = 0;
  // How this process's memory is described to the peer, which may read it from then on.
  virtual MemoryPlace describe(const Peer& peer, const iovec* local, std::size_t count,
                               bool* huge_pages) noexcept = 0;
  // The end of that, where the place went with a request: the peer has what it needs, or is lost.
  virtual void withdraw(const Peer&, const MemoryPlace&) noexcept {}
  // Whether the peer, once it is described, may reach this memory by a mapping; and the ways that
  // are then open to so many bytes.
  virtual bool can_be_mapped(const Peer&, const iovec&) const noexcept { return false; }
  virtual MessageWays mapped_ways(const Peer&, std::size_t /*bytes*/) const noexcept {
    return MessageWay::direct;
  }
  enum class Direction : std::uint8_t { pull, push };
  // Starts to move `bytes` bytes between local (cut into pieces) and the peer's place + offset.
  // `streamed`: past the caches, where somebody can choose that. Ticket: 0 done already; else for
  // test(). Negative: -FI_E*, nothing was moved.
  virtual std::int64_t start(Peer& peer, Direction direction, const iovec* local, std::size_t count,
                             const MemoryPlace& place, std::uint64_t offset, std::size_t bytes,
                             bool streamed) noexcept = 0;
  // The same for a whole message that is pulled, if a device moves it better than the CPUs of both
  // sides (paper 001, III-A); its beginning is there when this returns. Negative: none does.
  virtual std::int64_t offload(Peer&, const iovec*, std::size_t, const MemoryPlace&,
                               std::size_t /*bytes*/) noexcept {
    return no_device;
  }
  static constexpr std::int64_t no_device = -1;
  // About how long a device needs for it, in ns; 0: it is not a device's, or nobody knows.
  virtual std::uint64_t left_ns(std::int64_t /*ticket*/) noexcept { return 0; }
  // 1: done, 0: not yet, negative -FI_E*. Also of a peer that the network has dropped: that ends
  // within seconds, and nothing honest is written afterwards.
  virtual int test(std::int64_t ticket) noexcept = 0;
  // Bytes that one start() should move, so that others get their turn.
  virtual std::size_t grain(const Peer& peer, std::size_t whole) const noexcept = 0;
  // Claims of a transfer that both sides work on: a word that both processes share, one of
  // claim_count, in the memory of the sender of the request. nullptr: there is none for this peer.
  static constexpr unsigned claim_count = 16;
  virtual std::atomic<std::uint64_t>* claim(Peer& peer, bool sender, unsigned index) noexcept = 0;

  // ---- for a report that somebody has asked for ----
  // Whether to tell of messages from this length on; smaller ones pay nothing for a report.
  bool observed = false;
  static constexpr std::size_t observed_from_bytes = std::size_t{64} << 10;
  bool observes(std::size_t bytes) const noexcept {
    return bytes >= observed_from_bytes && observed;
  }
  // A message has arrived here, taken_ns after it met its receive; or it has left unasked, which is
  // not timed: 0.
  virtual void note_large(Path, std::size_t /*bytes*/, std::uint64_t /*taken_ns*/) noexcept {}
  // The bytes of a message were sent from, or received into, memory that no side mapped.
  virtual void note_unmapped(const iovec* /*pieces*/, std::size_t /*count*/, std::size_t /*bytes*/,
                             bool /*sent*/) noexcept {}
  virtual ~DirectAccess() = default;
};

// What the network tells the protocol.
struct NetworkEvent {
  enum class What : std::uint8_t {
    opened,     // `inbox` brings packets of `address` (ring), or of many peers (offnode; address
                // empty)
    connected,  // `outbox` to `address`, asked for by connect(), can be used
    refused,    // connect() failed for good: `error`
    ended,      // the peer has closed its endpoint: nothing more will come
    died,       // the peer's process is gone, or broke the rules
  };
  What what = What::opened;
  Address address;
  Inbox* inbox = nullptr;
  Outbox* outbox = nullptr;
  int error = 0;  // FI_E*, positive
};

class Network {
 public:
  // Begins to connect to address; `connected` or `refused` follows, at once or later.
  virtual void connect(const Address& address) noexcept = 0;
  // There may be an event: asked before next(), without a call.
  std::atomic<std::uint32_t> news{0};
  virtual bool next(NetworkEvent& event) noexcept = 0;
  // The protocol has no use for this peer any more (garbage, or its address was removed): packets
  // from and to it end. Inboxes and outboxes of it are gone when this returns.
  virtual void drop(const Address& address) noexcept = 0;
  // Does what a transport has to do besides packets (offnode: polls its carrier). Every progress()
  // calls it while `eager_turns` is set, otherwise every 32nd does.
  virtual void turn() noexcept = 0;
  bool eager_turns = false;
  virtual DirectAccess& access() noexcept = 0;
  // The address by which peers reach this endpoint, and it reaches itself; nullptr: it never does.
  virtual const Address* self() const noexcept { return nullptr; }
  virtual ~Network() = default;
};

}  // namespace haul::fabric
