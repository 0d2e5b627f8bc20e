// FI_MULTI_RECV: one buffer that takes many messages until less than FI_OPT_MIN_MULTI_RECV is left.
#include <gtest/gtest.h>

#include <algorithm>

#include "transfer.hpp"

namespace fabric_test {
namespace {

constexpr std::uint64_t caps = FI_MSG | FI_MULTI_RECV | FI_SOURCE;

class MultiRecv : public testing::Test {
 protected:
  void open(const Wish& wish) {
    pair = std::make_unique<Pair>(wish);
    ASSERT_TRUE(pair->ready() || !provider_is_haul());
    if (!pair->ready()) GTEST_SKIP() << pair->why();
    // rxm needs a buffer ahead of its own; the option is set before any receive is posted.
    minimum = 200;
    ASSERT_EQ(fi_setopt(&pair->b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &minimum,
                        sizeof minimum),
              0);
    std::size_t set = 0, length = sizeof set;
    ASSERT_EQ(fi_getopt(&pair->b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &set, &length),
              0);
    EXPECT_EQ(set, minimum);
  }
  void post(std::vector<std::uint8_t>& buffer, Op& op) {
    ASSERT_EQ(
        receive(pair->b, {.kind = Kind::message, .form = Receive::msg, .flags = FI_MULTI_RECV},
                buffer.data(), buffer.size(), op),
        0);
  }
  // Sends messages and checks them as they arrive, until a buffer is given back.
  void fill(std::vector<std::uint8_t>& buffer, const Op& op, const std::vector<std::size_t>& sizes,
            bool wait_for_release) {
    std::size_t index = 0;
    std::uint8_t* end_of_last = buffer.data();
    for (;;) {
      const bool more = index < sizes.size();
      if (!more && !wait_for_release) return;
      ASSERT_TRUE(more) << "the buffer is not given back";
      const auto sent = pattern(sizes[index], index);
      Op send_op;
      ASSERT_EQ(send(pair->a, {.kind = Kind::message, .to = pair->to_b}, sent.data(), sent.size(),
                     send_op),
                0);
      const Completion received = pair->b.await(op);
      ASSERT_EQ(received.err, 0) << fi_strerror(received.err);
      EXPECT_EQ(pair->a.await(send_op).err, 0);
      ASSERT_NE(received.flags & FI_RECV, 0u);
      ASSERT_EQ(received.len, sent.size());
      auto* at = static_cast<std::uint8_t*>(received.buf);
      if (sent.empty()) at = end_of_last;  // nothing was placed anywhere
      ASSERT_GE(at, end_of_last) << "messages overlap";
      ASSERT_LE(at + received.len, buffer.data() + buffer.size());
      EXPECT_EQ(difference(at, sent), "");
      EXPECT_EQ(received.source, pair->to_a);
      end_of_last = at + received.len;
      ++index;
      const auto left = static_cast<std::size_t>(buffer.data() + buffer.size() - end_of_last);
      if ((received.flags & FI_MULTI_RECV) != 0) {
        EXPECT_LT(left, minimum + 64) << "given back too early";
        return;
      }
      if (left < minimum) {
        // It may also be given back by an entry of its own.
        const Completion released = pair->b.await(op);
        EXPECT_EQ(released.err, 0);
        EXPECT_EQ(released.flags & (FI_MULTI_RECV | FI_RECV), FI_MULTI_RECV);
        return;
      }
    }
  }
  std::unique_ptr<Pair> pair;
  std::size_t minimum = 0;
};

TEST_F(MultiRecv, packs_messages_until_little_room_is_left) {
  open(Wish{.caps = caps});
  if (IsSkipped() || HasFatalFailure()) return;
  const std::vector<std::size_t> small(300, 100);
  std::vector<std::size_t> mixed = {1, 0, 64, 999, 40, 4000, 12};
  mixed.insert(mixed.end(), small.begin(), small.end());
  for (int round = 0; round < 3; ++round) {
    std::vector<std::uint8_t> buffer(10000);
    Op op;
    post(buffer, op);
    fill(buffer, op, small, true);
  }
  std::vector<std::uint8_t> buffer(10000);
  Op op;
  post(buffer, op);
  fill(buffer, op, mixed, true);
}

TEST_F(MultiRecv, large_messages_too) {
  open(Wish{.caps = caps});
  if (IsSkipped() || HasFatalFailure()) return;
  std::vector<std::uint8_t> buffer(4 * mib);
  Op op;
  post(buffer, op);
  fill(buffer, op, {mib, 100, 64 * kib, mib, 300 * kib, 2 * mib - 364 * kib - 150}, true);
}

TEST_F(MultiRecv, one_buffer_after_the_other) {
  open(Wish{.caps = caps});
  if (IsSkipped() || HasFatalFailure()) return;
  constexpr std::size_t count = 200, size = 90;
  std::vector<std::uint8_t> first(3000), second(60000);
  Op first_op, second_op;
  post(first, first_op);
  post(second, second_op);
  std::vector<Op> send_ops(count);
  std::vector<std::vector<std::uint8_t>> sent;
  for (std::size_t i = 0; i < count; ++i) {
    sent.push_back(pattern(size, i));
    ASSERT_EQ(
        send(pair->a, {.kind = Kind::message, .to = pair->to_b}, sent[i].data(), size, send_ops[i]),
        0);
  }
  bool released = false;
  for (std::size_t i = 0; i < count;) {
    const Completion received = pair->b.next();
    ASSERT_EQ(received.err, 0);
    if ((received.flags & FI_MULTI_RECV) != 0) {
      EXPECT_EQ(received.op, &first_op);
      EXPECT_FALSE(released);
      released = true;
    }
    if ((received.flags & FI_RECV) == 0) continue;
    EXPECT_TRUE(received.op ==
                (released && (received.flags & FI_MULTI_RECV) == 0 ? &second_op : &first_op));
    EXPECT_EQ(difference(received.buf, sent[i]), "") << "message " << i;
    ++i;
  }
  EXPECT_TRUE(released);
  for (Op& op : send_ops) EXPECT_EQ(pair->a.await(op).err, 0);
}

TEST_F(MultiRecv, what_came_before_the_buffer) {
  open(Wish{.caps = caps});
  if (IsSkipped() || HasFatalFailure()) return;
  const std::size_t sizes[] = {10, 4 * kib, 0, 100 * kib, 300};
  std::vector<std::vector<std::uint8_t>> sent;
  Op send_ops[std::size(sizes)];
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    sent.push_back(pattern(sizes[i], i));
    ASSERT_EQ(send(pair->a, {.kind = Kind::message, .to = pair->to_b}, sent[i].data(), sizes[i],
                   send_ops[i]),
              0);
  }
  static_cast<void>(pair->b.stays_quiet());
  std::vector<std::uint8_t> buffer(200 * kib);
  Op op;
  post(buffer, op);
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    const Completion received = pair->b.await(op);
    ASSERT_EQ(received.err, 0);
    // Each in a place of its own, in any order of completion.
    const auto same = std::find_if(std::begin(sent), std::end(sent), [&](const auto& message) {
      return message.size() == received.len && difference(received.buf, message).empty();
    });
    EXPECT_NE(same, std::end(sent)) << received.len;
    EXPECT_EQ(pair->a.await(send_ops[i]).err, 0);
  }
}

