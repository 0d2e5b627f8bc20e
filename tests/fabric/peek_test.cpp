// Looking at unexpected tagged messages: peek, claim and discard in every combination.
#include <gtest/gtest.h>

#include "transfer.hpp"

namespace fabric_test {
namespace {

const Wish peek_wish{.caps = FI_TAGGED | FI_MSG | FI_SOURCE};
const std::size_t peek_sizes[] = {0, 8, 100, 4 * kib, 64 * kib, mib};

ssize_t ask_for(Node& node, std::uint64_t tag, std::uint64_t ignore, std::uint64_t flags, Op& op,
                void* buffer = nullptr, std::size_t size = 0, fi_addr_t from = FI_ADDR_UNSPEC) {
  const iovec part{buffer, size};
  const fi_msg_tagged msg{&part, nullptr, buffer == nullptr ? 0u : 1u, from, tag, ignore, &op, 0};
  return node.post([&] { return fi_trecvmsg(node.ep.get(), &msg, flags); });
}

// Peeks until the message has come; the completion, or an error of ENOMSG after the patience.
Completion find(Node& node, std::uint64_t tag, std::uint64_t ignore, std::uint64_t flags, Op& op) {
  Completion seen;
  node.await_until([&] {
    if (ask_for(node, tag, ignore, FI_PEEK | flags, op) != 0) return false;
    seen = node.await(op);
    return seen.err != FI_ENOMSG;
  });
  return seen;
}

class Peek : public testing::Test {
 protected:
  void SetUp() override {
    pair = std::make_unique<Pair>(peek_wish);
    ASSERT_TRUE(pair->ready() || !provider_is_haul());
    if (!pair->ready()) GTEST_SKIP() << pair->why();
    // A provider without peek says so at once.
    Op op;
    const ssize_t status = ask_for(pair->b, 0, 0, FI_PEEK, op);
    if (status != 0 && !provider_is_haul()) GTEST_SKIP() << "no FI_PEEK";
    ASSERT_EQ(status, 0);
    EXPECT_EQ(pair->b.await(op).err, FI_ENOMSG);
  }
  std::vector<std::uint8_t> start(std::size_t size, std::uint64_t tag, Op& op) {
    keep.push_back(pattern(size, tag));
    const Outgoing out{.form = Send::data, .to = pair->to_b, .tag = tag, .data = 0x77};
    EXPECT_EQ(send(pair->a, out, keep.back().data(), size, op), 0);
    return keep.back();
  }
  std::unique_ptr<Pair> pair;
  std::deque<std::vector<std::uint8_t>> keep;
};

TEST_F(Peek, says_what_has_come_and_leaves_it) {
  for (const std::size_t size : peek_sizes) {
    SCOPED_TRACE(std::to_string(size) + " bytes");
    Op send_op, peek_op, receive_op;
    const auto sent = start(size, 0x105, send_op);
    for (int twice = 0; twice < 2; ++twice) {
      const Completion seen = find(pair->b, 5, 0xff00, 0, peek_op);
      ASSERT_EQ(seen.err, 0);
      EXPECT_EQ(seen.len, size);
      EXPECT_EQ(seen.tag, 0x105u);
      EXPECT_EQ(seen.source, pair->to_a);
      EXPECT_EQ(seen.flags & (FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED);
      EXPECT_NE(seen.flags & FI_REMOTE_CQ_DATA, 0u);
      EXPECT_EQ(seen.data, 0x77u);
    }
    std::vector<std::uint8_t> got(size);
    ASSERT_EQ(receive(pair->b, {.tag = 0x105}, got.data(), size, receive_op), 0);
    EXPECT_EQ(pair->b.await(receive_op).err, 0);
    EXPECT_EQ(difference(got.data(), sent), "");
    EXPECT_EQ(pair->a.await(send_op).err, 0);
    Op again;
    ASSERT_EQ(ask_for(pair->b, 5, 0xff00, FI_PEEK, again), 0);
    EXPECT_EQ(pair->b.await(again).err, FI_ENOMSG);
  }
}

// What is there is told before anything else happens: MPICH's probe of any source, and the receive
// that follows, are to meet one message.
TEST_F(Peek, comes_before_what_arrives_meanwhile) {
  if (!provider_is_haul()) GTEST_SKIP() << "no manual page asks for it";
  Op first_op, second_op, peek_op, receive_op;
  start(8, 0x11, first_op);
  ASSERT_EQ(find(pair->b, 0x11, 0, 0, peek_op).err, 0);
  std::uint64_t got = 0;
  ASSERT_EQ(receive(pair->b, {.tag = 0x22}, &got, sizeof got, receive_op), 0);
  start(8, 0x22, second_op);
  ASSERT_EQ(ask_for(pair->b, 0, ~std::uint64_t{0}, FI_PEEK, peek_op), 0);
  EXPECT_EQ(pair->b.next().op, &peek_op);
  EXPECT_EQ(pair->b.await(receive_op).err, 0);
  ASSERT_EQ(receive(pair->b, {.tag = 0x11}, &got, sizeof got, receive_op), 0);
  EXPECT_EQ(pair->b.await(receive_op).err, 0);
  EXPECT_EQ(pair->a.await(first_op).err, 0);
  EXPECT_EQ(pair->a.await(second_op).err, 0);
}

TEST_F(Peek, other_tags_are_not_seen) {
  Op send_op, peek_op, receive_op;
  start(8, 5, send_op);
  ASSERT_EQ(find(pair->b, 5, 0, 0, peek_op).err, 0);
  ASSERT_EQ(ask_for(pair->b, 6, 0, FI_PEEK, peek_op), 0);
  EXPECT_EQ(pair->b.await(peek_op).err, FI_ENOMSG);
  std::uint64_t got = 0;
  ASSERT_EQ(receive(pair->b, {.tag = 5}, &got, 8, receive_op), 0);
  EXPECT_EQ(pair->b.await(receive_op).err, 0);
  EXPECT_EQ(pair->a.await(send_op).err, 0);
}

TEST_F(Peek, a_claimed_message_is_nobody_elses) {
  for (const std::size_t size : peek_sizes) {
    SCOPED_TRACE(std::to_string(size) + " bytes");
    Op first_send, second_send, claim, other;
    const auto first = start(size, 5, first_send);
    const Completion seen = find(pair->b, 5, 0, FI_CLAIM, claim);
    ASSERT_EQ(seen.err, 0);
    EXPECT_EQ(seen.len, size);
    ASSERT_EQ(ask_for(pair->b, 5, 0, FI_PEEK, other), 0);
    EXPECT_EQ(pair->b.await(other).err, FI_ENOMSG) << "a claimed message is still seen";
    const auto second = start(size, 5, second_send);
    std::vector<std::uint8_t> got_second(size), got_first(size);
    ASSERT_EQ(receive(pair->b, {.tag = 5}, got_second.data(), size, other), 0);
    ASSERT_EQ(pair->b.await(other).err, 0);
    EXPECT_EQ(difference(got_second.data(), second), "");
    ASSERT_EQ(ask_for(pair->b, 5, 0, FI_CLAIM, claim, got_first.data(), size), 0);
    const Completion claimed = pair->b.await(claim);
    ASSERT_EQ(claimed.err, 0);
    EXPECT_EQ(claimed.len, size);
    EXPECT_EQ(claimed.tag, 5u);
    EXPECT_EQ(claimed.source, pair->to_a);
    EXPECT_EQ(difference(got_first.data(), first), "");
    EXPECT_EQ(pair->a.await(first_send).err, 0);
    EXPECT_EQ(pair->a.await(second_send).err, 0);
  }
}

TEST_F(Peek, a_claim_into_little_room_is_truncated) {
  for (const std::size_t size : {std::size_t{100}, 4 * kib, mib}) {
    Op send_op, claim;
    const auto sent = start(size, 5, send_op);
    ASSERT_EQ(find(pair->b, 5, 0, FI_CLAIM, claim).err, 0);
    std::vector<std::uint8_t> got(size, 0xee);
    ASSERT_EQ(ask_for(pair->b, 5, 0, FI_CLAIM, claim, got.data(), 10), 0);
    const Completion claimed = pair->b.await(claim);
    EXPECT_EQ(claimed.err, FI_ETRUNC);
    EXPECT_EQ(claimed.olen, size - 10);
    EXPECT_EQ(got[10], 0xee);
    static_cast<void>(pair->a.await(send_op));
  }
}

TEST_F(Peek, discarded_it_is_gone_and_its_sender_done) {
  for (const std::size_t size : peek_sizes)
    for (const bool claimed_first : {false, true}) {
      SCOPED_TRACE(std::to_string(size) + (claimed_first ? " bytes, claimed" : " bytes"));
      Op send_op, op, other;
      start(size, 5, send_op);
      if (claimed_first) {
        ASSERT_EQ(find(pair->b, 5, 0, FI_CLAIM, op).err, 0);
        ASSERT_EQ(ask_for(pair->b, 5, 0, FI_CLAIM | FI_DISCARD, op), 0);
        EXPECT_EQ(pair->b.await(op).err, 0);
      } else {
        const Completion seen = find(pair->b, 5, 0, FI_DISCARD, op);
        ASSERT_EQ(seen.err, 0);
        EXPECT_EQ(seen.len, size);
      }
      EXPECT_EQ(pair->a.await(send_op).err, 0);
      ASSERT_EQ(ask_for(pair->b, 5, 0, FI_PEEK, other), 0);
      EXPECT_EQ(pair->b.await(other).err, FI_ENOMSG);
    }
  check_transfer(*pair, {.to = pair->to_b, .tag = 5}, {.tag = 5}, 100);
}

TEST_F(Peek, several_claims_at_a_time) {
  constexpr std::size_t count = 20;
  std::vector<Op> send_ops(count), claims(count);
  std::vector<std::vector<std::uint8_t>> sent;
  for (std::size_t i = 0; i < count; ++i)
    sent.push_back(start(peek_sizes[i % std::size(peek_sizes)], 5, send_ops[i]));
  for (Op& claim : claims) ASSERT_EQ(find(pair->b, 5, 0, FI_CLAIM, claim).err, 0);
  for (std::size_t i = count; i-- > 0;) {
    std::vector<std::uint8_t> got(sent[i].size());
    char none = 0;
    ASSERT_EQ(ask_for(pair->b, 5, 0, FI_CLAIM, claims[i],
                      got.empty() ? &none : reinterpret_cast<char*>(got.data()), got.size()),
              0);
    const Completion claimed = pair->b.await(claims[i]);
    ASSERT_EQ(claimed.err, 0);
    EXPECT_EQ(claimed.len, sent[i].size());
    EXPECT_EQ(difference(got.data(), sent[i]), "") << "the claims were mixed up";
  }
  for (Op& send_op : send_ops) EXPECT_EQ(pair->a.await(send_op).err, 0);
}

}  // namespace
}  // namespace fabric_test
