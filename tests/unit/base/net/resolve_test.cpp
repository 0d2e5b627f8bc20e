// Which names mean this host, and which ports.
#include "base/net/resolve.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace haul::os {
namespace {

TEST(Resolve, this_host_by_number_and_name) {
  EXPECT_TRUE(is_this_host(nullptr, false));
  EXPECT_TRUE(is_this_host("127.0.0.1", true));
  EXPECT_TRUE(is_this_host("127.9.9.9", true));
  EXPECT_TRUE(is_this_host("0.0.0.0", true));
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  EXPECT_TRUE(is_this_host(name, false));
}

TEST(Resolve, no_other_host) {
  EXPECT_FALSE(is_this_host("192.0.2.1", true));
  EXPECT_FALSE(is_this_host("localhost", true)) << "no number";
  EXPECT_FALSE(is_this_host("", false));
  EXPECT_FALSE(is_this_host("no-such-host.invalid", false));
}

TEST(Resolve, ports_by_number) {
  EXPECT_EQ(port_of("1"), 1);
  EXPECT_EQ(port_of("65535"), 65535);
  EXPECT_EQ(port_of("65536"), 0);
  EXPECT_EQ(port_of("99999999999999999999"), 0);
  EXPECT_EQ(port_of("0"), 0);
  EXPECT_EQ(port_of("12x"), 0);
  EXPECT_EQ(port_of(""), 0);
  EXPECT_EQ(port_of(nullptr), 0);
}

}  // namespace
}  // namespace haul::os
