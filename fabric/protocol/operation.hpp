// What a matcher keeps of a request: Outgoing, whose bytes leave this process (a message, an RMA
// write, the answer to a peer's read), and Incoming, whose bytes are awaited (a posted receive, the
// bytes of a peer's write, of a read, of an atomic's result).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "fabric/protocol/list.hpp"
#include "fabric/protocol/packet.hpp"
#include "fabric/protocol/pieces.hpp"
#include "fabric/protocol/statistics.hpp"
#include "fabric/protocol/trial.hpp"

namespace haul::fabric {

struct Peer;

// What the program is told at the end; nothing where the operation serves a peer's request.
struct Ending {
  bool told = false;    // to the sink, for a counter or an entry
  bool wanted = false;  // an entry
  Event event = Event::send;
  std::uint64_t flags = 0;
  void* context = nullptr;
  std::uint64_t data = 0;
  std::uint64_t tag = 0;

  // Of a request of the program's. `shown`: its flags in the completion.
  template <class Request>
  static Ending of(const Request& request, Event event, std::uint64_t shown) noexcept {
    return {.told = true,
            .wanted = (request.flags & FI_COMPLETION) != 0,
            .event = event,
            .flags = shown,
            .context = request.context};
  }
};

// A request of several packets that are acknowledged one by one (RMA and atomics on several target
// ranges). It ends when the last one does.
struct Group {
  std::size_t remaining = 0;
  int error = 0;
  Ending ending;

  // nullptr for one packet, which needs no group.
  static std::shared_ptr<Group> of(std::size_t packets, const Ending& ending) noexcept {
    return packets > 1 ? std::make_shared<Group>(Group{packets, 0, ending}) : nullptr;
  }
};

// How a transfer that needs no packets goes on. The receiving side claims chunks from the front,
// the sending side from the back, of a word that both share. Where only one side works, it counts
// for itself.
struct ChunkTransfer {
  MemoryPlace place;                             // of the peer's memory
  std::size_t chunk = 0;                         // bytes
  std::uint64_t chunks = 0;                      // of the whole
  std::atomic<std::uint64_t>* claims = nullptr;  // nullptr: not shared
  std::uint64_t next = 0, end = 0;               // not shared: chunks [next, end) are to do
  std::int64_t ticket = 0;                       // of the chunk in flight; 0: none
  std::uint32_t mine = 0;                        // chunks that this side has moved
  bool exhausted = false;                        // nothing left to claim
  bool theirs = false;                           // all chunks are the sender's to move
  bool streamed = false;                         // written past the caches
};

struct InQueue {};   // the queue that an operation waits in: pending or streaming of its peer
struct InMotion {};  // the matcher's transfers

struct Outgoing : Link<InQueue>, Link<InMotion> {
  enum class Stage : std::uint8_t {
    unsent,     // its first packet waits for room
    waiting,    // for the peer's answer
    streaming,  // as pieces
    sharing,    // chunks by claims; then `waiting`
  };
  std::uint64_t token = 0;
  Outgoing* next_free = nullptr;

  Peer* peer = nullptr;
  Stage stage = Stage::unsent;
  PacketKind kind =
      PacketKind::message;  // of the first packet: message, request, write, read, answer, atomic
  bool fence = false;
  bool replied = false;     // ends with the peer's answer, not when its bytes have left
  bool delivered = false;   // a message that ends when the peer's endpoint has it
  bool along = false;       // its first in_parts_bytes left with its request
  bool asked = false;       // a message whose bytes stay here until the peer asks for them
  std::uint64_t flags = 0;  // of the first packet
  std::uint16_t detail = 0;
  std::uint64_t tag = 0, data = 0, address = 0;
  Pieces pieces;
  std::unique_ptr<std::byte[]> bounce;  // the bytes, where the program may reuse its memory
  std::size_t offset = 0;               // streamed
  std::size_t limit = 0;                // how much the receiver wants
  std::uint64_t peer_token = 0;         // of the Incoming there
  unsigned claim = 0;                   // 1 + number, 0: none
  MemoryPlace lent;                     // as described to the peer; no pieces: it was not
  bool lent_huge = false;               // ... and its pages are huge
  ChunkTransfer transfer;
  std::shared_ptr<Group> group;
  Ending ending;

