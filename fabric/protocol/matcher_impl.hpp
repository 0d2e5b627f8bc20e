// The matcher's inside. Its methods stand in send.cpp, receive.cpp, unexpected.cpp, transfer.cpp,
// rma.cpp, atomic.cpp, peers.cpp and progress.cpp.
#pragma once

#include <unordered_map>
#include <vector>

#include "fabric/protocol/matcher.hpp"
#include "fabric/protocol/operation.hpp"
#include "fabric/protocol/pool.hpp"

namespace haul::fabric {

struct AddressHash {
  std::size_t operator()(const Address& address) const noexcept { return address.hash(); }
};

struct Matcher::Impl {
  Network& network;
  Sink& sink;
  Regions& regions;
  MatcherLimits limits;
  Statistics statistics;

  Pool<Outgoing> outgoing;
  Pool<Incoming> incoming;
  std::vector<std::unique_ptr<Unexpected[]>> unexpected_slabs;
  Unexpected* free_unexpected = nullptr;
  std::size_t kept_bytes = 0;
  std::uint64_t next_order = 0;
  List<Incoming, InPosted> posted_any[2];  // [tagged]
  List<Unexpected, OfAll> unexpected[2];
  List<Outgoing, InMotion> sharing;  // this side moves chunks to a peer
  List<Incoming, InMotion> moving;   // this side moves chunks from a peer
  std::unordered_map<Address, std::unique_ptr<Peer>, AddressHash> peers;
  struct Source {
    Inbox* inbox = nullptr;
    Peer* peer = nullptr;  // nullptr: of many (packets name theirs)
  };
  std::vector<Source> sources;
  Peer* own_peer = nullptr;  // this endpoint as its own peer, once it is; its source is the first
  std::uint32_t turns = 0;
  bool occupied = false;  // in the middle of lists and packets that news might take away
  std::vector<Peer*> busy;

  Impl(Network& n, Sink& s, Regions& r, const MatcherLimits& l) noexcept
      : network(n),
        sink(s),
        regions(r),
        limits(l),
        outgoing(l.operations),
        incoming(l.operations) {}

  // ---- send.cpp ----
  ssize_t send(Peer& peer, const SendRequest& request) noexcept;
  bool send_parts(Peer& peer, Header& header, const Pieces& pieces) noexcept;
  bool send_now(Peer& peer, const SendRequest& request, std::size_t bytes) noexcept;
  // An operation with its memory and ending; nullptr: -FI_EAGAIN.
  Outgoing* new_outgoing(Peer& peer, PacketKind kind, const Pieces& pieces,
                         bool keep_bytes) noexcept;
  void renew(Outgoing& operation, Peer& peer, PacketKind kind, const Pieces& pieces) noexcept;
  // Sends the first packet, now or when there is room.
  void start(Outgoing& operation) noexcept;
  bool first_packet(Outgoing& operation) noexcept;
  bool eager_fits(const Outgoing& operation) const noexcept;
  bool is_better_asked_for(const Peer& peer, const Pieces& pieces) const noexcept;
  void sent(Outgoing& operation) noexcept;
  void describe(Outgoing& operation, Header& header) noexcept;
  bool stream(Peer& peer) noexcept;
  void end(Outgoing& operation, int error) noexcept;
  void tell(const Ending& ending, int error) noexcept;
  void leave(std::shared_ptr<Group> group, int error) noexcept;
  // A packet without payload, in order with others of its kind.
  void send_control(Peer& peer, const Header& header) noexcept;
  void send_share(Outgoing& operation, int error) noexcept;
  void send_finish(Peer& peer, std::uint64_t token, int error) noexcept;
  bool push_out(Peer& peer) noexcept;
  void mark_busy(Peer& peer) noexcept;

