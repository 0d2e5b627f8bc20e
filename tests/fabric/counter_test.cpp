// Counters: every kind of event, reading, setting, adding, waiting.
#include <gtest/gtest.h>

#include <array>

#include "transfer.hpp"

namespace fabric_test {
namespace {

constexpr std::uint64_t all_caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RMA_EVENT;
constexpr std::uint64_t events[] = {FI_SEND,  FI_RECV,        FI_READ,
                                    FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};

Owned<fid_cntr> open_counter(Node& node, fi_wait_obj wait = FI_WAIT_UNSPEC) {
  fi_cntr_attr attr{};
  attr.events = FI_CNTR_EVENTS_COMP;
  attr.wait_obj = wait;
  fid_cntr* counter = nullptr;
  const int status = fi_cntr_open(node.domain, &attr, &counter, nullptr);
  EXPECT_TRUE(status == 0 || !provider_is_haul()) << fi_strerror(-status);
  return Owned<fid_cntr>{status == 0 ? counter : nullptr};
}

// Two endpoints in one domain, each with a counter for each kind of event.
class Counting : public testing::Test {
 protected:
  struct End {
    std::array<Owned<fid_cntr>, std::size(events)> counters;
    Owned<fid_ep> ep;
  };
  void SetUp() override {
    Wish wish{.caps = all_caps};
    if (!ask(wish) && !provider_is_haul()) {
      wish.caps = FI_MSG | FI_TAGGED;
      basic = true;
    }
    node = std::make_unique<Node>(wish);
    ASSERT_TRUE(node->ready() || !provider_is_haul());
    if (!node->ready()) GTEST_SKIP() << node->why();
    for (End& end : ends) {
      fid_ep* raw = nullptr;
      ASSERT_EQ(fi_endpoint(node->domain, node->info.get(), &raw, nullptr), 0);
      end.ep.reset(raw);
      ASSERT_EQ(fi_ep_bind(raw, &node->av->fid, 0), 0);
      ASSERT_EQ(fi_ep_bind(raw, &node->cq->fid, FI_TRANSMIT | FI_RECV), 0);
      for (std::size_t i = 0; i < (basic ? 2 : std::size(events)); ++i) {
        end.counters[i] = open_counter(*node);
        if (!end.counters[i]) GTEST_SKIP() << "no counters";
        ASSERT_EQ(fi_ep_bind(raw, &end.counters[i]->fid, events[i]), 0);
      }
      ASSERT_EQ(fi_enable(raw), 0);
      std::byte name[256];
      std::size_t length = sizeof name;
      ASSERT_EQ(fi_getname(&raw->fid, name, &length), 0);
      fi_addr_t address = 0;
      ASSERT_EQ(fi_av_insert(node->av.get(), name, 1, &address, 0, nullptr), 1);
      addresses[&end - ends.data()] = address;
    }
  }
  void TearDown() override {
    for (End& end : ends) end.ep.reset();
  }
  bool reaches(std::size_t end, std::uint64_t event, std::uint64_t value) {
    for (std::size_t i = 0; i < std::size(events); ++i) {
      if (events[i] != event) continue;
      fid_cntr* counter = ends[end].counters[i].get();
      return node->await_until([&] { return fi_cntr_read(counter) >= value; }) &&
             fi_cntr_read(counter) == value;
    }
    return false;
  }
  bool basic = false;
  std::unique_ptr<Node> node;
  std::array<End, 2> ends;
  fi_addr_t addresses[2] = {};
};

TEST_F(Counting, messages_of_all_sizes) {
  std::uint64_t count = 0;
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, 4 * kib, mib})
    for (const bool tagged : {false, true}) {
      const auto sent = pattern(size, 1);
      std::vector<std::uint8_t> got(size);
      Op receive_op, send_op;
      fid_ep* from = ends[0].ep.get();
      fid_ep* to = ends[1].ep.get();
      ASSERT_EQ(tagged ? fi_trecv(to, got.data(), size, nullptr, FI_ADDR_UNSPEC, 1, 0, &receive_op)
                       : fi_recv(to, got.data(), size, nullptr, FI_ADDR_UNSPEC, &receive_op),
                0);
      ASSERT_EQ(node->post([&] {
        return tagged ? fi_tsend(from, sent.data(), size, nullptr, addresses[1], 1, &send_op)
                      : fi_send(from, sent.data(), size, nullptr, addresses[1], &send_op);
      }),
                0);
      ++count;
      EXPECT_TRUE(reaches(0, FI_SEND, count));
      EXPECT_TRUE(reaches(1, FI_RECV, count));
      EXPECT_EQ(difference(got.data(), sent), "") << "counted before the bytes were there";
      EXPECT_EQ(node->await(send_op).err, 0);
      EXPECT_EQ(node->await(receive_op).err, 0);
      // Injected ones count as well.
      if (size > node->info->tx_attr->inject_size) continue;
      ASSERT_EQ(fi_recv(to, got.data(), size, nullptr, FI_ADDR_UNSPEC, &receive_op), 0);
      ASSERT_EQ(node->post([&] { return fi_inject(from, sent.data(), size, addresses[1]); }), 0);
      ++count;
      EXPECT_TRUE(reaches(0, FI_SEND, count));
      EXPECT_TRUE(reaches(1, FI_RECV, count));
      EXPECT_EQ(node->await(receive_op).err, 0);
    }
  EXPECT_EQ(fi_cntr_readerr(ends[0].counters[0].get()), 0u);
}