  // What was lent the peer may map.
  bool is_lent_mapped() const noexcept { return lent.arena != 0; }
  void unlink_queue() noexcept { Link<InQueue>::unlink(); }
  void unlink_motion() noexcept { Link<InMotion>::unlink(); }
  void reset() noexcept {
    unlink_queue();
    unlink_motion();
    bounce.reset();
    group.reset();
  }
};

struct InPosted {};  // posted receives: of one peer, or of any

struct Incoming;

// What a plain message and its receive touch of each other: two lines. Among ten thousand posted
// receives nothing else has to be in a cache.
struct Posting : Link<InPosted>, TableEntry {
  enum class Stage : std::uint8_t {
    posted,   // waits for a message
    matched,  // its bytes come
    moving,   // this side moves chunks
    shared,   // has moved its own, if any; waits for the sender's share
  };
  Peer* source = nullptr;   // posted: from whom (nullptr: anyone). Matched: whose it is
  std::uint64_t order = 0;  // posted: receives match in this order
  std::uint64_t tag = 0, ignore = 0;

  std::uint64_t token = 0;
  Incoming* next_free = nullptr;
  void* context = nullptr;
  Stage stage = Stage::posted;
  std::uint8_t filed = 0;  // posted: where the index has it; 0: nowhere
  bool tagged = false;
  bool multi = false;
  bool wanted_entry = false;  // posted: its completion is wanted in the queue
  bool arriving = false;      // something of Arriving may not be as new
  Pieces pieces;              // the first of them in these lines
};

// What only those need that are matched and not over at once, and multi-receives.
struct Arriving {
  std::size_t consumed = 0;      // multi: bytes given out
  std::uint32_t users = 0;       // multi: messages that still arrive in it
  std::int16_t failure = 0;      // multi: what it ends with after them; 0: with the last of them
  bool used_up : 1 = false;      // multi: too little room for another message
  bool reply_due : 1 = false;    // the sender waits for `finish` although it streams
  bool awaited : 1 = false;      // counted in its peer's `awaited`
  bool shared_done : 1 = false;  // the sender has said what its share is
  bool huge : 1 = false;         // the sender's pages are
  bool mappable : 1 = false;     // one side could map the other's memory, however the bytes come
  Path path = Path::ring;        // how the bytes come, since they were asked for
  std::uint64_t parent = 0;      // token of the multi-receive this one belongs to
  std::size_t length = 0;        // of the message
  std::size_t received = 0;
  std::uint64_t sender_token = 0;
  ChunkTransfer transfer;
  Trial* trial = nullptr;      // its peer's, which is told of its end
  std::uint64_t begun_ns = 0;  // when that was decided; 0: nobody wants to know
  std::shared_ptr<Group> group;
  Ending ending;
};

// (An odd number of lines, so that the first ones of many lie in all sets of a cache.)
struct alignas(64) Incoming : Posting, Link<InMotion>, Arriving {
  // What a posted receive says at its end.
  Ending posted_ending(std::uint64_t shown) const noexcept {
    return {.told = true,
            .wanted = wanted_entry,
            .event = Event::receive,
            .flags = shown,
            .context = context};
  }
  // As new, and matched: `bytes` bytes of this peer's go to these pieces.
  void begin(Peer& peer, const Pieces& to, std::size_t bytes) noexcept {
    arriving = true;
    stage = Stage::matched;
    tagged = multi = false;
    source = &peer;
    pieces = to;
    length = bytes;
  }
  // Bytes of the message that there is room for.
  std::size_t wanted() const noexcept { return std::min(length, pieces.bytes); }
  void unlink_posted() noexcept { Link<InPosted>::unlink(); }
  void unlink_motion() noexcept { Link<InMotion>::unlink(); }
  // A peer may name a receive that is only posted: what it finds of Arriving is as new.
  void reset() noexcept {
    unlink_posted();
    if (!std::exchange(arriving, false)) return;
    unlink_motion();
    static_cast<Arriving&>(*this) = Arriving();
  }
};
inline constexpr std::size_t posting_lines_bytes = 128;
static_assert(sizeof(Posting) - (max_pieces - 1) * sizeof(iovec) == posting_lines_bytes);
static_assert(sizeof(Incoming) / 64 % 2 == 1);

// Those from one source, or from any.
struct PostedList : List<Incoming, InPosted> {
  std::uint64_t indexed = 0;  // PostedIndex::covers()
};

struct OfAll {};   // unexpected messages by arrival
struct OfPeer {};  // ... of one peer

// A message that came before its receive. A match touches its first two lines, and the third only
// where there is more than one table, or more bytes than fit.
struct Unexpected;
inline constexpr unsigned kept_tables = 4;
struct KeptMessage {
  std::uint64_t data = 0;
  std::uint64_t length = 0;
  std::uint64_t sender_token = 0;
  bool tagged : 1 = false;
  bool whole : 1 = false;  // eager: the payload is here. Else the bytes are with the sender
  std::uint8_t flags = 0;
  std::uint16_t detail = 0;
  std::uint32_t arrived = 0;              // less than length while parts are to come
  std::byte small[inline_capacity] = {};  // the payload where it is short, or the place
  union {
    Peer* source = nullptr;
    Unexpected* next_free;
  };
  std::uint64_t tag = 0;
};
// Its entries in the tables of KeptIndex.
struct KeptEntries {
  TableEntry entries[kept_tables];
};
struct alignas(64) Unexpected : KeptMessage, Link<OfAll>, Link<OfPeer>, KeptEntries {
  std::unique_ptr<std::byte[]> large;  // the payload where it is long