// A message too long for what is left takes the buffer with it, cut.
TEST_F(MultiRecv, a_message_longer_than_the_rest_is_truncated) {
  open(Wish{.caps = caps});
  if (IsSkipped() || HasFatalFailure()) return;
  if (!provider_is_haul()) GTEST_SKIP() << "the manual leaves this open; haul reports FI_ETRUNC";
  std::vector<std::uint8_t> buffer(1000);
  Op op, send_op;
  post(buffer, op);
  const auto sent = pattern(5000, 1);
  ASSERT_EQ(send(pair->a, {.kind = Kind::message, .to = pair->to_b}, sent.data(), 5000, send_op),
            0);
  const Completion received = pair->b.await(op);
  EXPECT_EQ(received.err, FI_ETRUNC);
  EXPECT_EQ(received.olen, 4000u);
  EXPECT_EQ(pair->a.await(send_op).err, 0);
}

TEST_F(MultiRecv, cancelled_it_comes_back_once) {
  open(Wish{.caps = caps});
  if (IsSkipped() || HasFatalFailure()) return;
  std::vector<std::uint8_t> buffer(4000);
  Op op;
  post(buffer, op);
  fill(buffer, op, {100, 100}, false);
  ASSERT_EQ(fi_cancel(&pair->b.ep->fid, &op), 0);
  const Completion cancelled = pair->b.await(op);
  EXPECT_EQ(cancelled.err, FI_ECANCELED);
  EXPECT_TRUE(pair->b.stays_quiet());
}

TEST_F(MultiRecv, its_release_is_told_even_when_completions_are_not) {
  open(Wish{.caps = caps, .selective = FI_SELECTIVE_COMPLETION});
  if (IsSkipped() || HasFatalFailure()) return;
  std::vector<std::uint8_t> buffer(1000);
  Op op;
  post(buffer, op);
  const auto sent = pattern(100, 0), large = pattern(300, 1);
  for (int i = 0; i < 9; ++i) {
    Op send_op;
    ASSERT_EQ(send(pair->a, {.kind = Kind::message, .form = Send::inject, .to = pair->to_b},
                   sent.data(), 64, send_op),
              0);
  }
  Op send_op;
  ASSERT_EQ(
      send(pair->a,
           {.kind = Kind::message, .form = Send::msg, .to = pair->to_b, .flags = FI_COMPLETION},
           large.data(), 300, send_op),
      0);
  const Completion released = pair->b.await(op);
  EXPECT_EQ(released.err, 0);
  EXPECT_NE(released.flags & FI_MULTI_RECV, 0u);
  EXPECT_EQ(pair->a.await(send_op).err, 0);
}

}  // namespace
}  // namespace fabric_test