  // ---- receive.cpp ----
  ssize_t receive(Peer* source, const ReceiveRequest& request) noexcept;
  ssize_t peek(Peer* source, const ReceiveRequest& request) noexcept;
  ssize_t claim(const ReceiveRequest& request) noexcept;
  int cancel(void* context) noexcept;
  void end_posted(Incoming& posted, int error) noexcept;
  Incoming* match_posted(Peer& peer, bool tagged, std::uint64_t tag) noexcept;
  Unexpected* match_unexpected(Peer* source, bool tagged, std::uint64_t tag,
                               std::uint64_t ignore) noexcept;
  void on_message(Peer& peer, const ReceivedPacket& packet) noexcept;
  void deliver(Incoming& receive, Peer& peer, const ReceivedPacket& packet) noexcept;
  void begin_parts(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_more(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_request(Peer& peer, const ReceivedPacket& packet) noexcept;
  // ---- unexpected.cpp ----
  void keep(Peer& peer, const ReceivedPacket& packet, bool whole) noexcept;
  void take(Incoming& receive, Unexpected& message) noexcept;
  void drop(Unexpected& message) noexcept;
  // The receive that a message of `length` bytes goes to: the posted one, or its part of a
  // multi-receive; nullptr if there is no operation left for that.
  Incoming* assign(Incoming& posted, Peer& peer, std::uint64_t tag, std::uint64_t data,
                   std::uint8_t flags, std::size_t length) noexcept;
  void finish_receive(Incoming& receive, int error) noexcept;
  void tell_received(const Incoming& receive, int error) noexcept;
  void throttle() noexcept;

  // ---- transfer.cpp ----
  // The message's bytes are with the sender: choose how they come.
  void begin(Incoming& receive, const MemoryPlace& place, std::uint8_t flags,
             std::uint16_t detail) noexcept;
  bool copies_directly(Incoming& receive, DirectAccess::Worth worth, std::size_t bytes) noexcept;
  bool lets_sender_copy(Incoming& receive, std::uint16_t detail) noexcept;
  void share(Incoming& receive, std::atomic<std::uint64_t>* claims, const MemoryPlace& own,
             bool huge, unsigned log2) noexcept;
  std::atomic<std::uint64_t>* claims_of(Peer& peer, std::uint16_t detail) noexcept;
  void ask_for_pieces(Incoming& receive) noexcept;
  void on_clear(Peer& peer, const Header& header) noexcept;
  void on_data(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_finish(Peer& peer, const Header& header) noexcept;
  void on_share(Peer& peer, const Header& header) noexcept;
  // One step; true if something happened. May end the operation.
  bool move(Incoming& receive) noexcept;
  bool move(Outgoing& operation) noexcept;
  void finish_transfer(Incoming& receive, int error) noexcept;
  void free_claim(Outgoing& operation) noexcept;

  // Whether a peer makes this side keep more than any honest one would; then it is dropped.
  bool exhausts(Peer& peer) noexcept;
  // ---- rma.cpp ----
  ssize_t rma(Peer& peer, const RmaRequest& request) noexcept;
  Incoming* new_awaited(Peer& peer, const Pieces& pieces, std::size_t length) noexcept;
  void on_write(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_write_request(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_read(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_answer(Peer& peer, const ReceivedPacket& packet) noexcept;
  void tell_remote(Peer& peer, Event event, const Header& header, void* address,
                   std::size_t length) noexcept;

  // ---- atomic.cpp ----
  ssize_t atomic(Peer& peer, const AtomicRequest& request) noexcept;
  void on_atomic(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_result(Peer& peer, const ReceivedPacket& packet) noexcept;

  // ---- peers.cpp ----
  Peer* peer_of(const Address& address) noexcept;
  // Begins to connect if need be. 0, or why nothing can be sent: -FI_E*.
  int reach(Peer& peer) noexcept;
  void take_news() noexcept;
  void hear_out(Peer& peer, int error) noexcept;
  void lose(Peer& peer, int error) noexcept;
  void fail_posted(List<Incoming, InPosted>& posted, int error) noexcept;
  void drop_faulty(Peer& peer) noexcept;
  void garbage(Peer& peer, const char* what) noexcept;

  // ---- progress.cpp ----
  bool progress() noexcept;
  // A peer that broke the rules, or nullptr.
  Peer* serve_own(bool* active) noexcept;
  bool push_out_all() noexcept;
  // A peer that broke the rules, or nullptr.
  Peer* drain(Source& source) noexcept;
  void handle(Peer& peer, const ReceivedPacket& packet) noexcept;
};

}  // namespace haul::fabric
