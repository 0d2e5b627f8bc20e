// Matchers that talk to each other within one test: real rings, a network without sockets, a direct
// access that can be told what it may do and when it is done. Nothing happens unless the test makes
// an matcher progress, so that a test decides every interleaving.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <sys/mman.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "fabric/protocol/matcher.hpp"
#include "fabric/transport/local/ring.hpp"

namespace haul::fabric::test {

// The tests' sizes lie around it, where they do not choose another.
inline constexpr std::size_t eager_limit = std::size_t{16} << 10;

// What the direct paths do in a test.
struct Reachability {
  bool pull = false, push = false;
  bool claims = true;
  unsigned delay = 0;         // how often test() says "not yet"
  unsigned fail_after = ~0u;  // starts that succeed before all fail
  MessageWays ways = MessageWay::direct, mapped_ways = MessageWay::direct;
  bool arena = false;        // its own memory can be mapped
  bool mapped_only = false;  // it reaches what can be mapped, and nothing else
  bool device = false;       // that takes whole messages out of such memory
  bool device_fails = false;
  bool huge = false;  // its own memory lies on huge pages
};

// Mapped, so that pages which a test does not touch cost nothing.
struct Unmap {
  void operator()(RingSegment* segment) const {
    munmap(static_cast<void*>(segment), segment_bytes);
  }
};
inline RingSegment* map_segment() {
  void* memory = mmap(nullptr, segment_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return static_cast<RingSegment*>(memory);
}

struct Channel {
  std::unique_ptr<RingSegment, Unmap> segment{map_segment()};
  PairCells cells;  // of who sends by this channel, and receives by the other direction's
  std::unique_ptr<RingOutbox> outbox;
  std::unique_ptr<RingInbox> inbox;
};

class World;

class TestNetwork final : public Network, public DirectAccess {
 public:
  TestNetwork(World& world, std::uint64_t number) : world_(world) {
    address.host = 1;
    address.id[0] = number;
  }
  Address address;
  Reachability reach;
  std::deque<NetworkEvent> events;
  std::map<std::uint64_t, Channel> outbound;  // by the peer's number
  unsigned starts = 0, streams = 0, tests = 0, offloads = 0;
  int lent = 0;  // places described and not withdrawn

  void tell(const NetworkEvent& event) {
    events.push_back(event);
    news.store(1);
  }

  void connect(const Address& to) noexcept override;
  bool next(NetworkEvent& event) noexcept override {
    if (events.empty()) {
      news.store(0);
      return false;
    }
    event = events.front();
    events.pop_front();
    return true;
  }
  // As a real one, it takes the memory of what is dropped away.
  void drop(const Address& address_of_peer) noexcept override;
  bool dropped = false;
  void turn() noexcept override {}
  DirectAccess& access() noexcept override { return *this; }

  MessageWays ways(const Peer&, const MemoryPlace& place, std::size_t,
                   bool) const noexcept override {
    if (reach.mapped_only && place.arena == 0) return MessageWay::pieces;
    return reach.pull || reach.push ? reach.ways : MessageWays(MessageWay::pieces);
  }
  MessageWays mapped_ways(const Peer&, std::size_t) const noexcept override {
    return reach.mapped_ways;
  }
  MemoryPlace describe(const Peer&, const iovec* local, std::size_t count,
                       bool* huge_pages) noexcept override {
    MemoryPlace place;
    *huge_pages = reach.huge;
    if (count == 1) {
      place.pieces = 1;
      place.address = reinterpret_cast<std::uintptr_t>(local[0].iov_base);
      place.arena = reach.arena ? 1 : 0;
      ++lent;
    }
    return place;
  }
  bool can_be_mapped(const Peer&, const iovec&) const noexcept override { return reach.arena; }
  void withdraw(const Peer&, const MemoryPlace&) noexcept override { --lent; }
  std::int64_t start(Peer&, Direction direction, const iovec* local, std::size_t count,
                     const MemoryPlace& place, std::uint64_t offset, std::size_t bytes,
                     bool streamed) noexcept override {
    const bool pulls = direction == Direction::pull;
    if (pulls ? !reach.pull : !reach.push) return -FI_EPERM;
    if (starts++ >= reach.fail_after) return -FI_EFAULT;
    streams += streamed;
    auto* far = reinterpret_cast<std::byte*>(place.address) + offset;
    for (std::size_t i = 0; i < count; ++i) {
      if (pulls) std::memcpy(local[i].iov_base, far, local[i].iov_len);
      if (!pulls) std::memcpy(far, local[i].iov_base, local[i].iov_len);
      far += local[i].iov_len;
      bytes -= local[i].iov_len;
    }
    EXPECT_EQ(bytes, 0u);
    waits_ = reach.delay;
    return reach.delay != 0 ? 1 : 0;
  }
  std::int64_t offload(Peer&, const iovec* local, std::size_t count, const MemoryPlace& place,
                       std::size_t bytes) noexcept override {
    if (!reach.device || count != 1 || place.arena == 0) return no_device;
    ++offloads;
    device_copy_ = {*local, reinterpret_cast<const void*>(place.address)};
    EXPECT_EQ(bytes, local->iov_len);
    device_waits_ = reach.delay;
    return device_ticket;
  }
  std::uint64_t left_ns(std::int64_t ticket) noexcept override {
    return ticket == device_ticket ? 1000 * std::uint64_t{device_waits_} : 0;
  }
  int test(std::int64_t ticket) noexcept override {
    ++tests;
    if (ticket == device_ticket) {
      if (device_waits_ != 0 && --device_waits_ != 0) return 0;
      if (reach.device_fails) return -FI_EIO;
      std::memcpy(device_copy_.to.iov_base, device_copy_.from, device_copy_.to.iov_len);
      return 1;
    }
    return waits_ != 0 && --waits_ != 0 ? 0 : 1;
  }
  std::size_t grain(const Peer&, std::size_t) const noexcept override {
    return std::size_t{64} << 10;
  }
  std::atomic<std::uint64_t>* claim(Peer& peer, bool sender, unsigned index) noexcept override;

  // What it is told where it observes.
  struct Noted {
    Path path = Path::inlined;  // of arrivals
    std::size_t bytes = 0;
    std::uint64_t taken_ns = 0;
    const void* at = nullptr;  // of buffers
    bool sent = false;
  };
  std::vector<Noted> arrivals, unmapped;
  void note_large(Path path, std::size_t bytes, std::uint64_t taken_ns) noexcept override {
    arrivals.push_back({.path = path, .bytes = bytes, .taken_ns = taken_ns});
  }
  void note_unmapped(const iovec* pieces, std::size_t, std::size_t bytes,
                     bool sent) noexcept override {
    unmapped.push_back({.bytes = bytes, .at = pieces->iov_base, .sent = sent});
  }

 private:
  // What a device has, which does it all at the end.
  static constexpr std::int64_t device_ticket = 2;
  struct DeviceCopy {
    iovec to{};
    const void* from = nullptr;
  };

  World& world_;
  unsigned waits_ = 0, device_waits_ = 0;
  DeviceCopy device_copy_;
};

// A node: a matcher with what belongs to it. Its one region has key 7 and begins at 0.
class Node final : public Sink, public Regions {
 public:
  Node(World& world, std::uint64_t number, const MatcherLimits& limits)
      : network(world, number),
        matcher(network, *this, *this, limits,
                TagSalt{{0x9e3779b97f4a7c15u * number, 0xd1342543de82ef95u, 0xaf251af3b0f025b5u,
                         0xb564ef22ec7aece5u}}) {}

  TestNetwork network;
  std::vector<CompletionNotice> completions;
  std::vector<std::byte> region = std::vector<std::byte>(std::size_t{600} << 10);
  std::uint64_t rights = FI_REMOTE_READ | FI_REMOTE_WRITE;
  bool full = false;
  Matcher matcher;

  Peer& peer(Node& other) { return *matcher.peer(other.network.address); }

  void complete(const CompletionNotice& completion) noexcept override {
    completions.push_back(completion);
  }
  bool room(Event) noexcept override { return !full; }
  void* resolve(std::uint64_t key, std::uint64_t address, std::uint64_t bytes, std::uint64_t access,
                int* error) noexcept override {
    *error = 0;
    if (key != 7)
      *error = FI_EKEYREJECTED;
    else if ((rights & access) != access)
      *error = FI_EACCES;
    else if (address > region.size() || bytes > region.size() - address)
      *error = FI_EINVAL;
    return *error != 0 ? nullptr : region.data() + address;
  }

  ssize_t send(Node& to, const void* data, std::size_t bytes, std::uint64_t tag, void* context,
               std::uint64_t flags = FI_COMPLETION) {
    const iovec piece{const_cast<void*>(data), bytes};
    SendRequest request;
    request.pieces = &piece;
    request.count = 1;
    request.tagged = true;
    request.tag = tag;
    request.flags = flags;
    request.context = context;
    return matcher.send(peer(to), request);
  }
  ssize_t receive(Node* from, void* data, std::size_t bytes, std::uint64_t tag, void* context,
                  std::uint64_t ignore = 0, std::uint64_t flags = FI_COMPLETION) {
    const iovec piece{data, bytes};
    ReceiveRequest request;
    request.pieces = &piece;
    request.count = 1;
    request.tagged = true;
    request.tag = tag;
    request.ignore = ignore;
    request.flags = flags;
    request.context = context;
    return matcher.receive(from != nullptr ? &peer(*from) : nullptr, request);
  }
  // The completion with this context, taken out; error -1 if there is none.
  CompletionNotice take(void* context) {
    for (std::size_t i = 0; i < completions.size(); ++i) {
      if (completions[i].context != context) continue;
      const CompletionNotice found = completions[i];
      completions.erase(completions.begin() + static_cast<std::ptrdiff_t>(i));
      return found;
    }
    CompletionNotice none;
    none.error = -1;
    return none;
  }
};

class World {
 public:
  explicit World(std::size_t nodes, const MatcherLimits& limits = {},
                 std::size_t eager = eager_limit)
      : eager_bytes(eager) {
    for (std::size_t i = 0; i < nodes; ++i) {
      nodes_.push_back(std::make_unique<Node>(*this, i + 1, limits));
    }
  }
  const std::size_t eager_bytes;
  bool accepts = true;  // the segments that are made
  Node& operator[](std::size_t index) { return *nodes_[index]; }
  Node& of(const Address& address) { return *nodes_[address.id[0] - 1]; }
  // Until nothing moves any more.
  void settle() {
    bool active = true;
    for (int vain = 0; vain < 3; vain = active ? 0 : vain + 1) {
      active = false;
      for (auto& node : nodes_) active |= node->matcher.progress();
    }
  }
  // The process behind a node dies: the others learn of it.
  void kill(std::size_t index) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (i == index) continue;
      NetworkEvent event;
      event.what = NetworkEvent::What::died;
      event.address = nodes_[index]->network.address;
      nodes_[i]->network.tell(event);
    }
  }

