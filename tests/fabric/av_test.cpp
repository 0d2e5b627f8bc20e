// Address vectors: maps and tables, what is inserted, found, printed and removed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "transfer.hpp"

namespace fabric_test {
namespace {

Wish with(fi_av_type type) {
  return Wish{.caps = FI_MSG | FI_TAGGED | FI_SOURCE, .av = type};
}

// The name of an endpoint that may be gone already: an address can be inserted all the same.
std::vector<std::byte> name_of_another() {
  Node other(Wish{});
  return other.ready() ? other.name() : std::vector<std::byte>{};
}

class Vectors : public testing::TestWithParam<fi_av_type> {};

TEST_P(Vectors, what_is_inserted_is_found) {
  Node node(with(GetParam()));
  if (!node.ready()) GTEST_SKIP() << node.why();
  const auto own = node.name();
  const fi_addr_t address = node.insert(own);
  if (GetParam() == FI_AV_TABLE) {
    EXPECT_EQ(address, 0u);
  }
  std::vector<std::byte> found(own.size() + 8, std::byte{0xee});
  std::size_t length = found.size();
  ASSERT_EQ(fi_av_lookup(node.av.get(), address, found.data(), &length), 0);
  EXPECT_EQ(length, own.size());
  EXPECT_TRUE(std::equal(own.begin(), own.end(), found.begin()));
  // Too little room: cut, and the length says how much it takes.
  std::fill(found.begin(), found.end(), std::byte{0xee});
  length = own.size() - 1;
  ASSERT_EQ(fi_av_lookup(node.av.get(), address, found.data(), &length), 0);
  EXPECT_EQ(length, own.size());
  EXPECT_EQ(found[own.size() - 1], std::byte{0xee});
}

TEST_P(Vectors, a_batch_is_inserted_in_order) {
  Node node(with(GetParam()));
  if (!node.ready()) GTEST_SKIP() << node.why();
  std::vector<std::byte> names;
  constexpr std::size_t count = 5;
  const auto one = name_of_another();
  for (std::size_t i = 0; i < count; ++i) {
    const auto name = i == 0 ? node.name() : name_of_another();
    ASSERT_EQ(name.size(), one.size());
    names.insert(names.end(), name.begin(), name.end());
  }
  fi_addr_t addresses[count];
  ASSERT_EQ(fi_av_insert(node.av.get(), names.data(), count, addresses, 0, nullptr),
            static_cast<int>(count));
  for (std::size_t i = 0; i < count; ++i) {
    if (GetParam() == FI_AV_TABLE) {
      EXPECT_EQ(addresses[i], i);
    }
    std::vector<std::byte> found(one.size());
    std::size_t length = found.size();
    ASSERT_EQ(fi_av_lookup(node.av.get(), addresses[i], found.data(), &length), 0);
    EXPECT_EQ(std::memcmp(found.data(), names.data() + i * one.size(), one.size()), 0);
  }
}

TEST_P(Vectors, no_address_is_inserted) {
  Node node(with(GetParam()));
  if (!node.ready()) GTEST_SKIP() << node.why();
  fi_addr_t address = 77;
  EXPECT_EQ(fi_av_insert(node.av.get(), node.name().data(), 0, &address, 0, nullptr), 0);
  EXPECT_EQ(address, 77u);
}

TEST_P(Vectors, removed_and_inserted_again_it_works) {
  Pair pair(with(GetParam()));
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  for (int round = 0; round < 3; ++round) {
    check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 64);
    const auto name = pair.b.name();
    ASSERT_EQ(fi_av_remove(pair.a.av.get(), &pair.to_b, 1, 0), 0);
    if (provider_is_haul()) {
      std::vector<std::byte> found(name.size());
      std::size_t length = found.size();
      EXPECT_LT(fi_av_lookup(pair.a.av.get(), pair.to_b, found.data(), &length), 0)
          << "what was removed is found";
    }
    pair.to_b = pair.a.insert(name);
  }
}

TEST_P(Vectors, a_duplicate_still_reaches_its_endpoint) {
  Pair pair(with(GetParam()));
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  if (!provider_is_haul()) GTEST_SKIP() << "undefined elsewhere";
  const fi_addr_t again = pair.a.insert(pair.b.name());
  check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 64);
  check_transfer(pair, {.to = again, .tag = 1}, {.tag = 1}, 64);
  check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 64 * kib);
}

TEST_P(Vectors, unknown_addresses_are_refused) {
  Node node(with(GetParam()));
  if (!node.ready()) GTEST_SKIP() << node.why();
  if (!provider_is_haul()) GTEST_SKIP() << "undefined elsewhere";
  char byte = 0;
  Op op;
  for (const fi_addr_t wrong : {fi_addr_t{12345}, fi_addr_t{FI_ADDR_UNSPEC}}) {
    EXPECT_EQ(fi_tsend(node.ep.get(), &byte, 1, nullptr, wrong, 0, &op), -FI_EINVAL);
    std::size_t length = 1;
    EXPECT_EQ(fi_av_lookup(node.av.get(), wrong, &byte, &length), -FI_EINVAL);
    fi_addr_t removed = wrong;
    EXPECT_EQ(fi_av_remove(node.av.get(), &removed, 1, 0), -FI_EINVAL);
  }
}

