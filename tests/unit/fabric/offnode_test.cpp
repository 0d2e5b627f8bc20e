// The offnode network: two endpoints that talk through a libfabric provider, as if on different
// nodes.
#include "fabric/transport/offnode/network.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/machine/clock.hpp"
#include "base/net/inet.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "fabric/protocol/operation.hpp"
#include "fabric/transport/offnode/carrier/carrier.hpp"
#include "fabric/transport/offnode/wire.hpp"
#include "unit/fabric/offnode_harness.hpp"

using namespace haul;
using namespace haul::fabric;
using namespace haul::fabric::offnode_test;

namespace {

using OffnodeNetworkTest = CarrierTest;

// Packet `number` of a stream: its size and bytes follow from the number.
std::vector<std::byte> payload_of(std::uint64_t number, std::size_t largest) {
  std::mt19937_64 random(number);
  std::size_t bytes = number % 7 == 0 ? 0 : random() % (number % 3 == 0 ? largest + 1 : 200);
  if (number % 50 == 1) bytes = largest;
  std::vector<std::byte> payload(bytes);
  for (std::byte& byte : payload) byte = static_cast<std::byte>(random());
  return payload;
}

bool send(Outbox& outbox, std::uint64_t number) {
  const std::vector<std::byte> payload = payload_of(number, outbox.eager_bytes);
  const auto lane = static_cast<Outbox::Lane>(number % 3);
  const Outbox::Slot slot = outbox.reserve(payload.size(), lane);
  if (slot.header == nullptr) return false;
  *slot.header = Header{};
  slot.header->kind = PacketKind::message;
  slot.header->tag = number;
  slot.header->payload = static_cast<std::uint32_t>(payload.size());
  if (!payload.empty()) std::memcpy(slot.payload, payload.data(), payload.size());
  outbox.commit();
  return true;
}

// Takes what has come; every packet must be the next of its stream.
void receive(Side& side, const Address& from, std::uint64_t& next, std::size_t largest) {
  ReceivedPacket packet;
  while (side.inbox->ready()) {
    ASSERT_EQ(side.inbox->receive(packet), Inbox::Got::packet);
    ASSERT_TRUE(*packet.from == from);
    ASSERT_EQ(packet.header.tag, next);
    const std::vector<std::byte> payload = payload_of(next, largest);
    ASSERT_EQ(packet.header.payload, payload.size());
    ASSERT_TRUE(std::equal(payload.begin(), payload.end(), packet.payload));
    side.inbox->release();
    ++next;
  }
}

TEST_P(OffnodeNetworkTest, PacketsOfAllSizesArriveOnceInOrderBothWays) {
  Side a(GetParam()), b(GetParam());
  ASSERT_TRUE(connect(a, b));
  ASSERT_TRUE(connect(b, a));
  EXPECT_TRUE(a.outbox->off_node);
  EXPECT_GE(a.outbox->eager_bytes, 8192u);
  constexpr std::uint64_t count = 5000;
  const std::size_t largest = a.outbox->eager_bytes;
  std::uint64_t sent_a = 0, sent_b = 0, got_a = 0, got_b = 0;
  ASSERT_TRUE(turn_until({&a, &b}, [&] {
    for (int i = 0; i < 8 && sent_a < count && send(*a.outbox, sent_a); ++i) ++sent_a;
    for (int i = 0; i < 8 && sent_b < count && send(*b.outbox, sent_b); ++i) ++sent_b;
    receive(a, b.address, got_a, largest);
    receive(b, a.address, got_b, largest);
    return HasFatalFailure() || (got_a == count && got_b == count);
  }));
  EXPECT_TRUE(a.ends.empty());
  EXPECT_TRUE(b.ends.empty());
}

TEST_P(OffnodeNetworkTest, APeerThatDoesNotReadHoldsBoundedRoomAndLosesNothing) {
  Side a(GetParam()), b(GetParam()), c(GetParam());
  ASSERT_TRUE(connect(a, b));
  Outbox* const to_b = a.outbox;
  a.outbox = nullptr;
  ASSERT_TRUE(connect(a, c));
  // b does not turn: what fits is committed, then each lane refuses.
  std::uint64_t sent = 0;
  const std::uint64_t end = now_ns() + patience_ns;
  for (unsigned refused = 0; refused < 2000 && now_ns() < end; a.turn()) {
    refused = send(*to_b, sent) ? 0 : refused + 1;
    sent += refused == 0;
  }
  EXPECT_LT(sent, 200000u);
  // Others are reached meanwhile.
  std::uint64_t for_c = 0, got_c = 0, got_b = 0;
  ASSERT_TRUE(turn_until({&a, &c}, [&] {
    if (for_c < 100 && send(*a.outbox, for_c)) ++for_c;
    receive(c, a.address, got_c, a.outbox->eager_bytes);
    return HasFatalFailure() || got_c == 100;
  }));
  ASSERT_TRUE(turn_until({&a, &b}, [&] {
    receive(b, a.address, got_b, to_b->eager_bytes);
    return HasFatalFailure() || got_b == sent;
  }));
}

TEST_P(OffnodeNetworkTest, WhatWasCommittedArrivesBeforeTheEnd) {
  auto a = std::make_unique<Side>(GetParam());
  Side b(GetParam());
  ASSERT_TRUE(connect(*a, b));
  const std::size_t largest = a->outbox->eager_bytes;
  std::uint64_t sent = 0, got = 0;
  while (sent < 20 && send(*a->outbox, sent)) ++sent;
  const Address address = a->address;
  // The provider connects only while both sides poll.
  ASSERT_TRUE(turn_until({a.get(), &b}, [&] {
    receive(b, address, got, largest);
    return HasFatalFailure() || got != 0;
  }));
  while (sent < 60 && send(*a->outbox, sent)) ++sent;
  a.reset();
  ASSERT_TRUE(turn_until({&b}, [&] {
    receive(b, address, got, largest);
    return HasFatalFailure() || !b.ends.empty();
  }));
  EXPECT_EQ(got, sent);
  EXPECT_EQ(b.ends[0].what, NetworkEvent::What::ended);
  EXPECT_TRUE(b.ends[0].address == address);
}

TEST_P(OffnodeNetworkTest, AKilledPeerHasDiedForWhoSentAndForWhoOnlyReceived) {
  for (const bool we_connect : {true, false}) {
    int sockets[2];
    ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    const pid_t child = fork();
    if (child == 0) {
      Side side(GetParam());
      Address other;
      if (write(sockets[1], &side.address, sizeof other) != sizeof other ||
          read(sockets[1], &other, sizeof other) != sizeof other) {
        _exit(1);
      }
      if (!we_connect) side.network->connect(other);
      for (;;) side.turn();
    }
    close(sockets[1]);
    Side side(GetParam());
    Address other;
    EXPECT_EQ(ssize_t{sizeof other}, read(sockets[0], &other, sizeof other));
    EXPECT_EQ(ssize_t{sizeof other}, write(sockets[0], &side.address, sizeof other));
    if (we_connect) side.network->connect(other);
    EXPECT_TRUE(turn_until(
        {&side}, [&] { return we_connect ? side.outbox != nullptr : side.network->has_peers(); }));
    kill(child, SIGKILL);
    EXPECT_TRUE(turn_until({&side}, [&] { return !side.ends.empty(); }));
    waitpid(child, nullptr, 0);
    close(sockets[0]);
    ASSERT_EQ(side.ends.size(), 1u);
    EXPECT_EQ(side.ends[0].what, NetworkEvent::What::died);
    EXPECT_TRUE(side.ends[0].address == other);
  }
}

TEST_P(OffnodeNetworkTest, ADroppedPeerHearsTheEndAndItsPacketsAreForgotten) {
  Side a(GetParam()), b(GetParam());
  ASSERT_TRUE(connect(a, b));
  ASSERT_TRUE(connect(b, a));
  ASSERT_TRUE(send(*a.outbox, 0));
  ASSERT_TRUE(turn_until({&a, &b}, [&] { return b.inbox->ready(); }));
  b.network->drop(a.address);
  ReceivedPacket packet;
  EXPECT_EQ(b.inbox->receive(packet), Inbox::Got::nothing);
  ASSERT_TRUE(turn_until({&a, &b}, [&] { return !a.ends.empty(); }));
  EXPECT_EQ(a.ends[0].what, NetworkEvent::What::ended);
  EXPECT_TRUE(b.ends.empty());
}

TEST_P(OffnodeNetworkTest, NobodyThereIsRefused) {
  Side a(GetParam());
  Address gone;
  {
    const Side b(GetParam());
    gone = b.address;
  }
  a.network->connect(gone);
  ASSERT_TRUE(turn_until({&a}, [&] { return !a.ends.empty(); }));
  EXPECT_EQ(a.ends[0].what, NetworkEvent::What::refused);
  EXPECT_NE(a.ends[0].error, 0);
}

TEST_P(OffnodeNetworkTest, AnotherEndpointAtTheSamePlaceIsRefused) {
  Side a(GetParam()), b(GetParam());
  Address impostor = b.address;
  impostor.id[0] ^= 1;
  a.network->connect(impostor);
  ASSERT_TRUE(turn_until({&a, &b}, [&] { return !a.ends.empty(); }));
  EXPECT_EQ(a.ends[0].what, NetworkEvent::What::refused);
  EXPECT_FALSE(b.network->has_peers());
}

TEST_P(OffnodeNetworkTest, NoCommonProviderIsRefused) {
  Side a(GetParam()), b("no such provider");
  a.network->connect(b.address);
  ASSERT_TRUE(turn_until({&a, &b}, [&] { return !a.ends.empty(); }));
  EXPECT_EQ(a.ends[0].what, NetworkEvent::What::refused);
  b.network->connect(a.address);
  ASSERT_TRUE(turn_until({&a, &b}, [&] { return !b.ends.empty(); }));
  EXPECT_EQ(b.ends[0].what, NetworkEvent::What::refused);
}

TEST_P(OffnodeNetworkTest, AnEndpointOfOneNodeIsRefused) {
  Side a(GetParam());
  Address local = a.address;
  local.id[0] ^= 1;
  local.offnode_bytes = 0;
  a.network->connect(local);
  ASSERT_TRUE(turn_until({&a}, [&] { return !a.ends.empty(); }));
  EXPECT_EQ(a.ends[0].what, NetworkEvent::What::refused);
}

TEST_P(OffnodeNetworkTest, GarbageOnALinkHarmsNobody) {
  Side a(GetParam()), b(GetParam());
  OffnodePlaces places;
  ASSERT_TRUE(read_places(b.address, &places));
  std::mt19937_64 random(4);
  std::vector<int> strangers;
  for (int i = 0; i < 200; ++i) {
    const int fd = os::connect_inet(places.addresses[0], places.port);
    ASSERT_GE(fd, 0);
    strangers.push_back(fd);
    while (os::connect_result(fd) == -EINPROGRESS) b.turn();
    LinkMessage message;
    if (i % 4 != 0) {
      auto* bytes = reinterpret_cast<unsigned char*>(&message);
      const std::size_t first = i % 2 == 0 ? 0 : sizeof(std::uint64_t);  // with a sound beginning
      for (std::size_t at = first; at < sizeof message; ++at) {
        bytes[at] = static_cast<unsigned char>(random());
      }
    }
    const std::size_t length = i % 3 == 0 ? random() % sizeof message : sizeof message;
    EXPECT_EQ(os::send_stream(fd, &message, length), static_cast<ssize_t>(length));
    b.turn();
  }
  ASSERT_TRUE(connect(a, b));
  for (const int fd : strangers) os::close_fd(fd);
  EXPECT_TRUE(b.ends.empty());
}

TEST_P(OffnodeNetworkTest, AChildOfForkTouchesNothingOfItsParents) {
  Side a(GetParam()), b(GetParam());
  ASSERT_TRUE(connect(a, b));
  const std::size_t largest = a.outbox->eager_bytes;
  std::uint64_t sent = 0, got = 0;
  const auto exchange = [&](std::uint64_t until) {
    ASSERT_TRUE(turn_until({&a, &b}, [&] {
      if (sent < until && send(*a.outbox, sent)) ++sent;
      receive(b, a.address, got, largest);
      return HasFatalFailure() || got == until;
    }));
  };
  exchange(100);
  const pid_t child = fork();
  if (child == 0) {
    a.network->forked();
    b.network->forked();
    a.turn();
    Peer peer;
    peer.address = b.address;
    std::vector<std::byte> memory(std::size_t{1} << 20);
    const iovec whole{memory.data(), memory.size()};
    bool huge = false;
    DirectAccess& access = a.network->access();
    MemoryPlace place = access.describe(peer, &whole, 1, &huge);
    if (place.pieces != 0) _exit(2);
    place.pieces = 1;
    if (access.ways(peer, place, memory.size(), false) != MessageWays(MessageWay::pieces)) _exit(3);
    a.network->connect(b.address);
    a.network->drop(b.address);
    a.network.reset();
    b.network.reset();
    _exit(0);
  }
  int status = 1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(status, 0);
  exchange(200);
  EXPECT_TRUE(a.ends.empty());
  EXPECT_TRUE(b.ends.empty());
}

INSTANTIATE_TEST_SUITE_P(Carriers, OffnodeNetworkTest, all_carriers, title_of);

TEST(OffnodeNetworks, OfDifferentNodesAgreeOnAnyCarrierThatBothHave) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric.so.1 is not installed";
  const std::vector<std::string> all = OffnodeCarrier::available("auto");
  ASSERT_NE(std::find(all.begin(), all.end(), OffnodeCarrier::socket_name), all.end());
  Side any("auto");
  for (const std::string& name : all) {
    Side picky(name.c_str());
    any.outbox = nullptr;
    ASSERT_TRUE(connect(any, picky)) << name;
    ASSERT_TRUE(connect(picky, any)) << name;
    std::uint64_t sent = 0, got = 0;
    ASSERT_TRUE(turn_until({&any, &picky}, [&] {
      if (sent < 50 && send(*any.outbox, sent)) ++sent;
      receive(picky, any.address, got, any.outbox->eager_bytes);
      return HasFatalFailure() || got == 50;
    })) << name;
    // The end of one is not the end of the next.
    any.network->drop(picky.address);
  }
}

}  // namespace
