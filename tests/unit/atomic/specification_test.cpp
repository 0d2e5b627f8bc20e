// The words of haul_atomic_node_open().
#include "atomic/node/specification.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace haul::atomics {
namespace {

using Kind = Specification::Kind;

TEST(Specification, KnowsEveryWordOfTheReference) {
  struct Case {
    const char* text;
    Kind kind;
    HostMode host;
    XdpMode xdp;
    bool fallback;
    const char* where;
  };
  constexpr HostMode any_host = HostMode::block;
  constexpr XdpMode any_xdp = XdpMode::automatic;
  const Case cases[] = {
      {"xdp:eth0", Kind::xdp, any_host, XdpMode::automatic, true, "eth0"},
      {"xdp-native:eth0", Kind::xdp, any_host, XdpMode::native, false, "eth0"},
      {"xdp-skb:eth0", Kind::xdp, any_host, XdpMode::generic, false, "eth0"},
      {"poll", Kind::host, HostMode::poll, any_xdp, false, ""},
      {"poll:10.0.0.1", Kind::host, HostMode::poll, any_xdp, false, "10.0.0.1"},
      {"spin", Kind::host, HostMode::spin, any_xdp, false, ""},
      {"spin:fe80::1%eth0", Kind::host, HostMode::spin, any_xdp, false, "fe80::1%eth0"},
      {"block", Kind::host, HostMode::block, any_xdp, false, ""},
      {"block:::1", Kind::host, HostMode::block, any_xdp, false, "::1"},
      {"block:", Kind::host, HostMode::block, any_xdp, false, ""},
      {"fabric:tcp;ofi_rxm", Kind::fabric, any_host, XdpMode::automatic, false, ""},
      {"fabric:tcp;ofi_rxm:::1", Kind::fabric, any_host, XdpMode::automatic, false, "::1"},
      {"none", Kind::none, any_host, XdpMode::automatic, false, ""},
      {"none:eth0", Kind::none, any_host, XdpMode::automatic, false, "eth0"},
      {"none-native:eth0", Kind::none, any_host, XdpMode::native, false, "eth0"},
      {"none-skb:eth0", Kind::none, any_host, XdpMode::generic, false, "eth0"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.text);
    Specification found;
    Error error;
    ASSERT_TRUE(parse_specification(one.text, &found, &error)) << error.sentence;
    EXPECT_EQ(found.kind, one.kind);
    EXPECT_STREQ(found.where, one.where);
    EXPECT_EQ(found.has_fallback, one.fallback);
    if (one.kind == Kind::host) {
      EXPECT_EQ(found.host_mode, one.host);
    } else {
      EXPECT_EQ(found.xdp_mode, one.xdp);
    }
  }
}

TEST(Specification, RefusesOthersWithASentence) {
  const std::string long_name(64, 'a');
  const std::string texts[] = {
      "",           "x",          "XDP:eth0",     "xdp ",     " poll",
      "polls",      "pol",        ":eth0",        "nonesuch", "xdp-",
      "xdp-fast:x", "block-skb",  "poll-native",  "xdp",      "xdp:",
      "xdp-skb",    "xdp-native", "xdp-native:",  "none-skb", "none-native",
      "none-skb:",  "no",         "block\n:eth0", "none-",    "xdp:" + long_name};
  for (const std::string& text : texts) {
    Specification found;
    Error error;
    EXPECT_FALSE(parse_specification(text.c_str(), &found, &error)) << text;
    EXPECT_EQ(error.code, Code::invalid) << text;
    EXPECT_STRNE(error.sentence, "") << text;
  }
}

TEST(Specification, APlaceMayHave63Characters) {
  const std::string longest(63, 'a');
  Specification found;
  Error error;
  ASSERT_TRUE(parse_specification(("poll:" + longest).c_str(), &found, &error));
  EXPECT_EQ(found.where, longest);
}

}  // namespace
}  // namespace haul::atomics
