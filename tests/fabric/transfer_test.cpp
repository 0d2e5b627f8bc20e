// Every form of sending meets every form of receiving, in every size class, and vectors that are
// cut in different places on both sides.
#include "transfer.hpp"

#include <gtest/gtest.h>

namespace fabric_test {
namespace {

constexpr std::size_t all_sizes[] = {
    0,         1,       31,       32,           33,       192,
    kib,       4 * kib, 16 * kib, 64 * kib - 1, 64 * kib, 64 * kib + 1,
    256 * kib, mib,     16 * mib};

const Wish transfer_wish{.caps = FI_MSG | FI_TAGGED | FI_SOURCE};

TEST(Transfer, every_form_and_size) {
  Pair pair(transfer_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  const std::size_t inject_limit = pair.a.info->tx_attr->inject_size;
  const bool with_data = pair.a.info->domain_attr->cq_data_size > 0;
  for (const Kind kind : all_kinds)
    for (const Send form : all_sends)
      for (const std::size_t size : all_sizes) {
        if (is_injected(form) && size > inject_limit) continue;
        if (carries_data(form) && !with_data) continue;
        const Outgoing out{.kind = kind,
                           .form = form,
                           .to = pair.to_b,
                           .tag = size * 3 + 1,
                           .data = 0x80000001u + size};
        for (const Receive receive_form : all_receives) {
          // The largest once a form: the paths have met before.
          if (size > mib && receive_form != Receive::plain) continue;
          check_transfer(pair, out, Incoming{.kind = kind, .form = receive_form, .tag = out.tag},
                         size);
          if (HasFatalFailure()) return;
        }
      }
  EXPECT_TRUE(pair.a.stays_quiet() && pair.b.stays_quiet()) << "a completion nobody waited for";
}

TEST(Transfer, inject_up_to_its_limit_and_not_beyond) {
  Pair pair(transfer_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  const std::size_t limit = pair.a.info->tx_attr->inject_size;
  for (const Kind kind : all_kinds) {
    const Outgoing out{.kind = kind, .form = Send::inject, .to = pair.to_b, .tag = 9};
    check_transfer(pair, out, Incoming{.kind = kind, .tag = 9}, limit);
    if (!provider_is_haul()) continue;  // others take more, which the manual leaves open
    const std::vector<std::uint8_t> longer(limit + 1);
    Op op;
    EXPECT_LT(send(pair.a, out, longer.data(), longer.size(), op), 0)
        << "more than inject_size was taken";
  }
}

TEST(Transfer, vectors_cut_in_different_places) {
  Pair pair(transfer_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  const std::size_t limit =
      std::min(pair.a.info->tx_attr->iov_limit, pair.b.info->rx_attr->iov_limit);
  if (limit < 2) GTEST_SKIP() << "the provider takes one part only";
  const std::vector<std::vector<std::size_t>> cuts = {
      {}, {0}, {1}, {31}, {4095}, {65536}, {7, 100}, {0, 0, 5}, {4096, 1, 8191}};
  for (const Kind kind : all_kinds)
    for (const std::size_t size :
         {std::size_t{1}, std::size_t{40}, kib, 9000 * std::size_t{1}, 64 * kib, mib + 3})
      for (const auto& send_cuts : cuts)
        for (const auto& receive_cuts : cuts) {
          if (send_cuts.size() >= limit || receive_cuts.size() >= limit) continue;
          const Outgoing out{
              .kind = kind, .form = Send::vector, .to = pair.to_b, .tag = 4, .cuts = send_cuts};
          check_transfer(
              pair, out,
              Incoming{.kind = kind, .form = Receive::vector, .tag = 4, .cuts = receive_cuts},
              size);
          if (HasFatalFailure()) return;
        }
}

TEST(Transfer, more_parts_than_the_limit_are_refused) {
  Pair pair(transfer_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  std::uint8_t buffer[64] = {};
  Op op;
  const std::vector<std::size_t> too_many(pair.a.info->tx_attr->iov_limit, 1);
  if (too_many.size() + 1 > sizeof buffer) GTEST_SKIP() << "its limit is beyond this test";
  const Outgoing out{.form = Send::vector, .to = pair.to_b, .cuts = too_many};
  const Incoming in{.form = Receive::vector, .cuts = too_many};
  if (!provider_is_haul()) GTEST_SKIP() << "the manual does not ask for this check; haul has it";
  EXPECT_EQ(send(pair.a, out, buffer, sizeof buffer, op), -FI_EINVAL);
  EXPECT_EQ(receive(pair.b, in, buffer, sizeof buffer, op), -FI_EINVAL);
}

// MPI programs send to themselves.
TEST(Transfer, to_itself) {
  Pair pair(transfer_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  const fi_addr_t self = pair.a.insert(pair.a.name());
  for (const Kind kind : all_kinds)
    for (const std::size_t size : all_sizes) {
      SCOPED_TRACE(std::to_string(size) + " bytes");
      const auto sent = pattern(size, 5);
      std::vector<std::uint8_t> got(size);
      Op send_op, receive_op;
      // Once expected, once not.
      for (const bool first : {true, false}) {
        std::fill(got.begin(), got.end(), std::uint8_t{0});
        const Incoming in{.kind = kind, .tag = 3};
        if (first) {
          ASSERT_EQ(receive(pair.a, in, got.data(), size, receive_op), 0);
        }
        ASSERT_EQ(send(pair.a, {.kind = kind, .to = self, .tag = 3}, sent.data(), size, send_op),
                  0);
        if (!first) {
          ASSERT_EQ(receive(pair.a, in, got.data(), size, receive_op), 0);
        }
        const Completion received = pair.a.await(receive_op);
        ASSERT_EQ(received.err, 0);
        EXPECT_EQ(received.len, size);
        EXPECT_EQ(received.source, self);
        EXPECT_EQ(difference(got.data(), sent), "");
        ASSERT_EQ(pair.a.await(send_op).err, 0);
      }
    }
}

TEST(Transfer, two_endpoints_of_one_domain) {
  Pair pair(transfer_wish, true);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  for (const Kind kind : all_kinds)
    for (const std::size_t size : all_sizes)
      check_transfer(pair, {.kind = kind, .to = pair.to_b, .tag = 1}, {.kind = kind, .tag = 1},
                     size);
}

TEST(Transfer, unexpected_messages_of_every_size) {
  Pair pair(transfer_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  for (const Kind kind : all_kinds) {
    const std::size_t count = std::size(all_sizes);
    std::vector<Op> send_ops(count), receive_ops(count);
    std::vector<std::vector<std::uint8_t>> sent, got;
    for (std::size_t i = 0; i < count; ++i) {
      sent.push_back(pattern(all_sizes[i], i));
      ASSERT_EQ(send(pair.a, {.kind = kind, .to = pair.to_b, .tag = i}, sent[i].data(),
                     sent[i].size(), send_ops[i]),
                0);
    }
    EXPECT_TRUE(pair.b.stays_quiet() || pair.b.inbox_size() == 0);
    for (std::size_t i = 0; i < count; ++i) {
      got.emplace_back(all_sizes[i]);
      ASSERT_EQ(
          receive(pair.b, {.kind = kind, .tag = i}, got[i].data(), got[i].size(), receive_ops[i]),
          0);
    }
    for (std::size_t i = 0; i < count; ++i) {
      SCOPED_TRACE(std::to_string(all_sizes[i]) + " bytes");
      const Completion received = pair.b.await(receive_ops[i]);
      ASSERT_EQ(received.err, 0);
      EXPECT_EQ(received.len, all_sizes[i]);
      EXPECT_EQ(difference(got[i].data(), sent[i]), "");
      ASSERT_EQ(pair.a.await(send_ops[i]).err, 0);
    }
  }
}

}  // namespace
}  // namespace fabric_test
