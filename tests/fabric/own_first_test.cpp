// What an endpoint asks of itself is served before what others ask of it, as where it takes effect
// at once: mpi4py's mutexes unlock by an accumulate to oneself, without a flush.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "transfer.hpp"

namespace fabric_test {
namespace {

class OwnFirst : public testing::Test {
 protected:
  void SetUp() override {
    pair = std::make_unique<Pair>(Wish{.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC});
    ASSERT_TRUE(pair->ready() || !provider_is_haul());
    if (!pair->ready()) GTEST_SKIP() << pair->why();
    if (!provider_is_haul()) GTEST_SKIP() << "no manual page asks for it";
    to_self = pair->a.insert(pair->a.name());
    region = std::make_unique<Region>(pair->a, 64, FI_REMOTE_READ | FI_REMOTE_WRITE, 5);
    ASSERT_EQ(region->status(), 0);
    // The other connects first: in the order of coming it would always be served first.
    ASSERT_EQ(ask(), 0u);
    add(1);
    ASSERT_TRUE(pair->a.await_until([&] { return ask() == 1; }));
  }
  // Without progress of the target's.
  void add(unsigned count) {
    const std::uint64_t one = 1;
    for (unsigned i = 0; i < count; ++i) {
      ASSERT_EQ(fi_inject_atomic(pair->a.ep.get(), &one, 1, to_self, region->address(),
                                 region->key(), FI_UINT64, FI_SUM),
                0);
    }
  }
  std::uint64_t ask() {
    std::uint64_t zero = 0, result = ~std::uint64_t{0};
    Op op;
    EXPECT_EQ(pair->b.post([&] {
      return fi_fetch_atomic(pair->b.ep.get(), &zero, 1, nullptr, &result, nullptr, pair->to_a,
                             region->address(), region->key(), FI_UINT64, FI_SUM, &op);
    }),
              0);
    EXPECT_EQ(pair->b.await(op).err, 0);
    return result;
  }
  std::unique_ptr<Pair> pair;
  std::unique_ptr<Region> region;
  fi_addr_t to_self = FI_ADDR_NOTAVAIL;
};

TEST_F(OwnFirst, an_accumulate_to_oneself_precedes_the_fetch_of_another) {
  for (std::uint64_t round = 0; round < 200; ++round) {
    add(1);
    ASSERT_EQ(ask(), round + 2);
  }
}

// More than one turn takes from a peer, and than fits into a ring at once.
TEST_F(OwnFirst, so_do_many) {
  constexpr unsigned many = 1500;
  add(many);
  EXPECT_EQ(ask(), 1u + many);
}

// Messages to oneself, with receives posted before or after, of any tag or of theirs: they match in
// the order in which they were sent, whole, however they went.
TEST(OwnMessages, match_in_order_and_arrive_whole) {
  Pair pair(Wish{.caps = FI_MSG | FI_TAGGED});
  ASSERT_TRUE(pair.ready()) << pair.why();
  Node& node = pair.a;
  const fi_addr_t self = node.insert(node.name());
  struct Message {
    std::vector<std::uint8_t> sent, got;
    Op sending, receiving;
    bool expected = false;
  };
  std::mt19937 random(20261128);
  for (int round = 0; round < 40; ++round) {
    std::deque<Message> messages(12);
    std::size_t sent = 0, posted = 0;
    while (sent < messages.size() || posted < messages.size()) {
      if (sent < messages.size() && random() % 2 == 0) {
        Message& message = messages[sent];
        message.sent = pattern(random() % 3 == 0 ? random() % 300'000 : random() % 6'000, random());
        ASSERT_EQ(node.post([&] {
          return fi_tsend(node.ep.get(), message.sent.data(), message.sent.size(), nullptr, self, 7,
                          &message.sending.context);
        }),
                  0);
        ++sent;
      } else if (posted < messages.size()) {
        Message& message = messages[posted];
        message.got.resize(300'000);
        const bool any = random() % 2 == 0;
        ASSERT_EQ(node.post([&] {
          return fi_trecv(node.ep.get(), message.got.data(), message.got.size(), nullptr,
                          any ? FI_ADDR_UNSPEC : self, 7, random() % 2 == 0 ? 0 : 0xff,
                          &message.receiving.context);
        }),
                  0);
        ++posted;
      }
    }
    for (Message& message : messages) {
      ASSERT_EQ(node.await(message.receiving).err, 0);
      ASSERT_EQ(node.await(message.sending).err, 0);
      ASSERT_EQ(difference(message.got.data(), message.sent), "");
    }
  }
}

}  // namespace
}  // namespace fabric_test