// A name that no endpoint can have is told from one that might have.
TEST_P(Vectors, garbage_is_not_inserted) {
  Node node(with(GetParam()));
  if (!node.ready()) GTEST_SKIP() << node.why();
  if (!provider_is_haul()) GTEST_SKIP() << "undefined elsewhere";
  const std::vector<std::byte> garbage(node.name().size(), std::byte{0xa5});
  fi_addr_t address = 0;
  EXPECT_EQ(fi_av_insert(node.av.get(), garbage.data(), 1, &address, 0, nullptr), 0);
  EXPECT_EQ(address, FI_ADDR_NOTAVAIL);
  int error = 0;
  EXPECT_EQ(fi_av_insert(node.av.get(), garbage.data(), 1, &address, FI_SYNC_ERR, &error), 0);
  EXPECT_GT(error, 0);
}

TEST_P(Vectors, strings_of_addresses) {
  Node node(with(GetParam()));
  if (!node.ready()) GTEST_SKIP() << node.why();
  const auto own = node.name();
  std::string text(200, 'x');
  std::size_t length = text.size();
  ASSERT_EQ(fi_av_straddr(node.av.get(), own.data(), text.data(), &length), text.data());
  const std::size_t needed = std::strlen(text.c_str());
  EXPECT_GT(needed, 0u);
  EXPECT_GE(length, needed);
  char little[4] = {'x', 'x', 'x', 'x'};
  std::size_t room = 3;
  fi_av_straddr(node.av.get(), own.data(), little, &room);
  EXPECT_GE(room, needed);
  EXPECT_EQ(little[3], 'x') << "more than the room given was written";
  EXPECT_EQ(std::string(little, strnlen(little, 3)), text.substr(0, strnlen(little, 3)));
}

INSTANTIATE_TEST_SUITE_P(Av, Vectors, testing::Values(FI_AV_MAP, FI_AV_TABLE),
                         [](const testing::TestParamInfo<fi_av_type>& type) {
                           return type.param == FI_AV_MAP ? "map" : "table";
                         });

TEST(Av, identifiers_of_the_user) {
  const Wish wish{.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_AV_USER_ID};
  if (!ask(wish)) GTEST_SKIP() << "FI_AV_USER_ID is not offered";
  Pair pair(wish);
  ASSERT_TRUE(pair.ready());
  ASSERT_EQ(fi_av_remove(pair.b.av.get(), &pair.to_a, 1, 0), 0);
  fi_addr_t address = 0xfeed;
  ASSERT_EQ(
      fi_av_insert(pair.b.av.get(), pair.a.name().data(), 1, &address, FI_AV_USER_ID, nullptr), 1);
  pair.to_a = 0xfeed;  // what a completion names it by
  check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 64);
}

TEST(Av, a_source_that_was_not_inserted) {
  const Wish wish{.caps = FI_MSG | FI_TAGGED | FI_SOURCE};
  Node a(wish), b(wish);
  if (!a.ready()) GTEST_SKIP() << a.why();
  a.companions = {&b};
  b.companions = {&a};
  const fi_addr_t to_b = a.insert(b.name());
  for (const std::size_t size : {std::size_t{8}, 256 * kib}) {
    const auto sent = pattern(size, 3);
    std::vector<std::uint8_t> got(size);
    Op send_op, receive_op;
    ASSERT_EQ(receive(b, {.tag = 1}, got.data(), size, receive_op), 0);
    ASSERT_EQ(send(a, {.to = to_b, .tag = 1}, sent.data(), size, send_op), 0);
    const Completion received = b.await(receive_op);
    ASSERT_EQ(received.err, 0);
    EXPECT_EQ(received.source, FI_ADDR_NOTAVAIL);
    EXPECT_EQ(difference(got.data(), sent), "");
    EXPECT_EQ(a.await(send_op).err, 0);
  }
}

// The message has come before its sender was inserted, the receive is posted afterwards.
TEST(Av, a_source_inserted_behind_its_message) {
  const Wish wish{.caps = FI_MSG | FI_TAGGED | FI_SOURCE};
  Node a(wish), b(wish);
  if (!a.ready()) GTEST_SKIP() << a.why();
  a.companions = {&b};
  const fi_addr_t to_b = a.insert(b.name());
  const auto sent = pattern(64, 3);
  std::vector<std::uint8_t> got(sent.size());
  Op send_op, receive_op;
  ASSERT_EQ(send(a, {.to = to_b, .tag = 1}, sent.data(), sent.size(), send_op), 0);
  ASSERT_TRUE(a.stays_quiet() || a.take(send_op));  // progress of both: it lies there, unexpected
  const fi_addr_t to_a = b.insert(a.name());
  ASSERT_EQ(receive(b, {.tag = 1}, got.data(), got.size(), receive_op), 0);
  const Completion received = b.await(receive_op);
  ASSERT_EQ(received.err, 0);
  EXPECT_EQ(received.source, to_a);
  EXPECT_EQ(difference(got.data(), sent), "");
}

// As a large job does: most of these never speak.
TEST(Av, the_addresses_of_256_endpoints) {
  Pair pair(with(FI_AV_TABLE));
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  if (!provider_is_haul()) GTEST_SKIP() << "others have limits";
  for (int i = 0; i < 255; ++i) {
    const auto name = name_of_another();
    ASSERT_NE(pair.a.insert(name), FI_ADDR_NOTAVAIL);
    if (HasFailure()) return;
  }
  check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 64 * kib);
}

}  // namespace
}  // namespace fabric_test
