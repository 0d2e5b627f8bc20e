// Windows' names as text: what is written is read back, and what is no name is refused.
#include "atomic/window/name.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace haul::atomics {
namespace {

haul_atomic_window_name make(const char* host, std::uint16_t port, std::uint32_t window,
                             std::uint64_t address, std::uint64_t bytes, std::uint64_t key) {
  haul_atomic_window_name name{};
  std::strncpy(name.host, host, sizeof name.host - 1);
  name.port = port;
  name.window = window;
  name.address = address;
  name.bytes = bytes;
  name.key = key;
  return name;
}

std::string text_of(const haul_atomic_window_name& name) {
  char text[160];
  return format_name(name, text, sizeof text) ? text : "";
}

const haul_atomic_window_name plain =
    make("10.0.0.2", 9475, 0, 0x7f2a4c000000, 0x1000, 0x6d3f0a92c1b4e857);

TEST(Name, IsWrittenAsTheReferenceSays) {
  EXPECT_EQ(text_of(plain), "haul:10.0.0.2:9475/0/7f2a4c000000+1000#6d3f0a92c1b4e857");
  EXPECT_EQ(text_of(make("::1", 1, 255, 0, 1, 1)), "haul:[::1]:1/255/0+1#0000000000000001");
}

TEST(Name, IsReadBackAsItWas) {
  const haul_atomic_window_name names[] = {
      plain,
      make("::1", 65535, 0xffffffff, ~0ull, ~0ull, ~0ull),
      make("fe80::1%eth0", 80, 7, 0x1000, 1ull << 40, 1),
      make("2001:db8::ffff:192.0.2.1", 1, 1, 1, 1, 0x8000000000000000),
      make("0123456789012345678901234567890123456789012345678901234567890.2", 0, 0, 0, 0, 0),
  };
  for (const haul_atomic_window_name& name : names) {
    SCOPED_TRACE(name.host);
    const std::string text = text_of(name);
    ASSERT_FALSE(text.empty());
    haul_atomic_window_name found;
    std::memset(static_cast<void*>(&found), 0xff, sizeof found);
    ASSERT_TRUE(parse_name(text.c_str(), &found)) << text;
    EXPECT_EQ(std::memcmp(&found, &name, sizeof name), 0) << text;
  }
}

TEST(Name, OfAFabricHasASchemeOfItsOwn) {
  haul_atomic_window_name name = make("tcp;ofi_rxm@10.0.0.2", 9475, 3, 0x1000, 0x2000, 0x7f);
  name.kind = by_fabric;
  const std::string text = text_of(name);
  EXPECT_EQ(text, "haul+fabric:tcp;ofi_rxm@10.0.0.2:9475/3/1000+2000#000000000000007f");
  haul_atomic_window_name found{};
  ASSERT_TRUE(parse_name(text.c_str(), &found));
  EXPECT_EQ(std::memcmp(&found, &name, sizeof name), 0);
  EXPECT_FALSE(parse_name(("x" + text).c_str(), &found));
  EXPECT_FALSE(parse_name("haul+:1.2.3.4:1/0/1+1#1", &found));
  EXPECT_TRUE(is_name(name));
  name.kind = 2;
  EXPECT_FALSE(is_name(name));
  std::memset(name.host, 'f', 63);
  name.host[10] = ':';
  name.kind = by_fabric;
  name.port = 65535;
  name.window = 0xffffffff;
  name.address = name.bytes = name.key = ~0ull;
  EXPECT_FALSE(text_of(name).empty());
}

TEST(Name, NeedsRoomForAllOfIt) {
  const std::size_t length = text_of(plain).size();
  char text[160];
  for (std::size_t bytes = 0; bytes <= length; ++bytes) {
    EXPECT_FALSE(format_name(plain, text, bytes)) << bytes;
  }
  EXPECT_TRUE(format_name(plain, text, length + 1));
}

TEST(Name, OfTheLongestHostFitsThePromisedRoom) {
  const std::string host(63, 'f');
  haul_atomic_window_name name = make(host.c_str(), 65535, 0xffffffff, ~0ull, ~0ull, ~0ull);
  name.host[10] = ':';
  EXPECT_FALSE(text_of(name).empty());
}

TEST(Name, WhatIsNoneIsRefusedAndLeftAlone) {
  const char* const texts[] = {
      "",
      "haul",
      "haul:",
      "Haul:10.0.0.2:9475/0/7f2a4c000000+1000#6d3f0a92c1b4e857",
      " haul:10.0.0.2:9475/0/7f2a4c000000+1000#6d3f0a92c1b4e857",
      "haul:10.0.0.2:9475/0/7f2a4c000000+1000#6d3f0a92c1b4e857 ",
      "haul:10.0.0.2:9475/0/7f2a4c000000+1000#6d3f0a92c1b4e857\n",
      "haul:10.0.0.2:9475/0/7f2a4c000000+1000#",
      "haul:10.0.0.2:9475/0/7f2a4c000000+1000",
      "haul:10.0.0.2:9475/0/7f2a4c000000#6d3f",
      "haul:10.0.0.2:9475/0/+1000#6d3f",
      "haul:10.0.0.2:9475/0/7f2a4c000000+#6d3f",
      "haul:10.0.0.2:9475//7f2a+1000#6d3f",
      "haul:10.0.0.2:/0/7f2a+1000#6d3f",
      "haul:10.0.0.2/0/7f2a+1000#6d3f",
      "haul::9475/0/7f2a+1000#6d3f",
      "haul:[]:9475/0/7f2a+1000#6d3f",
      "haul:[::1:9475/0/7f2a+1000#6d3f",
      "haul:[::1]9475/0/7f2a+1000#6d3f",
      "haul:10.0.0.2:65536/0/7f2a+1000#6d3f",
      "haul:10.0.0.2:-1/0/7f2a+1000#6d3f",
      "haul:10.0.0.2:0x50/0/7f2a+1000#6d3f",
      "haul:10.0.0.2:a/0/7f2a+1000#6d3f",
      "haul:10.0.0.2:80/4294967296/7f2a+1000#6d3f",
      "haul:10.0.0.2:80/0/10000000000000000+1000#6d3f",
      "haul:10.0.0.2:80/0/7f2a+10000000000000000#6d3f",
      "haul:10.0.0.2:80/0/7f2a+1000#10000000000000000",
      "haul:10.0.0.2:80/0/7F2A+1000#6d3f",
      "haul:10.0.0.2:80/0/7f2a+1000#6d3g",
      // a host of 64 characters
      "haul:0123456789012345678901234567890123456789012345678901234567890123:80/0/0+1#1",
  };
  for (const char* text : texts) {
    haul_atomic_window_name found = plain;
    EXPECT_FALSE(parse_name(text, &found)) << text;
    EXPECT_EQ(std::memcmp(&found, &plain, sizeof plain), 0) << text;
  }
}

TEST(Name, EveryShorterTextIsRefused) {
  const std::string text = "haul:[fe80::1%eth0]:9475/12/7f2a4c000000+1000#";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    haul_atomic_window_name found{};
    EXPECT_FALSE(parse_name(text.substr(0, length).c_str(), &found)) << length;
  }
}

}  // namespace
}  // namespace haul::atomics
