// Objects of the provider: opened, bound, enabled and closed in the right order and in wrong ones.
#include <gtest/gtest.h>

#include <dirent.h>

#include "node.hpp"
#include "transfer.hpp"

namespace fabric_test {
namespace {

int open_descriptors() {
  DIR* directory = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

TEST(Lifecycle, close_while_in_use_is_refused) {
  Node node(Wish{});
  if (!node.ready()) GTEST_SKIP() << node.why();
  EXPECT_EQ(fi_close(&node.domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&node.fabric->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&node.av->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&node.cq->fid), -FI_EBUSY);
  // Refused, they still work.
  EXPECT_EQ(node.insert(node.name()), node.info->domain_attr->av_type == FI_AV_TABLE ? 0 : 0);
  EXPECT_EQ(close_now(node.ep), 0);
  EXPECT_EQ(close_now(node.cq), 0);
  EXPECT_EQ(close_now(node.av), 0);
  EXPECT_EQ(close_now(node.domain_owner), 0);
  EXPECT_EQ(close_now(node.fabric), 0);
}

TEST(Lifecycle, a_counter_in_use_is_not_closed) {
  const Wish wish{.caps = FI_MSG};
  const Info info = ask(wish);
  if (!info && !provider_is_haul()) GTEST_SKIP() << "not offered";
  Node node(wish);
  ASSERT_TRUE(node.ready());
  fid_cntr* counter = nullptr;
  fi_cntr_attr attr{};
  const int opened = fi_cntr_open(node.domain, &attr, &counter, nullptr);
  if (opened != 0 && !provider_is_haul()) GTEST_SKIP() << "no counters";
  ASSERT_EQ(opened, 0);
  Owned<fid_cntr> owned{counter};
  fid_ep* second = nullptr;
  ASSERT_EQ(fi_endpoint(node.domain, node.info.get(), &second, nullptr), 0);
  Owned<fid_ep> endpoint{second};
  ASSERT_EQ(fi_ep_bind(second, &counter->fid, FI_SEND), 0);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  EXPECT_EQ(close_now(endpoint), 0);
  EXPECT_EQ(close_now(owned), 0);
}

TEST(Lifecycle, enable_asks_for_its_parts) {
  Node node(Wish{});
  if (!node.ready()) GTEST_SKIP() << node.why();
  const auto fresh = [&] {
    fid_ep* endpoint = nullptr;
    EXPECT_EQ(fi_endpoint(node.domain, node.info.get(), &endpoint, nullptr), 0);
    return Owned<fid_ep>{endpoint};
  };
  {
    const Owned<fid_ep> bare = fresh();
    EXPECT_LT(fi_enable(bare.get()), 0);
  }
  {
    const Owned<fid_ep> no_queue = fresh();
    EXPECT_EQ(fi_ep_bind(no_queue.get(), &node.av->fid, 0), 0);
    EXPECT_EQ(fi_enable(no_queue.get()), -FI_ENOCQ);
  }
  {
    const Owned<fid_ep> no_vector = fresh();
    EXPECT_EQ(fi_ep_bind(no_vector.get(), &node.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    const int status = fi_enable(no_vector.get());
    EXPECT_LT(status, 0);
    if (provider_is_haul()) {
      EXPECT_EQ(status, -FI_ENOAV);
    }
  }
}

TEST(Lifecycle, wrong_bindings_are_refused) {
  Node node(Wish{});
  if (!node.ready()) GTEST_SKIP() << node.why();
  if (!provider_is_haul()) GTEST_SKIP() << "providers need not check; haul does";
  fid_ep* raw = nullptr;
  ASSERT_EQ(fi_endpoint(node.domain, node.info.get(), &raw, nullptr), 0);
  const Owned<fid_ep> endpoint{raw};
  EXPECT_EQ(fi_ep_bind(raw, &node.domain->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(raw, &node.cq->fid, FI_REMOTE_READ), -FI_EBADFLAGS);
  EXPECT_EQ(fi_ep_bind(raw, &node.cq->fid, 0), -FI_EBADFLAGS);
  Node other(Wish{});
  ASSERT_TRUE(other.ready());
  EXPECT_EQ(fi_ep_bind(raw, &other.cq->fid, FI_TRANSMIT), -FI_EDOMAIN)
      << "a queue of another domain";
}

TEST(Lifecycle, nothing_is_posted_before_enable) {
  Node node(Wish{});
  if (!node.ready()) GTEST_SKIP() << node.why();
  if (!provider_is_haul()) GTEST_SKIP() << "undefined elsewhere";
  fid_ep* raw = nullptr;
  ASSERT_EQ(fi_endpoint(node.domain, node.info.get(), &raw, nullptr), 0);
  const Owned<fid_ep> endpoint{raw};
  char byte = 0;
  Op op;
  EXPECT_EQ(fi_recv(raw, &byte, 1, nullptr, FI_ADDR_UNSPEC, &op), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_send(raw, &byte, 1, nullptr, 0, &op), -FI_EOPBADSTATE);
}

TEST(Lifecycle, getname_says_how_much_room_it_needs) {
  Node node(Wish{});
  if (!node.ready()) GTEST_SKIP() << node.why();
  std::size_t length = 0;
  EXPECT_EQ(fi_getname(&node.ep->fid, nullptr, &length), -FI_ETOOSMALL);
  ASSERT_GT(length, 0u);
  if (provider_is_haul()) {
    EXPECT_LE(length, 64u);
  }
  std::vector<std::uint8_t> name(length + 4, 0xee);
  std::size_t short_length = length - 1;
  EXPECT_EQ(fi_getname(&node.ep->fid, name.data(), &short_length), -FI_ETOOSMALL);
  EXPECT_EQ(short_length, length);
  EXPECT_EQ(name[length - 1], 0xee) << "more than the room given was written";
  std::size_t room = name.size();
  EXPECT_EQ(fi_getname(&node.ep->fid, name.data(), &room), 0);
  EXPECT_EQ(room, length);
  EXPECT_EQ(name[length], 0xee);
}

TEST(Lifecycle, an_alias_shares_its_endpoint) {
  Pair pair(Wish{});
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  fid_ep* alias = nullptr;
  const int status = fi_ep_alias(pair.a.ep.get(), &alias, FI_TRANSMIT | FI_INJECT_COMPLETE);
  if (status != 0 && !provider_is_haul()) GTEST_SKIP() << "no aliases";
  ASSERT_EQ(status, 0);
  Owned<fid_ep> owned{alias};
  char sent = 7, got = 0;
  Op send_op, receive_op;
  ASSERT_EQ(receive(pair.b, {.tag = 1}, &got, 1, receive_op), 0);
  ASSERT_EQ(pair.a.post([&] { return fi_tsend(alias, &sent, 1, nullptr, pair.to_b, 1, &send_op); }),
            0);
  EXPECT_EQ(pair.b.await(receive_op).err, 0);
  EXPECT_EQ(pair.a.await(send_op).err, 0);
  EXPECT_EQ(got, 7);
  EXPECT_EQ(close_now(owned), 0);
}

TEST(Lifecycle, default_flags_can_be_read_and_set) {
  Pair pair(Wish{.tx_flags = FI_TRANSMIT_COMPLETE});
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  std::uint64_t flags = FI_TRANSMIT;
  const int status = fi_control(&pair.a.ep->fid, FI_GETOPSFLAG, &flags);
  if (status != 0 && !provider_is_haul()) GTEST_SKIP() << "no control of flags";
  ASSERT_EQ(status, 0);
  EXPECT_NE(flags & FI_TRANSMIT_COMPLETE, 0u);
  flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
  ASSERT_EQ(fi_control(&pair.a.ep->fid, FI_SETOPSFLAG, &flags), 0);
  flags = FI_TRANSMIT;
  ASSERT_EQ(fi_control(&pair.a.ep->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_NE(flags & FI_DELIVERY_COMPLETE, 0u);
  EXPECT_EQ(flags & FI_TRANSMIT_COMPLETE, 0u);
}

TEST(Lifecycle, event_queues_carry_events_of_the_program) {
  Node node(Wish{});
  if (!node.ready()) GTEST_SKIP() << node.why();
  fi_eq_attr attr{};
  attr.flags = FI_WRITE;
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_eq* raw = nullptr;
  ASSERT_EQ(fi_eq_open(node.fabric.get(), &attr, &raw, nullptr), 0);
  Owned<fid_eq> queue{raw};
  std::uint32_t event = 0;
  fi_eq_entry got{};
  EXPECT_EQ(fi_eq_read(raw, &event, &got, sizeof got, 0), -FI_EAGAIN);
  int context = 0;
  const fi_eq_entry sent{&node.domain->fid, &context, 0x1234};
  ASSERT_EQ(fi_eq_write(raw, FI_NOTIFY, &sent, sizeof sent, 0), static_cast<ssize_t>(sizeof sent));
  EXPECT_EQ(fi_eq_sread(raw, &event, &got, sizeof got, 1000, FI_PEEK),
            static_cast<ssize_t>(sizeof got));
  EXPECT_EQ(fi_eq_read(raw, &event, &got, sizeof got, 0), static_cast<ssize_t>(sizeof got));
  EXPECT_EQ(event, static_cast<std::uint32_t>(FI_NOTIFY));
  EXPECT_EQ(got.context, &context);
  EXPECT_EQ(got.data, 0x1234u);
  EXPECT_EQ(fi_eq_read(raw, &event, &got, sizeof got, 0), -FI_EAGAIN);
}

TEST(Lifecycle, opened_and_closed_many_times_leaves_nothing) {
  const Wish wish{};
  if (!ask(wish)) GTEST_SKIP() << "not offered";
  const auto once = [&] {
    Pair pair(wish);
    ASSERT_TRUE(pair.ready());
    check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 100 * kib);
  };
  once();
  const int before = open_descriptors();
  for (int i = 0; i < 20; ++i) once();
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace fabric_test
