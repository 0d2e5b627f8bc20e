// Memory that endpoints of other nodes lend and read.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "fabric/protocol/operation.hpp"
#include "unit/fabric/offnode_harness.hpp"

using namespace haul;
using namespace haul::fabric;
using namespace haul::fabric::offnode_test;

namespace {

using OffnodeMemoryTest = CarrierTest;

// Whether a carrier must be able to read: all providers of libfabric that are tried here.
bool reads(const char* carrier) {
  return std::strcmp(carrier, OffnodeCarrier::socket_name) != 0;
}

TEST_P(OffnodeMemoryTest, WhatIsLentIsReadWholeAndInPartsAndNoMoreAfterwards) {
  Readers pair(GetParam());
  std::vector<std::byte> source = random_bytes(Readers::size);
  const MemoryPlace place = pair.lend(source.data(), source.size());
  ASSERT_EQ(place.pieces, reads(GetParam()) ? 1u : 0u);
  if (!reads(GetParam())) {  // packets only: it refuses whatever it is told
    MemoryPlace claimed;
    claimed.pieces = 1;
    EXPECT_EQ(pair.b.network->access().ways(pair.to_a, claimed, source.size(), false),
              MessageWays(MessageWay::pieces));
    EXPECT_LT(pair.read(claimed, 0, {{source.data(), source.size()}}), 0);
    return;
  }
  EXPECT_EQ(pair.b.network->access().ways(pair.to_a, place, source.size(), false),
            MessageWays(MessageWay::direct));
  std::vector<std::byte> copy(source.size());
  EXPECT_EQ(pair.read(place, 0, {{copy.data(), copy.size()}}), 1);
  EXPECT_TRUE(copy == source);
  // A part of it, into three places.
  std::fill(copy.begin(), copy.end(), std::byte{});
  EXPECT_EQ(pair.read(place, 100, {{copy.data(), 1}, {copy.data() + 10, 70000}}), 1);
  EXPECT_EQ(copy[0], source[100]);
  EXPECT_EQ(std::memcmp(copy.data() + 10, source.data() + 101, 70000), 0);
  EXPECT_EQ(copy[1], std::byte{});
  EXPECT_EQ(copy[70010], std::byte{});
  pair.a.network->access().withdraw(pair.to_b, place);
  EXPECT_LT(pair.read(place, 0, {{copy.data(), copy.size()}}), 0);
}

TEST_P(OffnodeMemoryTest, ShortAndScatteredMemoryIsNotLent) {
  Readers pair(GetParam());
  std::vector<std::byte> memory(Readers::size);
  const iovec pieces[] = {{memory.data(), 1000}, {memory.data() + 2000, 1000000}};
  bool huge = false;
  EXPECT_EQ(pair.a.network->access().describe(pair.to_b, pieces, 1, &huge).pieces, 0u);
  EXPECT_EQ(pair.a.network->access().describe(pair.to_b, pieces, 2, &huge).pieces, 0u);
}

TEST_P(OffnodeMemoryTest, AReadEndsWhenItsLenderIsKilledAndWhenItIsDropped) {
  for (const bool killed : {true, false}) {
    int sockets[2];
    ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Side side(GetParam());
      Peer reader;
      MemoryPlace place;
      std::vector<std::byte> memory(Readers::size);
      const iovec whole{memory.data(), memory.size()};
      bool huge = false;
      if (write(sockets[1], &side.address, sizeof(Address)) != sizeof(Address) ||
          read(sockets[1], &reader.address, sizeof(Address)) != sizeof(Address)) {
        _exit(1);
      }
      if (!turn_until({&side}, [&] { return side.network->has_peers(); })) _exit(2);
      place = side.network->access().describe(reader, &whole, 1, &huge);
      if (write(sockets[1], &place, sizeof place) != sizeof place) _exit(3);
      // It answers until it is told to stop, and then lives on without a word.
      char word = 0;
      while (recv(sockets[1], &word, 1, MSG_DONTWAIT) < 0) side.turn();
      if (write(sockets[1], &word, 1) != 1) _exit(4);
      for (;;) pause();
    }
    close(sockets[1]);
    Side side(GetParam());
    Peer lender;
    ASSERT_EQ(ssize_t{sizeof(Address)}, read(sockets[0], &lender.address, sizeof(Address)));
    ASSERT_EQ(ssize_t{sizeof(Address)}, write(sockets[0], &side.address, sizeof(Address)));
    side.network->connect(lender.address);
    ASSERT_TRUE(turn_until({&side}, [&] { return side.outbox != nullptr; }));
    MemoryPlace place;
    ASSERT_EQ(ssize_t{sizeof place}, read(sockets[0], &place, sizeof place));
    std::vector<std::byte> copy(Readers::size);
    const iovec whole{copy.data(), copy.size()};
    DirectAccess& access = side.network->access();
    EXPECT_EQ(place.pieces, reads(GetParam()) ? 1u : 0u);
    int state = 0;
    if (place.pieces != 0) {
      const auto start = [&] {
        return access.start(lender, DirectAccess::Direction::pull, &whole, 1, place, 0, copy.size(),
                            false);
      };
      const std::int64_t first = start();
      ASSERT_TRUE(turn_until({&side}, [&] { return (state = access.test(first)) != 0; }));
      ASSERT_EQ(state, 1);
      char word = 's';
      ASSERT_EQ(1, write(sockets[0], &word, 1));
      ASSERT_EQ(1, read(sockets[0], &word, 1));
      const std::int64_t ticket = start();
      EXPECT_EQ(access.test(ticket), 0);
      if (!killed) {
        side.network->drop(lender.address);
        EXPECT_EQ(access.test(ticket), 0) << "it may still be written";
      }
      const std::uint64_t before = now_ns();
      kill(child, SIGKILL);
      EXPECT_TRUE(turn_until({&side}, [&] { return (state = access.test(ticket)) != 0; }));
      EXPECT_LT(state, 0);
      EXPECT_LT(now_ns() - before, patience_ns / 4) << "it ended by itself at last";
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(sockets[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Carriers, OffnodeMemoryTest, all_carriers, title_of);

}  // namespace