TEST_F(Counting, remote_memory_on_both_sides) {
  if (basic) GTEST_SKIP() << "no events of remote memory";
  Region region(*node, mib, FI_REMOTE_READ | FI_REMOTE_WRITE, 21);
  ASSERT_EQ(region.status(), 0);
  std::uint64_t reads = 0, writes = 0;
  for (const std::size_t size : {std::size_t{8}, 4 * kib, mib}) {
    auto local = pattern(size, size);
    const auto written = local;
    Op op;
    fid_ep* ep = ends[0].ep.get();
    ASSERT_EQ(node->post([&] {
      return fi_write(ep, local.data(), size, nullptr, addresses[1], region.address(), region.key(),
                      &op);
    }),
              0);
    EXPECT_TRUE(reaches(0, FI_WRITE, ++writes));
    EXPECT_TRUE(reaches(1, FI_REMOTE_WRITE, writes));
    EXPECT_EQ(difference(region.data(), written), "");
    EXPECT_EQ(node->await(op).err, 0);
    ASSERT_EQ(node->post([&] {
      return fi_read(ep, local.data(), size, nullptr, addresses[1], region.address(), region.key(),
                     &op);
    }),
              0);
    EXPECT_TRUE(reaches(0, FI_READ, ++reads));
    EXPECT_TRUE(reaches(1, FI_REMOTE_READ, reads));
    EXPECT_EQ(node->await(op).err, 0);
  }
  std::uint64_t operand = 1, result = 0;
  Op op;
  ASSERT_EQ(node->post([&] {
    return fi_atomic(ends[0].ep.get(), &operand, 1, nullptr, addresses[1], region.address(),
                     region.key(), FI_UINT64, FI_SUM, &op);
  }),
            0);
  EXPECT_TRUE(reaches(0, FI_WRITE, ++writes));
  EXPECT_TRUE(reaches(1, FI_REMOTE_WRITE, writes));
  EXPECT_EQ(node->await(op).err, 0);
  ASSERT_EQ(node->post([&] {
    return fi_fetch_atomic(ends[0].ep.get(), &operand, 1, nullptr, &result, nullptr, addresses[1],
                           region.address(), region.key(), FI_UINT64, FI_SUM, &op);
  }),
            0);
  EXPECT_TRUE(reaches(0, FI_READ, ++reads));
  EXPECT_TRUE(reaches(1, FI_REMOTE_READ, reads));
  EXPECT_EQ(node->await(op).err, 0);
  for (std::size_t end = 0; end < 2; ++end) {
    EXPECT_TRUE(reaches(end, FI_SEND, 0));
    EXPECT_TRUE(reaches(end, FI_RECV, 0));
  }
  EXPECT_TRUE(reaches(1, FI_READ, 0));
  EXPECT_TRUE(reaches(0, FI_REMOTE_WRITE, 0));
}

