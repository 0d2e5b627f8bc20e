// What endpoints of different nodes say to each other.
#include "fabric/transport/offnode/wire.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace haul;
using namespace haul::fabric;

namespace {

TEST(OffnodePlaces, SurviveTheAddress) {
  OffnodePlaces places;
  places.port = 40000;
  places.count = 3;
  places.addresses[0].bytes[0] = 10;
  places.addresses[1].six = true;
  places.addresses[1].bytes[15] = 7;
  places.addresses[2].bytes[0] = 11;
  Address address;
  write_places(places, &address);
  OffnodePlaces back;
  ASSERT_TRUE(read_places(address, &back));
  EXPECT_EQ(back.port, places.port);
  ASSERT_EQ(back.count, 3u);
  EXPECT_EQ(back.addresses[0], places.addresses[0]);
  EXPECT_EQ(back.addresses[1], places.addresses[2]);
  EXPECT_EQ(back.addresses[2], places.addresses[1]);
}

TEST(OffnodePlaces, OfHostileAddressesStayWithinThem) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 100000; ++i) {
    Address address;
    for (std::uint8_t& byte : address.offnode) byte = static_cast<std::uint8_t>(random());
    address.offnode_bytes = static_cast<std::uint8_t>(random());
    OffnodePlaces places;
    if (!read_places(address, &places)) continue;
    EXPECT_LE(address.offnode_bytes, Address::offnode_capacity);
    EXPECT_GE(places.count, 1u);
    EXPECT_LE(places.count, OffnodePlaces::capacity);
  }
}

TEST(LinkMessage, IsSoundOnlyWhole) {
  LinkMessage message;
  EXPECT_TRUE(message.valid());
  for (const auto spoil :
       {+[](LinkMessage& m) { m.magic ^= 1; }, +[](LinkMessage& m) { m.version ^= 1; },
        +[](LinkMessage& m) { m.kind = LinkMessage::Kind{0}; },
        +[](LinkMessage& m) { m.kind = LinkMessage::Kind{4}; },
        +[](LinkMessage& m) { m.name_bytes = sizeof m.name + 1; },
        +[](LinkMessage& m) { m.from.magic = 0; },
        +[](LinkMessage& m) { std::memset(m.providers, 'x', sizeof m.providers); },
        +[](LinkMessage& m) { std::memset(m.providers, 'x', sizeof m.providers - 1); }}) {
    LinkMessage spoiled = message;
    spoil(spoiled);
    EXPECT_FALSE(spoiled.valid());
  }
}

}  // namespace
