// A fabric's addresses as names have them, and operations by providers that can do more or less.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "atomic/fabric/fabric_operation.hpp"
#include "atomic/link/fabric_host.hpp"
#include "unit/atomic/model.hpp"

namespace haul::atomics {
namespace {

TEST(FabricHost, OfEveryLengthIsReadBack) {
  for (std::size_t bytes = 1; bytes <= 43; ++bytes) {
    FabricHost host;
    std::strcpy(host.provider, "efa");
    host.bytes = bytes;
    for (std::size_t i = 0; i < bytes; ++i)
      host.address[i] = static_cast<std::uint8_t>(i * 37 + bytes);
    haul_atomic_window_name name{};
    ASSERT_TRUE(format_fabric_host(host, &name)) << bytes;
    EXPECT_EQ(name.port, 0);
    FabricHost found;
    ASSERT_TRUE(parse_fabric_host(name, &found)) << name.host;
    EXPECT_STREQ(found.provider, "efa");
    EXPECT_FALSE(found.is_socket_address);
    ASSERT_EQ(found.bytes, bytes) << name.host;
    EXPECT_EQ(std::memcmp(found.address, host.address, bytes), 0);
  }
  FabricHost host;
  std::strcpy(host.provider, "efa");
  host.bytes = 44;
  haul_atomic_window_name name{};
  EXPECT_FALSE(format_fabric_host(host, &name));
}

TEST(FabricHost, OfSocketsIsReadable) {
  for (const char* text : {"tcp;ofi_rxm@10.0.0.2", "tcp;ofi_rxm@2001:db8::1"}) {
    haul_atomic_window_name name{}, again{};
    std::strcpy(name.host, text);
    name.port = 1234;
    FabricHost host;
    ASSERT_TRUE(parse_fabric_host(name, &host));
    EXPECT_TRUE(host.is_socket_address);
    ASSERT_TRUE(format_fabric_host(host, &again));
    EXPECT_STREQ(again.host, text);
    EXPECT_EQ(again.port, 1234);
  }
}

TEST(FabricHost, WhatIsNoneIsRefused) {
  for (const char* text : {"", "10.0.0.2", "@10.0.0.2", "tcp@", "tcp@=", "tcp@=A", "tcp@=A!AA",
                           "tcp@localhost", "tcp@=AAAAB"}) {
    haul_atomic_window_name name{};
    std::strcpy(name.host, text);
    FabricHost host;
    EXPECT_FALSE(parse_fabric_host(name, &host)) << text;
  }
}

// A provider with a window of two words, and these abilities.
struct Provider {
  Abilities abilities;
  std::uint64_t words[2] = {};
  unsigned questions = 0;
  std::uint64_t interference = 0;  // what somebody else adds before each of the first questions
  unsigned interferences = 0;

  std::uint64_t ask(const ProviderQuestion& question) {
    ++questions;
    if (interferences > 0 && questions > 1) {
      words[question.offset / 8] += interference;
      --interferences;
    }
    EXPECT_TRUE(abilities.of(question.width)[question.code]);
    char* at = reinterpret_cast<char*>(words) + question.offset;
    std::uint64_t old = 0;
    std::memcpy(&old, at, question.width);
    const std::uint64_t mask = question.width == 4 ? 0xffffffff : ~0ull;
    const auto outcome = test::model(question.code, old, question.operand, question.compare, mask);
    std::memcpy(at, &outcome.word, question.width);
    return old;
  }
  wire_result run(const wire_operation& asked, std::uint64_t* old) {
    FabricOperation operation;
    ProviderQuestion question;
    if (operation.begin(asked, abilities, 4096, sizeof words, &question)) {
      while (operation.heard(ask(question), &question)) continue;
    }
    *old = operation.old();
    return operation.result();
  }
};

Abilities all() {
  Abilities made;
  for (unsigned code = WIRE_READ; code <= WIRE_XOR; ++code)
    made.narrow[code] = made.wide[code] = true;
  return made;
}
// As verbs: 64 bits, fetch&add and compare&swap.
Abilities few(bool reads, bool narrow) {
  Abilities made;
  made.wide[WIRE_ADD] = made.wide[WIRE_CAS] = true;
  made.wide[WIRE_READ] = reads;
  made.narrow[WIRE_CAS] = made.narrow[WIRE_READ] = narrow;
  return made;
}

TEST(FabricOperation, WhateverTheProviderLacksTheWordIsAsTheModelSays) {
  const Abilities kinds[] = {all(), few(true, false), few(false, false), few(true, true)};
  for (const Abilities& abilities : kinds) {
    for (unsigned code = WIRE_READ; code <= WIRE_XOR; ++code) {
      for (const std::uint64_t operand : test::samples) {
        for (const unsigned width : {4u, 8u}) {
          for (unsigned offset = 0; offset < 16; offset += width) {
            Provider provider{abilities};
            const std::uint64_t before = 0x0123456789abcdef;
            provider.words[0] = provider.words[1] = before;
            wire_operation asked{};
            asked.code = static_cast<__u8>(code);
            asked.width = static_cast<__u8>(width);
            asked.address = 4096 + offset;
            asked.operand = operand;
            const unsigned shift = offset % 8 * 8;
            const std::uint64_t mask = width == 4 ? 0xffffffff : ~0ull;
            const std::uint64_t field = (before >> shift) & mask;
            asked.compare = operand % 2 == 0 ? field : operand;
            const auto expected = test::model(code, field, operand, asked.compare, mask);
            std::uint64_t old = 0;
            ASSERT_EQ(provider.run(asked, &old), WIRE_DONE);
            EXPECT_EQ(old, expected.old) << code;
            EXPECT_EQ(provider.words[offset / 8],
                      (before & ~(mask << shift)) | (expected.word & mask) << shift);
            EXPECT_EQ(provider.words[1 - offset / 8], before);
          }
        }
      }
    }
  }
}

TEST(FabricOperation, OthersInBetweenAreNotLost) {
  Provider provider{few(true, false)};
  provider.interference = 0x100;
  provider.interferences = 5;
  wire_operation asked{};
  asked.code = WIRE_OR;
  asked.width = 8;
  asked.address = 4096;
  asked.operand = 1;
  std::uint64_t old = 0;
  EXPECT_EQ(provider.run(asked, &old), WIRE_DONE);
  EXPECT_EQ(old, 0x500u);
  EXPECT_EQ(provider.words[0], 0x501u);
  EXPECT_EQ(provider.questions, 7u);
}

TEST(FabricOperation, GuardedWordsAreStampedAndGivenUp) {
  Provider provider{all()};
  wire_operation asked{};
  asked.code = WIRE_ADD;
  asked.width = 8;
  asked.flags = WIRE_GUARDED;
  asked.stamp = 5;
  asked.address = 4104;
  asked.operand = 3;
  std::uint64_t old = 0;
  EXPECT_EQ(provider.run(asked, &old), WIRE_DONE);
  EXPECT_EQ(provider.words[1], 5ull << 32 | 3);
  asked.stamp = 4;
  EXPECT_EQ(provider.run(asked, &old), WIRE_STALE);
  EXPECT_EQ(provider.words[1], 5ull << 32 | 3);
  asked.stamp = 6;
  provider.interference = 1;
  provider.interferences = 1000;
  EXPECT_EQ(provider.run(asked, &old), WIRE_BUSY);
  EXPECT_EQ(provider.words[1] >> 32, 5u);
}

}  // namespace
}  // namespace haul::atomics
