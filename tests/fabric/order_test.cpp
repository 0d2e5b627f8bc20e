// The orders that an endpoint promises: sends behind sends, and among atomics and remote accesses.
#include <gtest/gtest.h>

#include "sides.hpp"
#include "transfer.hpp"

namespace fabric_test {
namespace {

class Order : public testing::TestWithParam<Surrounding> {};

// Messages of all sizes with one tag: each receive takes the next, posted before or after.
TEST_P(Order, sends_behind_sends) {
  const Wish wish{};
  if (!offered(wish)) GTEST_SKIP() << "not offered";
  constexpr std::size_t count = 400, window = 16;
  const auto size_of = [](std::size_t i) {
    constexpr std::size_t sizes[] = {8, 40, 4 * kib, 9, 70 * kib, 33, 0, 300 * kib, 1, 16 * kib};
    return sizes[i * 7 % std::size(sizes)];
  };
  const auto left = [&](Node& node, fi_addr_t peer, Link&) {
    std::vector<Op> ops(count);
    std::vector<std::vector<std::uint8_t>> sent;
    for (std::size_t i = 0; i < count; ++i) {
      sent.push_back(pattern(size_of(i), i));
      ASSERT_EQ(send(node, {.to = peer, .tag = 3}, sent[i].data(), sent[i].size(), ops[i]), 0);
      if (i >= window) {
        ASSERT_EQ(node.await(ops[i - window]).err, 0);
      }
    }
    for (std::size_t i = count - window; i < count; ++i) ASSERT_EQ(node.await(ops[i]).err, 0);
  };
  const auto right = [&](Node& node, fi_addr_t, Link&) {
    std::vector<Op> ops(count);
    std::vector<std::vector<std::uint8_t>> got(count);
    const auto check = [&](std::size_t i) {
      const Completion received = node.await(ops[i]);
      ASSERT_EQ(received.err, 0);
      ASSERT_EQ(received.len, size_of(i)) << "receive " << i << " took another's message";
      ASSERT_EQ(difference(got[i].data(), pattern(size_of(i), i)), "");
    };
    for (std::size_t i = 0; i < count; ++i) {
      got[i].resize(300 * kib);
      ASSERT_EQ(receive(node, {.tag = 3}, got[i].data(), got[i].size(), ops[i]), 0);
      // Sometimes many receives wait for messages, sometimes messages for receives.
      if (i % 40 == 39) {
        for (std::size_t k = i - 39; k <= i; ++k) {
          check(k);
          if (HasFatalFailure()) return;
        }
      }
    }
  };
  run_sides(GetParam(), wish, left, right);
}

TEST_P(Order, atomics_among_atomics) {
  const Wish wish{.caps = FI_ATOMIC,
                  .msg_order = FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |
                               FI_ORDER_ATOMIC_WAW};
  if (!offered(wish)) GTEST_SKIP() << "no such order";
  const auto left = [&](Node& node, fi_addr_t peer, Link& link) {
    const auto address = link.get<std::uint64_t>(), key = link.get<std::uint64_t>();
    // write i; read; write i + 1: the read sees i, whatever is under way.
    constexpr std::uint64_t rounds = 300;
    std::vector<std::uint64_t> values(rounds), seen(rounds);
    std::vector<Op> writes(rounds), reads(rounds);
    fid_ep* ep = node.ep.get();
    for (std::uint64_t i = 0; i < rounds; ++i) {
      values[i] = i + 1;
      ASSERT_EQ(node.post([&] {
        return fi_atomic(ep, &values[i], 1, nullptr, peer, address, key, FI_UINT64, FI_ATOMIC_WRITE,
                         &writes[i]);
      }),
                0);
      ASSERT_EQ(node.post([&] {
        return fi_fetch_atomic(ep, nullptr, 1, nullptr, &seen[i], nullptr, peer, address, key,
                               FI_UINT64, FI_ATOMIC_READ, &reads[i]);
      }),
                0);
    }
    for (std::uint64_t i = 0; i < rounds; ++i) {
      ASSERT_EQ(node.await(writes[i]).err, 0);
      ASSERT_EQ(node.await(reads[i]).err, 0);
      ASSERT_EQ(seen[i], i + 1);
    }
    link.meet();
  };
  const auto right = [&](Node& node, fi_addr_t, Link& link) {
    Region region(node, 64, remote, 3);
    link.put(region.address());
    link.put(region.key());
    link.meet();
  };
  run_sides(GetParam(), wish, left, right);
}

// An order that is promised for remote accesses, tested where it is.
TEST_P(Order, reads_behind_writes_and_sends_behind_both) {
  Wish wish{.caps = FI_RMA | FI_TAGGED,
            .msg_order = FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_SAW};
  if (!ask(wish)) GTEST_SKIP() << "no such order";
  const auto left = [&](Node& node, fi_addr_t peer, Link& link) {
    const auto address = link.get<std::uint64_t>(), key = link.get<std::uint64_t>();
    const std::size_t limit = node.info->ep_attr->max_order_raw_size;
    for (const std::size_t size : {std::size_t{8}, 4 * kib, 64 * kib, mib}) {
      if (size > limit || size > node.info->ep_attr->max_order_waw_size) continue;
      const auto first = pattern(size, 1), second = pattern(size, 2);
      std::vector<std::uint8_t> seen(size);
      Op ops[4];
      fid_ep* ep = node.ep.get();
      const auto write = [&](const std::vector<std::uint8_t>& bytes, Op& op) {
        ASSERT_EQ(node.post([&] {
          return fi_write(ep, bytes.data(), size, nullptr, peer, address, key, &op);
        }),
                  0);
      };
      write(first, ops[0]);
      write(second, ops[1]);
      ASSERT_EQ(node.post([&] {
        return fi_read(ep, seen.data(), size, nullptr, peer, address, key, &ops[2]);
      }),
                0);
      ASSERT_EQ(send(node, {.to = peer, .tag = size}, nullptr, 0, ops[3]), 0);
      for (Op& op : ops) ASSERT_EQ(node.await(op).err, 0);
      EXPECT_EQ(difference(seen.data(), second), "");
      link.put(size);
      link.meet();
    }
    link.put(std::size_t{0});
    link.meet();
  };
  const auto right = [&](Node& node, fi_addr_t, Link& link) {
    Region region(node, mib, remote, 3);
    link.put(region.address());
    link.put(region.key());
    while (const auto size = link.get<std::size_t>()) {
      Op op;
      ASSERT_EQ(receive(node, {.tag = size}, nullptr, 0, op), 0);
      ASSERT_EQ(node.await(op).err, 0);
      EXPECT_EQ(difference(region.data(), pattern(size, 2)), "");
      link.meet();
    }
    link.meet();
  };
  run_sides(GetParam(), wish, left, right);
}

INSTANTIATE_TEST_SUITE_P(Sides, Order,
                         testing::Values(Surrounding::one_process, Surrounding::two_processes),
                         [](const testing::TestParamInfo<Surrounding>& which) {
                           return name_of(which.param);
                         });

}  // namespace
}  // namespace fabric_test
