// Packets that the XDP program cannot read: with a VLAN's tag, in fragments, with IP options. The
// kernel reads them, the node's attendant serves them, by the same tables.
#include <vector>

#include "atomic/handmade.hpp"
#include "atomic/node.hpp"

namespace atomic_test {
namespace {

using haul::bench::Inside;

struct Mode {
  const char* name;
  const char* server;
  const char* client;
};

class OddPackets : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    if (!why_no_cable().empty()) GTEST_SKIP() << why_no_cable();
    cable = std::make_unique<Cable>();
    {
      const Inside inside(cable->server);
      server = open_node(GetParam().server);
    }
    ASSERT_TRUE(server);
    window = make_window(server);
    name = name_of(window);
  }
  Node open_client() {
    const Inside inside(cable->client);
    return open_node(GetParam().client);
  }
  std::uint64_t passed() const { return counter_of(server, "passed to the kernel"); }

  std::unique_ptr<Cable> cable;
  Node server;
  Window window;
  haul_atomic_window_name name{};
};

TEST_P(OddPackets, InFragmentsAndWholeOnesOfOneConnection) {
  // 560 bytes of 16 operations do not fit, one operation's 80 do.
  cable->client.ip("link set cable0 mtu 300");
  cable->server.ip("link set cable1 mtu 300");
  const Node client = open_client();
  const Remote remote = connect(client, name);
  ASSERT_TRUE(remote);
  std::uint64_t sum = 0;
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t before = passed();
    std::vector<haul_atomic_operation> many(16, operation(HAUL_ATOMIC_ADD, name.address, 1));
    ASSERT_EQ(haul_atomic_run(remote.get(), many.data(), many.size()), 0) << haul_last_error();
    for (const haul_atomic_operation& one : many) ASSERT_EQ(one.old, sum++);
    EXPECT_GE(passed(), before + 2);
    std::uint64_t old = 0;
    ASSERT_EQ(haul_atomic_fetch_add(remote.get(), name.address, 1, &old), 0);
    ASSERT_EQ(old, sum++);
  }
  EXPECT_EQ(word_of(window), sum);
}

// By hand, in the namespace of the client.
class ByHand : public OddPackets {
 protected:
  void SetUp() override {
    OddPackets::SetUp();
    if (!window) return;
    companion = open_client();  // native needs a program at this end, too
    inside = std::make_unique<Inside>(cable->client);
    handmade = std::make_unique<HandmadeClient>(name);
  }
  // The sum of so many more, each checked.
  void add(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t old = 0;
      ASSERT_TRUE(handmade->fetch_add(name.address, &old));
      ASSERT_EQ(old, sum++);
    }
  }
  void TearDown() override {
    if (window) {
      EXPECT_EQ(word_of(window), sum);
    }
    handmade.reset();
    inside.reset();
  }

  Node companion;
  std::unique_ptr<Inside> inside;
  std::unique_ptr<HandmadeClient> handmade;
  std::uint64_t sum = 0;
};

TEST_P(ByHand, WithAndWithoutIpOptions) {
  ASSERT_TRUE(handmade->hello());
  const std::uint64_t before = passed();
  add(20);
  EXPECT_EQ(passed(), before);
  handmade->put_options(true);
  add(20);
  EXPECT_GE(passed(), before + 20);
  handmade->put_options(false);
  const std::uint64_t now = passed();
  add(20);
  EXPECT_EQ(passed(), now);
}

TEST_P(ByHand, WithATag) {
  unsigned char there[6];
  {
    const Inside server_inside(cable->server);
    mac_of(Cable::server_interface, there);
  }
  ASSERT_TRUE(handmade->hello());
  // Tag 0 is nobody's VLAN but has a priority: every kernel reads it.
  const std::uint64_t before = passed();
  handmade->tag_frames(Cable::client_interface, there);
  add(20);
  EXPECT_GE(passed(), before + 20);
}

constexpr Mode modes[] = {{"Skb", "xdp-skb:cable1", "none"},
                          {"SkbHeardByMap", "xdp-skb:cable1", "none-skb:cable0"},
                          {"Native", "xdp-native:cable1", "none-native:cable0"}};

INSTANTIATE_TEST_SUITE_P(, OddPackets, testing::ValuesIn(modes),
                         [](const auto& mode) { return mode.param.name; });
INSTANTIATE_TEST_SUITE_P(, ByHand, testing::ValuesIn(modes),
                         [](const auto& mode) { return mode.param.name; });

}  // namespace
}  // namespace atomic_test