// Without FI_RMA_EVENT a counter of remote accesses may be bound, and counts.
TEST(Counter, of_remote_accesses_without_their_capability) {
  if (!provider_is_haul()) GTEST_SKIP() << "others may want the capability";
  Node node(Wish{.caps = FI_MSG | FI_RMA | FI_ATOMIC});
  ASSERT_TRUE(node.ready());
  ASSERT_EQ(node.info->caps & FI_RMA_EVENT, 0u);
  const auto reads = open_counter(node), writes = open_counter(node);
  fid_ep* raw = nullptr;
  ASSERT_EQ(fi_endpoint(node.domain, node.info.get(), &raw, nullptr), 0);
  const Owned<fid_ep> ep{raw};
  ASSERT_EQ(fi_ep_bind(raw, &node.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(raw, &node.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(raw, &reads->fid, FI_REMOTE_READ), 0);
  ASSERT_EQ(fi_ep_bind(raw, &writes->fid, FI_REMOTE_WRITE), 0);
  ASSERT_EQ(fi_enable(raw), 0);
  std::byte name[256];
  std::size_t length = sizeof name;
  ASSERT_EQ(fi_getname(&raw->fid, name, &length), 0);
  const fi_addr_t to = node.insert({name, name + length});
  Region region(node, 64, FI_REMOTE_READ | FI_REMOTE_WRITE, 3);
  std::uint64_t word = 1;
  Op op;
  ASSERT_EQ(node.post([&] {
    return fi_write(node.ep.get(), &word, sizeof word, nullptr, to, region.address(), region.key(),
                    &op);
  }),
            0);
  EXPECT_EQ(node.await(op).err, 0);
  ASSERT_EQ(node.post([&] {
    return fi_read(node.ep.get(), &word, sizeof word, nullptr, to, region.address(), region.key(),
                   &op);
  }),
            0);
  EXPECT_EQ(node.await(op).err, 0);
  EXPECT_TRUE(node.await_until([&] { return fi_cntr_read(reads.get()) == 1; }));
  EXPECT_EQ(fi_cntr_read(writes.get()), 1u);
}

TEST_F(Counting, errors_apart) {
  Op op;
  char byte = 0;
  fid_cntr* counter = ends[1].counters[1].get();
  ASSERT_EQ(fi_trecv(ends[1].ep.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &op), 0);
  ASSERT_EQ(fi_cancel(&ends[1].ep->fid, &op), 0);
  EXPECT_EQ(node->await(op).err, FI_ECANCELED);
  EXPECT_EQ(fi_cntr_read(counter), 0u);
  if (provider_is_haul()) {
    EXPECT_EQ(fi_cntr_readerr(counter), 1u);
  }
}

TEST(Counter, reads_what_was_set_and_added) {
  Node node(Wish{});
  if (!node.ready()) GTEST_SKIP() << node.why();
  const auto counter = open_counter(node);
  if (!counter) GTEST_SKIP() << "no counters";
  EXPECT_EQ(fi_cntr_read(counter.get()), 0u);
  EXPECT_EQ(fi_cntr_set(counter.get(), 5), 0);
  EXPECT_EQ(fi_cntr_read(counter.get()), 5u);
  EXPECT_EQ(fi_cntr_add(counter.get(), 7), 0);
  EXPECT_EQ(fi_cntr_read(counter.get()), 12u);
  EXPECT_EQ(fi_cntr_readerr(counter.get()), 0u);
  EXPECT_EQ(fi_cntr_seterr(counter.get(), 2), 0);
  EXPECT_EQ(fi_cntr_adderr(counter.get(), 3), 0);
  EXPECT_EQ(fi_cntr_readerr(counter.get()), 5u);
  EXPECT_EQ(fi_cntr_read(counter.get()), 12u);
}

TEST(Counter, waits_for_a_threshold_an_error_or_the_time) {
  Node node(Wish{});
  if (!node.ready()) GTEST_SKIP() << node.why();
  const auto counter = open_counter(node);
  if (!counter) GTEST_SKIP() << "no counters";
  EXPECT_EQ(fi_cntr_wait(counter.get(), 0, 0), 0);
  EXPECT_EQ(fi_cntr_wait(counter.get(), 1, 20), -FI_ETIMEDOUT);
  ASSERT_EQ(fi_cntr_set(counter.get(), 3), 0);
  EXPECT_EQ(fi_cntr_wait(counter.get(), 3, -1), 0);
  EXPECT_EQ(fi_cntr_wait(counter.get(), 4, 20), -FI_ETIMEDOUT);
}

TEST(Counter, a_wait_progresses_what_it_waits_for) {
  Pair pair(Wish{.caps = FI_TAGGED});
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  const auto counter = open_counter(pair.b);
  if (!counter) GTEST_SKIP() << "no counters";
  fid_ep* raw = nullptr;
  ASSERT_EQ(fi_endpoint(pair.b.domain, pair.b.info.get(), &raw, nullptr), 0);
  Owned<fid_ep> ep{raw};
  ASSERT_EQ(fi_ep_bind(raw, &pair.b.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(raw, &pair.b.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(raw, &counter->fid, FI_RECV), 0);
  ASSERT_EQ(fi_enable(raw), 0);
  std::byte name[256];
  std::size_t length = sizeof name;
  ASSERT_EQ(fi_getname(&raw->fid, name, &length), 0);
  const fi_addr_t to = pair.a.insert({name, name + length});
  std::uint64_t sent = 9, got = 0;
  Op op, send_op;
  ASSERT_EQ(fi_trecv(raw, &got, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &op), 0);
  ASSERT_EQ(send(pair.a, {.to = to, .tag = 1}, &sent, 8, send_op), 0);
  EXPECT_EQ(pair.a.await(send_op).err, 0);
  EXPECT_EQ(fi_cntr_wait(counter.get(), 1, static_cast<int>(patience().count()) * 1000), 0);
  EXPECT_EQ(got, 9u);
}

}  // namespace
}  // namespace fabric_test