  bool is_large() const noexcept { return whole && length > sizeof small; }
  const std::byte* payload() const noexcept { return is_large() ? large.get() : small; }
  std::size_t kept_bytes() const noexcept { return whole ? length : 0; }
  // Where the bytes lie that are with the sender.
  MemoryPlace place() const noexcept {
    MemoryPlace place;
    if (!whole) std::memcpy(&place, small, sizeof place);
    return place;
  }
};
inline constexpr std::size_t kept_lines_bytes = 128;
static_assert(sizeof(KeptMessage) + sizeof(Link<OfAll>) + sizeof(Link<OfPeer>) +
                  sizeof(TableEntry) ==
              kept_lines_bytes);

struct Peer {
  enum class State : std::uint8_t { unknown, connecting, connected, lost };
  Address address;
  fi_addr_t name = FI_ADDR_NOTAVAIL;
  State state = State::unknown;
  int error = 0;  // FI_E*, why it is lost
  bool off_node = false;
  Outbox* outbox = nullptr;
  bool throttled = false;         // it wants requests only
  bool told_throttle = false;     // we want requests only
  std::size_t kept_bytes = 0;     // of its unexpected messages
  std::size_t awaited = 0;        // operations that it must answer
  std::uint32_t claims_used = 0;  // bits
  // Of receives whose way is open to choice: what was learned from them, how many are under way,
  // and whether two were at once since there was none.
  std::unique_ptr<Trials> kernel_trials, mapped_trials;
  unsigned tried = 0;
  bool crowded = false;
  // The last message that it was asked about, of private memory, and of such as it could map: it
  // wanted that in pieces.
  bool wants_pieces[2] = {};
  // Of messages to it that might go unasked, but can be copied by a mapping once they are asked
  // for.
  std::unique_ptr<Trials> asking;
  // A message that is coming in parts: bytes to come, and the receive or the unexpected message
  // that they are for (neither: they are dropped).
  std::size_t parts_left = 0;
  std::uint64_t parts_receive = 0;
  bool parts_along = false;  // they came with a request, and are a part of the message
  bool due = false;  // of the message that comes, the next part or piece is likely on its way
  Unexpected* parts_message = nullptr;
  List<Outgoing, InQueue> pending;    // first packets, in order
  List<Outgoing, InQueue> streaming;  // taking turns
  std::vector<Header> control;        // packets without payload that found no room
  PostedList posted[2];               // [tagged]: receives from this peer alone
  List<Unexpected, OfPeer> unexpected[2];
  // FI_E* of what cannot be exchanged with it any more.
  int loss() const noexcept { return error != 0 ? error : FI_ESHUTDOWN; }
  const char* fault = nullptr;  // what rule it broke
  bool busy = false;            // in the matcher's list of those with something to send
};

}  // namespace haul::fabric
