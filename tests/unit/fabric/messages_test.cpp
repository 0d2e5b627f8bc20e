// Messages between matchers: every size class on every path, early and late receives, truncation,
// order, wildcards, peek and claim, cancel, multi-receive.
#include <algorithm>
#include <string>

#include "harness.hpp"
#include "repeats.hpp"
#include "sizes.hpp"

namespace haul::fabric::test {
namespace {

const std::size_t sizes[] = {0,         1,          7,
                             8,         15,         16,
                             31,        32,         33,
                             64,        191,        1000,
                             4 * kib,   16 * kib,   16 * kib + 1,
                             64 * kib,  128 * kib,  128 * kib + 5,
                             300 * kib, 1024 * kib, 1500 * kib + 3};

struct Case {
  const char* name;
  Reachability reach;
};
const Case cases[] = {
    {"pieces", {}},
    {"pull", {.pull = true, .claims = false}},
    {"pull_slowly", {.pull = true, .claims = false, .delay = 3}},
    {"both", {.pull = true, .push = true}},
    {"both_slowly", {.pull = true, .push = true, .delay = 2}},
    {"sender_cannot_push", {.pull = true, .push = false}},
    {"pull_fails_at_once", {.pull = true, .claims = false, .fail_after = 0}},
    {"pull_fails_later", {.pull = true, .claims = false, .fail_after = 2}},
    {"sender_copies_all", {.push = true, .arena = true, .mapped_only = true}},
    {"sender_copies_slowly", {.push = true, .delay = 2, .arena = true, .mapped_only = true}},
    {"sender_fails_later", {.push = true, .fail_after = 2, .arena = true, .mapped_only = true}},
    {"sender_may_not_copy", {.arena = true, .mapped_only = true}},
    {"both_fail_later", {.pull = true, .push = true, .fail_after = 3}},
};

class Paths : public testing::TestWithParam<Case> {
 protected:
  // Node 0 sends. Its own memory is in no arena.
  static void set_reach(World& world) {
    world[0].network.reach = world[1].network.reach = GetParam().reach;
    world[0].network.reach.arena = false;
  }
};
INSTANTIATE_TEST_SUITE_P(All, Paths, testing::ValuesIn(cases),
                         [](const auto& at) { return std::string(at.param.name); });

TEST_P(Paths, EverySizeArrivesWholeEarlyOrLate) {
  for (const bool early : {true, false}) {
    for (const std::uint64_t flags : {std::uint64_t{0}, std::uint64_t{FI_DELIVERY_COMPLETE},
                                      std::uint64_t{FI_MATCH_COMPLETE}}) {
      World world(2);
      set_reach(world);
      for (const std::size_t bytes : sizes) {
        SCOPED_TRACE(testing::Message() << bytes << " bytes, early " << early);
        world[0].network.starts = world[1].network.starts = 0;
        const auto data = pattern(bytes, bytes);
        std::vector<std::byte> got(bytes + 64, std::byte{0x55});
        int sent = 0, received = 0;
        if (early) {
          ASSERT_EQ(world[1].receive(&world[0], got.data(), bytes, 9, &received), 0);
        }
        ASSERT_EQ(world[0].send(world[1], data.data(), bytes, 9, &sent, FI_COMPLETION | flags), 0);
        world.settle();
        if (!early) {
          if (flags == FI_MATCH_COMPLETE || bytes > 16 * kib) {
            EXPECT_EQ(world[0].take(&sent).error, -1);
          }
          ASSERT_EQ(world[1].receive(nullptr, got.data(), bytes, 9, &received), 0);
          world.settle();
        }
        const CompletionNotice completion = world[1].take(&received);
        EXPECT_EQ(completion.error, 0);
        EXPECT_EQ(completion.length, bytes);
        EXPECT_EQ(completion.tag, 9u);
        EXPECT_EQ(completion.flags, std::uint64_t{FI_RECV | FI_TAGGED});
        EXPECT_EQ(completion.source, &world[1].peer(world[0]));
        EXPECT_EQ(world[0].take(&sent).error, 0);
        EXPECT_TRUE(std::equal(data.begin(), data.end(), got.begin()));
        EXPECT_EQ(got[bytes], std::byte{0x55});
        EXPECT_TRUE(world[0].completions.empty());
        EXPECT_TRUE(world[1].completions.empty());
      }
      EXPECT_TRUE(world[0].matcher.flushed());
      EXPECT_EQ(world[0].network.lent, 0);
      EXPECT_EQ(world[1].matcher.statistics().copies_in_flight.load(), 0u);
      EXPECT_EQ(world[1].matcher.statistics().unexpected_bytes.load(), 0u);
    }
  }
}

// After a turn that found nothing the next takes one packet; a peek must not miss those behind it.
TEST(Peek, FindsWhatHasArrivedBehindOthersAfterQuietTurns) {
  World world(2);
  int sent = 0, looked = 0, received = 0;
  ASSERT_EQ(world[0].send(world[1], "0", 2, 9, &sent), 0);
  world.settle();
  for (const std::uint64_t tag : {1u, 2u, 3u})
    ASSERT_EQ(world[0].send(world[1], "1", 2, tag, &sent), 0);
  ASSERT_EQ(world[1].receive(nullptr, nullptr, 0, 3, &looked, 0, FI_COMPLETION | FI_PEEK), 0);
  EXPECT_EQ(world[1].take(&looked).error, 0);
  char got[2] = {};
  ASSERT_EQ(world[1].receive(nullptr, got, sizeof got, 3, &received), 0);
  EXPECT_EQ(world[1].take(&received).error, 0);
}

// The receiver's program does nothing; its process has accepted the ring, or not yet.
TEST(Delivery, OfAnUnaskedMessageNeedsNothingOfTheReceiversProgram) {
  for (const std::size_t bytes : {std::size_t{8}, 5 * kib, 16 * kib}) {
    World world(2);
    world.accepts = false;
    const auto data = pattern(bytes, 5);
    std::vector<std::byte> got(bytes);
    int delivered = 0, later = 0, matched = 0;
    ASSERT_EQ(world[0].send(world[1], data.data(), bytes, 1, &delivered,
                            FI_COMPLETION | FI_DELIVERY_COMPLETE),
              0);
    ASSERT_EQ(world[0].send(world[1], data.data(), bytes, 2, &later, FI_COMPLETION), 0);
    for (int i = 0; i < 10; ++i) world[0].matcher.progress();
    EXPECT_EQ(world[0].take(&delivered).error, -1);
    EXPECT_EQ(world[0].take(&later).error, -1) << "it is behind the first";
    world[0].network.outbound[2].segment->accepted = 1;
    for (int i = 0; i < 10; ++i) world[0].matcher.progress();
    EXPECT_EQ(world[0].take(&delivered).error, 0);
    EXPECT_EQ(world[0].take(&later).error, 0);
    ASSERT_EQ(world[0].send(world[1], data.data(), bytes, 3, &delivered,
                            FI_COMPLETION | FI_DELIVERY_COMPLETE),
              0);
    EXPECT_EQ(world[0].take(&delivered).error, 0) << "at once";
    ASSERT_EQ(
        world[0].send(world[1], data.data(), bytes, 4, &matched, FI_COMPLETION | FI_MATCH_COMPLETE),
        0);
    for (int i = 0; i < 10; ++i) world[0].matcher.progress();
    EXPECT_EQ(world[0].take(&matched).error, -1) << "nobody has matched it";
    for (std::uint64_t tag = 1; tag <= 4; ++tag) {
      int received = 0;
      std::fill(got.begin(), got.end(), std::byte{0});
      ASSERT_EQ(world[1].receive(&world[0], got.data(), bytes, tag, &received), 0);
      world.settle();
      EXPECT_EQ(world[1].take(&received).error, 0);
      EXPECT_EQ(got, data);
    }
    EXPECT_EQ(world[0].take(&matched).error, 0);
  }
}

TEST_P(Paths, ALongMessageIsCutAndSaysSo) {
  World world(2);
  set_reach(world);
  for (const std::size_t bytes : sizes) {
    if (bytes < 2) continue;
    SCOPED_TRACE(bytes);
    world[0].network.starts = world[1].network.starts = 0;
    const auto data = pattern(bytes, 3);
    const std::size_t room = bytes / 2;
    std::vector<std::byte> got(bytes, std::byte{0x55});
    int sent = 0, received = 0;
    ASSERT_EQ(world[1].receive(nullptr, got.data(), room, 1, &received), 0);
    ASSERT_EQ(world[0].send(world[1], data.data(), bytes, 1, &sent), 0);
    world.settle();
    const CompletionNotice completion = world[1].take(&received);
    EXPECT_EQ(completion.error, FI_ETRUNC);
    EXPECT_EQ(completion.length, room);
    EXPECT_EQ(completion.overflow, bytes - room);
    EXPECT_EQ(world[0].take(&sent).error, 0);
    EXPECT_EQ(std::memcmp(got.data(), data.data(), room), 0);
    EXPECT_EQ(got[room], std::byte{0x55});
  }
}

TEST_P(Paths, BothSidesAreCutDifferently) {
  World world(2);
  set_reach(world);
  for (const std::size_t bytes : {std::size_t{24}, 999 * std::size_t{1}, 200 * kib}) {
    auto data = pattern(bytes, 4);
    std::vector<std::byte> got(bytes);
    const std::size_t a = bytes / 3, b = bytes / 2;
    const iovec from[] = {{data.data(), a}, {data.data() + a, 0}, {data.data() + a, bytes - a}};
    const iovec to[] = {{got.data(), b}, {got.data() + b, 1}, {got.data() + b + 1, bytes - b - 1}};
    int sent = 0, received = 0;
    ReceiveRequest receive;
    receive.pieces = to;
    receive.count = 3;
    receive.context = &received;
    receive.flags = FI_COMPLETION;
    SendRequest send;
    send.pieces = from;
    send.count = 3;
    send.data = 77;
    send.flags = FI_COMPLETION | FI_REMOTE_CQ_DATA;
    send.context = &sent;
    ASSERT_EQ(world[1].matcher.receive(nullptr, receive), 0);
    ASSERT_EQ(world[0].matcher.send(world[0].peer(world[1]), send), 0);
    world.settle();
    const CompletionNotice completion = world[1].take(&received);
    EXPECT_EQ(completion.error, 0);
    EXPECT_EQ(completion.data, 77u);
    EXPECT_EQ(completion.flags, std::uint64_t{FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA});
    EXPECT_EQ(got, data);
  }
}

// Every order of two matchers' turns, for the first nine of a shared transfer.
TEST(Interleavings, ASharedTransferEndsWhole) {
  constexpr unsigned depth = 9;
  const std::size_t bytes = 200 * kib;
  const auto data = pattern(bytes, 8);
  std::vector<std::byte> got(bytes);
  // (An odd stride: each turn is either one's in what a sanitizer's run has.)
  constexpr unsigned schedules = 1u << depth;
  for (unsigned i = 0; i < testing_haul::repeats(schedules); ++i) {
    const unsigned schedule = i * 13 % schedules;
    World world(2);
    world[0].network.reach = world[1].network.reach =
        Reachability{.pull = true, .push = true, .delay = 1 + schedule % 2};
    std::memset(got.data(), 0, bytes);
    int sent = 0, received = 0;
    ASSERT_EQ(world[1].receive(nullptr, got.data(), bytes, 0, &received), 0);
    ASSERT_EQ(world[0].send(world[1], data.data(), bytes, 0, &sent), 0);
    for (unsigned turn = 0; turn < depth; ++turn) world[(schedule >> turn) & 1].matcher.progress();
    world.settle();
    ASSERT_EQ(world[0].take(&sent).error, 0) << "schedule " << schedule;
    ASSERT_EQ(world[1].take(&received).error, 0) << "schedule " << schedule;
    ASSERT_EQ(got, data) << "schedule " << schedule;
  }
}

TEST(Matching, OrderIsThatOfSendingAndOfPosting) {
  World world(3);
  std::vector<std::vector<std::byte>> data;
  // Mixed sizes of one tag: a short one never passes a long one.
  const std::size_t lengths[] = {10, 100 * kib, 5, 20 * kib, 0, 64, 300 * kib, 1};
  for (std::size_t i = 0; i < 8; ++i) {
    data.push_back(pattern(lengths[i], i));
    ASSERT_EQ(world[0].send(world[1], data[i].data(), lengths[i], 5, nullptr, 0), 0);
  }
  world.settle();
  std::vector<std::vector<std::byte>> got(8, std::vector<std::byte>(400 * kib));
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_EQ(world[1].receive(i % 2 == 0 ? nullptr : &world[0], got[i].data(), got[i].size(), 5,
                               &got[i]),
              0);
  }
  world.settle();
  for (std::size_t i = 0; i < 8; ++i) {
    const CompletionNotice completion = world[1].take(&got[i]);
    EXPECT_EQ(completion.error, 0);
    ASSERT_EQ(completion.length, lengths[i]);
    got[i].resize(lengths[i]);
    EXPECT_EQ(got[i], data[i]) << i;
  }
}

TEST(Matching, SourcesTagsAndWildcards) {
  World world(3);
  int a = 0, b = 0, c = 0, d = 0;
  char buffer[4][8] = {};
  ASSERT_EQ(world[2].receive(&world[1], buffer[0], 8, 1, &a), 0);        // from 1 alone
  ASSERT_EQ(world[2].receive(nullptr, buffer[1], 8, 0x10, &b, 0xf), 0);  // tags 0x10 to 0x1f
  ASSERT_EQ(world[2].receive(nullptr, buffer[2], 8, 1, &c), 0);
  ASSERT_EQ(world[2].receive(nullptr, buffer[3], 8, 0, &d, ~std::uint64_t{0}), 0);  // anything
  ASSERT_EQ(world[0].send(world[2], "first", 6, 1, nullptr), 0);  // to c: a wants it from 1
  ASSERT_EQ(world[0].send(world[2], "secnd", 6, 0x1f, nullptr), 0);
  world.settle();
  ASSERT_EQ(world[1].send(world[2], "third", 6, 1, nullptr), 0);
  ASSERT_EQ(world[0].send(world[2], "forth", 6, 0x20, nullptr), 0);
  world.settle();
  EXPECT_EQ(world[2].take(&c).source, &world[2].peer(world[0]));
  EXPECT_EQ(world[2].take(&b).tag, 0x1fu);
  EXPECT_EQ(world[2].take(&a).source, &world[2].peer(world[1]));
  EXPECT_EQ(world[2].take(&d).tag, 0x20u);
  EXPECT_STREQ(buffer[0], "third");
  EXPECT_STREQ(buffer[1], "secnd");
  EXPECT_STREQ(buffer[2], "first");
  EXPECT_STREQ(buffer[3], "forth");
}

TEST(Matching, PeekClaimDiscard) {
  World world(2);
  for (const std::size_t bytes : {std::size_t{5}, 100 * kib}) {
    const auto data = pattern(bytes, 2);
    std::vector<std::byte> got(bytes);
    fi_context context{};
    int sent = 0;
    const auto peek = [&](std::uint64_t flags) {
      EXPECT_EQ(
          world[1].receive(nullptr, nullptr, 0, 3, &context, 0, FI_COMPLETION | FI_PEEK | flags),
          0);
      return world[1].take(&context);
    };
    EXPECT_EQ(peek(0).error, FI_ENOMSG);
    ASSERT_EQ(world[0].send(world[1], data.data(), bytes, 3, &sent), 0);
    EXPECT_EQ(peek(0).length, bytes);
    EXPECT_EQ(peek(0).error, 0);  // it is still there
    EXPECT_EQ(peek(FI_CLAIM).error, 0);
    EXPECT_EQ(peek(0).error, FI_ENOMSG);  // it is the claimer's
    ASSERT_EQ(
        world[1].receive(nullptr, got.data(), bytes, 3, &context, 0, FI_COMPLETION | FI_CLAIM), 0);
    world.settle();
    EXPECT_EQ(world[1].take(&context).error, 0);
    EXPECT_EQ(got, data);
    EXPECT_EQ(world[0].take(&sent).error, 0);

    ASSERT_EQ(world[0].send(world[1], data.data(), bytes, 3, &sent), 0);
    EXPECT_EQ(peek(FI_DISCARD).error, 0);
    EXPECT_EQ(peek(0).error, FI_ENOMSG);
    world.settle();
    EXPECT_EQ(world[0].take(&sent).error, 0);

    ASSERT_EQ(world[0].send(world[1], data.data(), bytes, 3, &sent), 0);
    EXPECT_EQ(peek(FI_CLAIM).error, 0);
    ASSERT_EQ(world[1].receive(nullptr, nullptr, 0, 3, &context, 0,
                               FI_COMPLETION | FI_CLAIM | FI_DISCARD),
              0);
    world.settle();
    EXPECT_EQ(world[1].take(&context).error, 0);
    EXPECT_EQ(world[0].take(&sent).error, 0);
    EXPECT_EQ(world[1].matcher.statistics().unexpected_messages.load(), 0u);
  }
}

TEST(Matching, CancelEndsAReceiveOnce) {
  World world(2);
  int context = 0;
  char buffer[4];
  for (Node* from : {static_cast<Node*>(nullptr), &world[0]}) {
    ASSERT_EQ(world[1].receive(from, buffer, 4, 1, &context), 0);
    EXPECT_EQ(world[1].matcher.cancel(&context), 0);
    EXPECT_EQ(world[1].take(&context).error, FI_ECANCELED);
    EXPECT_EQ(world[1].matcher.cancel(&context), -FI_ENOENT);
  }
}

TEST(MultiReceive, GivesOutItsBufferAndSaysWhenItIsUsedUp) {
  World world(2);
  world[1].matcher.set_min_multi_receive(1000);
  std::vector<std::byte> buffer(300 * kib);
  int context = 0;
  const iovec piece{buffer.data(), buffer.size()};
  ReceiveRequest request;
  request.pieces = &piece;
  request.count = 1;
  request.flags = FI_COMPLETION | FI_MULTI_RECV;
  request.context = &context;
  const std::size_t lengths[] = {100, 100 * kib, 3, 150 * kib, 49 * kib};
  std::vector<std::vector<std::byte>> data;
  for (std::size_t i = 0; i < 5; ++i) data.push_back(pattern(lengths[i], i));
  const auto send = [&](std::size_t i) {
    const iovec from{data[i].data(), lengths[i]};
    SendRequest message;
    message.pieces = &from;
    message.count = 1;
    EXPECT_EQ(world[0].matcher.send(world[0].peer(world[1]), message), 0);
  };
  send(0);
  send(1);
  world.settle();  // two come early
  ASSERT_EQ(world[1].matcher.receive(nullptr, request), 0);
  for (std::size_t i = 2; i < 5; ++i) send(i);
  world.settle();
  ASSERT_EQ(world[1].completions.size(), 5u);
  unsigned released = 0;
  for (const CompletionNotice& completion : world[1].completions) {
    EXPECT_EQ(completion.error, 0);
    if ((completion.flags & FI_MULTI_RECV) != 0) ++released;
    bool found = false;
    for (const auto& message : data) {
      found |= message.size() == completion.length &&
               std::memcmp(message.data(), completion.buffer, completion.length) == 0;
    }
    EXPECT_TRUE(found) << completion.length;
  }
  EXPECT_EQ(released, 1u);
  EXPECT_NE(world[1].completions.back().flags & FI_MULTI_RECV, 0u);
}

}  // namespace
}  // namespace haul::fabric::test
