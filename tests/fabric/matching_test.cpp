// Which receive a message finds: tags, masks, sources, the order of both; and what happens to those
// that do not fit, or are taken back.
#include <gtest/gtest.h>

#include "transfer.hpp"

namespace fabric_test {
namespace {

const Wish matching_wish{.caps = FI_MSG | FI_TAGGED | FI_SOURCE};
const Wish directed{.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV};

std::vector<std::uint8_t> word(std::uint8_t value, std::size_t size = 8) {
  return std::vector<std::uint8_t>(size, value);
}

TEST(Matching, the_first_posted_receive_that_matches) {
  Pair pair(matching_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  constexpr std::uint64_t high = std::uint64_t{0xabcd} << 48;
  std::vector<std::uint8_t> got[4] = {word(0), word(0), word(0), word(0)};
  Op ops[4], send_op;
  // 0 wants tag 7 exactly, 1 any with the same high part, 2 anything at all, 3 tag 7 again.
  ASSERT_EQ(receive(pair.b, {.tag = high | 7}, got[0].data(), 8, ops[0]), 0);
  ASSERT_EQ(receive(pair.b, {.tag = high, .ignore = 0xffff}, got[1].data(), 8, ops[1]), 0);
  ASSERT_EQ(receive(pair.b, {.ignore = ~std::uint64_t{0}}, got[2].data(), 8, ops[2]), 0);
  ASSERT_EQ(receive(pair.b, {.tag = high | 7}, got[3].data(), 8, ops[3]), 0);
  const struct {
    std::uint64_t tag;
    int receiver;
  } messages[] = {{high | 9, 1}, {high | 7, 0}, {5, 2}, {high | 7, 3}};
  for (const auto& [tag, receiver] : messages) {
    const auto sent = word(static_cast<std::uint8_t>(tag + static_cast<unsigned>(receiver)));
    ASSERT_EQ(send(pair.a, {.to = pair.to_b, .tag = tag}, sent.data(), 8, send_op), 0);
    ASSERT_EQ(pair.a.await(send_op).err, 0);
    const Completion received = pair.b.await(ops[receiver]);
    ASSERT_EQ(received.err, 0);
    EXPECT_EQ(received.tag, tag) << "a receive with a mask reports the sender's tag";
    EXPECT_EQ(got[receiver], sent);
  }
}

TEST(Matching, unexpected_messages_in_the_order_they_came) {
  Pair pair(matching_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  // Sizes of every path: those of another path must not overtake.
  const std::size_t sizes[] = {0, 64 * kib, 8, mib, 100, 4 * kib, 200 * kib, 1};
  constexpr std::size_t count = std::size(sizes);
  Op send_ops[count], op;
  std::vector<std::vector<std::uint8_t>> sent;
  for (std::size_t i = 0; i < count; ++i) {
    sent.push_back(pattern(sizes[i], i));
    ASSERT_EQ(send(pair.a, {.to = pair.to_b, .tag = 1}, sent[i].data(), sizes[i], send_ops[i]), 0);
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::uint8_t> got(mib);
    ASSERT_EQ(receive(pair.b, {.tag = 0, .ignore = 1}, got.data(), got.size(), op), 0);
    const Completion received = pair.b.await(op);
    ASSERT_EQ(received.err, 0);
    ASSERT_EQ(received.len, sizes[i]) << "message " << i << " was overtaken";
    EXPECT_EQ(difference(got.data(), sent[i]), "");
  }
  for (Op& send_op : send_ops) EXPECT_EQ(pair.a.await(send_op).err, 0);
}

TEST(Matching, posted_receives_in_the_order_of_posting) {
  Pair pair(matching_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  const std::size_t sizes[] = {mib, 1, 64 * kib, 0, 300, 2 * mib, 16};
  constexpr std::size_t count = std::size(sizes);
  for (const Kind kind : all_kinds) {
    Op send_ops[count], receive_ops[count];
    std::vector<std::vector<std::uint8_t>> sent, got;
    for (std::size_t i = 0; i < count; ++i) {
      got.emplace_back(2 * mib);
      ASSERT_EQ(
          receive(pair.b, {.kind = kind, .tag = 1}, got[i].data(), got[i].size(), receive_ops[i]),
          0);
    }
    for (std::size_t i = 0; i < count; ++i) {
      sent.push_back(pattern(sizes[i], i));
      ASSERT_EQ(send(pair.a, {.kind = kind, .to = pair.to_b, .tag = 1}, sent[i].data(), sizes[i],
                     send_ops[i]),
                0);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Completion received = pair.b.await(receive_ops[i]);
      ASSERT_EQ(received.err, 0);
      ASSERT_EQ(received.len, sizes[i]);
      EXPECT_EQ(difference(got[i].data(), sent[i]), "");
      EXPECT_EQ(pair.a.await(send_ops[i]).err, 0);
    }
  }
}

TEST(Matching, tagged_and_untagged_do_not_meet) {
  Pair pair(matching_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  auto tagged_buffer = word(0), plain_buffer = word(0);
  const auto one = word(1), two = word(2);
  Op tagged_op, plain_op, send_op;
  ASSERT_EQ(receive(pair.b, {.kind = Kind::tagged, .ignore = ~std::uint64_t{0}},
                    tagged_buffer.data(), 8, tagged_op),
            0);
  ASSERT_EQ(receive(pair.b, {.kind = Kind::message}, plain_buffer.data(), 8, plain_op), 0);
  ASSERT_EQ(send(pair.a, {.kind = Kind::message, .to = pair.to_b}, one.data(), 8, send_op), 0);
  EXPECT_EQ(pair.b.await(plain_op).err, 0);
  EXPECT_EQ(pair.a.await(send_op).err, 0);
  ASSERT_EQ(send(pair.a, {.kind = Kind::tagged, .to = pair.to_b}, two.data(), 8, send_op), 0);
  EXPECT_EQ(pair.b.await(tagged_op).err, 0);
  EXPECT_EQ(pair.a.await(send_op).err, 0);
  EXPECT_EQ(plain_buffer, one);
  EXPECT_EQ(tagged_buffer, two);
}

TEST(Matching, directed_receives_take_their_source_only) {
  Pair pair(directed);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  Node third(directed);
  ASSERT_TRUE(third.ready());
  third.companions = {&pair.a, &pair.b};
  pair.a.companions.push_back(&third);
  pair.b.companions.push_back(&third);
  const fi_addr_t third_at_b = pair.b.insert(third.name());
  const fi_addr_t b_at_third = third.insert(pair.b.name());
  for (const Kind kind : all_kinds)
    for (const bool expected : {true, false})
      for (const std::size_t size : {std::size_t{8}, 100 * kib}) {
        SCOPED_TRACE(std::string(name_of(kind)) + (expected ? ", posted, " : ", unexpected, ") +
                     std::to_string(size));
        auto from_a = word(0, size), from_third = word(0, size), any = word(0, size);
        const auto one = word(1, size), two = word(2, size);
        Op a_op, third_op, any_op, send_a, send_third, send_again;
        const auto post = [&] {
          ASSERT_EQ(receive(pair.b, {.kind = kind, .from = third_at_b}, from_third.data(), size,
                            third_op),
                    0);
          ASSERT_EQ(receive(pair.b, {.kind = kind, .from = pair.to_a}, from_a.data(), size, a_op),
                    0);
          ASSERT_EQ(
              receive(pair.b, {.kind = kind, .from = FI_ADDR_UNSPEC}, any.data(), size, any_op), 0);
        };
        if (expected) post();
        ASSERT_EQ(send(pair.a, {.kind = kind, .to = pair.to_b}, one.data(), size, send_a), 0);
        ASSERT_EQ(send(third, {.kind = kind, .to = b_at_third}, two.data(), size, send_third), 0);
        if (!expected) post();
        const Completion first = pair.b.await(a_op), second = pair.b.await(third_op);
        EXPECT_EQ(first.err, 0);
        EXPECT_EQ(second.err, 0);
        EXPECT_EQ(first.source, pair.to_a);
        EXPECT_EQ(second.source, third_at_b);
        EXPECT_EQ(from_a, one);
        EXPECT_EQ(from_third, two);
        EXPECT_EQ(pair.a.await(send_a).err, 0);
        EXPECT_EQ(third.await(send_third).err, 0);
        ASSERT_EQ(send(third, {.kind = kind, .to = b_at_third}, two.data(), size, send_again), 0);
        EXPECT_EQ(pair.b.await(any_op).source, third_at_b);
        EXPECT_EQ(third.await(send_again).err, 0);
      }
}

TEST(Matching, a_longer_message_is_truncated) {
  Pair pair(matching_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  for (const Kind kind : all_kinds)
    for (const bool expected : {true, false})
      for (const auto& [room, size] : std::initializer_list<std::pair<std::size_t, std::size_t>>{
               {0, 8}, {8, 9}, {30, 40}, {100, 4 * kib}, {kib, 64 * kib}, {100 * kib, mib}}) {
        SCOPED_TRACE(std::string(name_of(kind)) + (expected ? ", posted, " : ", unexpected, ") +
                     std::to_string(size) + " into " + std::to_string(room));
        const auto sent = pattern(size, room);
        std::vector<std::uint8_t> got(size, 0xee);
        Op op, send_op;
        if (expected) {
          ASSERT_EQ(receive(pair.b, {.kind = kind, .tag = 2}, got.data(), room, op), 0);
        }
        ASSERT_EQ(
            send(pair.a, {.kind = kind, .to = pair.to_b, .tag = 2}, sent.data(), size, send_op), 0);
        if (!expected) {
          ASSERT_EQ(receive(pair.b, {.kind = kind, .tag = 2}, got.data(), room, op), 0);
        }
        const Completion received = pair.b.await(op);
        EXPECT_EQ(received.err, FI_ETRUNC);
        EXPECT_EQ(received.olen, size - room);
        if (provider_is_haul()) {
          EXPECT_EQ(received.len, room);
          EXPECT_EQ(difference(got.data(), {sent.begin(), sent.begin() + static_cast<long>(room)}),
                    "");
          if (kind == Kind::tagged) {
            EXPECT_EQ(received.tag, 2u);
          }
        }
        for (std::size_t i = room; i < size; ++i)
          ASSERT_EQ(got[i], 0xee) << "byte " << i << " behind the buffer was written";
        if (provider_is_haul()) {
          EXPECT_EQ(pair.a.await(send_op).err, 0);
        } else
          static_cast<void>(pair.a.await(send_op));
      }
  // The next message is whole.
  check_transfer(pair, {.to = pair.to_b, .tag = 2}, {.tag = 2}, 100);
}

TEST(Matching, a_cancelled_receive_takes_no_message) {
  Pair pair(matching_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  for (const Kind kind : all_kinds) {
    auto first = word(0), second = word(0);
    const auto sent = word(3);
    Op first_op, second_op, send_op;
    ASSERT_EQ(receive(pair.b, {.kind = kind, .tag = 6}, first.data(), 8, first_op), 0);
    ASSERT_EQ(receive(pair.b, {.kind = kind, .tag = 6}, second.data(), 8, second_op), 0);
    ASSERT_EQ(fi_cancel(&pair.b.ep->fid, &first_op), 0);
    const Completion cancelled = pair.b.await(first_op);
    EXPECT_EQ(cancelled.err, FI_ECANCELED);
    ASSERT_EQ(send(pair.a, {.kind = kind, .to = pair.to_b, .tag = 6}, sent.data(), 8, send_op), 0);
    EXPECT_EQ(pair.b.await(second_op).err, 0);
    EXPECT_EQ(pair.a.await(send_op).err, 0);
    EXPECT_EQ(first, word(0));
    EXPECT_EQ(second, sent);
    // What has completed is not cancelled any more.
    static_cast<void>(fi_cancel(&pair.b.ep->fid, &second_op));
    EXPECT_TRUE(pair.b.stays_quiet()) << "a second completion of one receive";
  }
}

TEST(Matching, many_receives_cancelled_in_any_order) {
  Pair pair(matching_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  constexpr std::size_t count = 200;
  std::vector<Op> ops(count);
  std::uint64_t byte = 0;
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(receive(pair.b, {.tag = i % 7}, &byte, 8, ops[i]), 0);
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(fi_cancel(&pair.b.ep->fid, &ops[i * 77 % count]), 0);
  for (Op& op : ops) EXPECT_EQ(pair.b.await(op).err, FI_ECANCELED);
  EXPECT_TRUE(pair.b.stays_quiet());
}

}  // namespace
}  // namespace fabric_test