 private:
  std::vector<std::unique_ptr<Node>> nodes_;
};

inline void TestNetwork::connect(const Address& to) noexcept {
  Channel& channel = outbound[to.id[0]];
  channel.segment->salt = 0x5a17 * address.id[0];
  channel.segment->accepted = world_.accepts ? 1 : 0;
  HaulPrivateRing ring;
  ring.eager_bytes = world_.eager_bytes;
  ring.part_bytes = std::size_t{2} << 10;
  channel.outbox = std::make_unique<RingOutbox>(
      *channel.segment, [](void*) noexcept {}, nullptr, ring, &channel.cells);
  PairCells& readers = world_.of(to).network.outbound[address.id[0]].cells;
  channel.inbox = std::make_unique<RingInbox>(*channel.segment, &readers);
  NetworkEvent connected;
  connected.what = NetworkEvent::What::connected;
  connected.address = to;
  connected.outbox = channel.outbox.get();
  tell(connected);
  NetworkEvent opened;
  opened.what = NetworkEvent::What::opened;
  opened.address = address;
  opened.inbox = channel.inbox.get();
  world_.of(to).network.tell(opened);
}

inline void TestNetwork::drop(const Address& peer) noexcept {
  dropped = true;
  auto& inbound = world_.of(peer).network.outbound;
  const auto found = inbound.find(address.id[0]);
  if (found != inbound.end()) found->second.inbox.reset();
  const auto own = outbound.find(peer.id[0]);
  if (own != outbound.end()) own->second.outbox.reset();
}

inline std::atomic<std::uint64_t>* TestNetwork::claim(Peer& peer, bool sender,
                                                      unsigned index) noexcept {
  if (!reach.claims) return nullptr;
  const Address& other = Matcher::address_of(peer);
  Channel& channel =
      sender ? outbound[other.id[0]] : world_.of(other).network.outbound[address.id[0]];
  return &channel.segment->claims[index].word;
}

// Bytes that tell where they belong.
inline std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::byte> data(bytes);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (auto& byte : data) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return data;
}

}  // namespace haul::fabric::test
