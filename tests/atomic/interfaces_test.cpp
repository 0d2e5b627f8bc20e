// Interfaces: what a node says of them, those that are taken already, that go down and come up
// again; addresses of IPv6.
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "atomic/node.hpp"

namespace atomic_test {
namespace {

using haul::bench::Inside;

class Interfaces : public testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_cable().empty()) GTEST_SKIP() << why_no_cable();
    cable = std::make_unique<Cable>();
  }
  Node serve(const std::string& responder) {
    const Inside inside(cable->server);
    return open_node(responder);
  }
  std::unique_ptr<Cable> cable;
};

TEST(Descriptions, SayWhoServes) {
  for (const char* word : {"poll", "spin", "block"}) {
    const Node node = open_node(std::string(word) + ":127.0.0.1");
    const Window window = make_window(node);
    const haul_atomic_window_name name = name_of(window);
    EXPECT_STREQ(name.host, "127.0.0.1");
    EXPECT_EQ(description_of(node),
              std::string(word) + ", 127.0.0.1 port " + std::to_string(name.port));
  }
  EXPECT_EQ(description_of(open_node("none")), "none");
}

TEST(Descriptions, ANodeAtAllAddressesTellsOneThatCanBeReached) {
  const Node node = open_node("block");
  const Window window = make_window(node);
  const haul_atomic_window_name name = name_of(window);
  EXPECT_STRNE(name.host, "0.0.0.0");
  const Node client = open_node("none");
  const Remote reached = connect(client, name);
  EXPECT_EQ(haul_atomic_fetch_add(reached.get(), name.address, 1, nullptr), 0);
}

TEST_F(Interfaces, AreNamedWithTheirMode) {
  {
    const Node node = serve("xdp-skb:cable1");
    EXPECT_EQ(description_of(node).find("xdp, generic (skb), on cable1, 10.77.0.2 port "), 0u)
        << description_of(node);
  }
  {
    const Node node = serve("xdp-native:cable1");
    EXPECT_EQ(description_of(node).find("xdp, native, on cable1, 10.77.0.2 port "), 0u)
        << description_of(node);
  }
  // A virtual Ethernet sends natively only where its peer does, too.
  const Node node = serve("xdp:cable1");
  EXPECT_EQ(description_of(node).find("xdp, generic (skb), on cable1"), 0u);
}

TEST_F(Interfaces, WithAProgramAlreadyAreServedByAThread) {
  for (const char* there : {"none-skb:cable1", "none-native:cable1", "xdp-skb:cable1"}) {
    SCOPED_TRACE(there);
    const Node first = serve(there);
    const Inside inside(cable->server);
    haul_atomic_node* none = nullptr;
    EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_node_open("xdp-skb:cable1", nullptr, &none));
    EXPECT_NE(std::strstr(haul_last_error(), "already"), nullptr);
    EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_node_open("xdp-native:cable1", nullptr, &none));
    EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_node_open("none-skb:cable1", nullptr, &none));
    testing::internal::CaptureStderr();
    const Node second = open_node("xdp:cable1");
    EXPECT_NE(testing::internal::GetCapturedStderr().find("already"), std::string::npos);
    const std::string text = description_of(second);
    EXPECT_EQ(text.find("block on cable1, 10.77.0.2 port "), 0u) << text;
    EXPECT_NE(text.find("no XDP"), std::string::npos) << text;
    EXPECT_NE(text.find("already"), std::string::npos) << text;
    // And it does serve, beside the program.
    const Window window = make_window(second);
    const haul_atomic_window_name name = name_of(window);
    Node client;
    {
      const Inside there_inside(cable->client);
      client = open_node("none");
    }
    const Remote remote = connect(client, name);
    EXPECT_EQ(haul_atomic_fetch_add(remote.get(), name.address, 1, nullptr), 0);
    EXPECT_EQ(word_of(window), 1u);
  }
}

TEST_F(Interfaces, WithoutAnAddressAreRefused) {
  cable->server.ip("address flush dev cable1");
  const Inside inside(cable->server);
  haul_atomic_node* none = nullptr;
  // IPv6's own address comes by itself where the kernel has IPv6; XDP cannot use it.
  EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_node_open("xdp-skb:cable1", nullptr, &none));
}

TEST_F(Interfaces, ThatGoDownAndComeUpLoseNothing) {
  struct Case {
    const char* server;
    const char* client;
  };
  const Case cases[] = {{"xdp-skb:cable1", "none"},
                        {"xdp-skb:cable1", "none-skb:cable0"},
                        {"xdp-native:cable1", "none-native:cable0"},
                        {"block:10.77.0.2", "none-skb:cable0"}};
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(one.server) + " " + one.client);
    const Node server = serve(one.server);
    const Window window = make_window(server);
    const haul_atomic_window_name name = name_of(window);
    Node client;
    {
      const Inside inside(cable->client);
      client = open_node(one.client);
    }
    const Remote remote = connect(client, name);
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> done{0};
    std::thread load([&] {
      while (!stop) {
        std::uint64_t old = 0;
        const int result = haul_atomic_fetch_add(remote.get(), name.address, 1, &old);
        ASSERT_EQ(result, 0) << haul_last_error();
        ASSERT_EQ(old, done.load());
        ++done;
      }
    });
    const auto some_more = [&] {
      const std::uint64_t now = done.load();
      for (int i = 0; done.load() < now + 50 && i < 10'000; ++i) usleep(1000);
      EXPECT_GE(done.load(), now + 50) << "it does not go on";
    };
    some_more();
    for (const auto* space : {&cable->server, &cable->client}) {
      const std::string interface = space == &cable->server ? "cable1" : "cable0";
      space->ip("link set " + interface + " down");
      usleep(20'000);
      space->ip("link set " + interface + " up");
      some_more();
    }
    stop = true;
    load.join();
    EXPECT_EQ(word_of(window), done.load());
  }
}

TEST_F(Interfaces, ThatChangeTheirMacAreFoundAgain) {
  // The client's frames have the old one, and nobody takes them any more.
  const Node server = serve("block:10.77.0.2");
  const Window window = make_window(server);
  const haul_atomic_window_name name = name_of(window);
  Node client;
  {
    const Inside inside(cable->client);
    client = open_node("none-skb:cable0");
  }
  const Remote remote = connect(client, name);
  std::uint64_t old = 0;
  for (const char* mac : {"02:00:00:00:00:11", "02:00:00:00:00:12"}) {
    for (int i = 0; i < 20; ++i)
      ASSERT_EQ(haul_atomic_fetch_add(remote.get(), name.address, 1, &old), 0);
    cable->server.ip("link set cable1 down");
    cable->server.ip("link set cable1 address " + std::string(mac));
    cable->server.ip("link set cable1 up");
    cable->client.ip("neighbour flush dev cable0");
  }
  ASSERT_EQ(haul_atomic_fetch_add(remote.get(), name.address, 1, &old), 0) << haul_last_error();
  EXPECT_EQ(old, 40u);
  EXPECT_EQ(word_of(window), 41u);
}

TEST(AddressesOfSix, ServeAndAreNotMixedWithFour) {
  const Node server = open_node("block:::1");
  ASSERT_TRUE(server);
  const Window window = make_window(server);
  const haul_atomic_window_name name = name_of(window);
  EXPECT_STREQ(name.host, "::1");
  char text[160];
  ASSERT_EQ(haul_atomic_window_format(&name, text, sizeof text), 0);
  EXPECT_EQ(std::string(text).find("haul:[::1]:"), 0u);
  haul_atomic_window_name read{};
  ASSERT_EQ(haul_atomic_window_parse(text, &read), 0);
  const Node client = open_node("block:::1");
  const Remote remote = connect(client, read);
  for (std::uint64_t i = 0; i < 100; ++i) {
    std::uint64_t old = 0;
    ASSERT_EQ(haul_atomic_fetch_add(remote.get(), name.address, 1, &old), 0);
    ASSERT_EQ(old, i);
  }
  haul_atomic_window* attached = nullptr;
  ASSERT_EQ(haul_atomic_window_attach(&name, &attached), 0) << haul_last_error();
  const Window here(attached);
  EXPECT_EQ(word_of(here), 100u);
  const Node four = open_node("block:127.0.0.1");
  haul_atomic_remote* none = nullptr;
  EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_connect(four.get(), &name, &none));
}

TEST(AddressesOfSix, AndOfFourAreBothServedAndReachedByANodeAtAllAddresses) {
  for (const char* responder : {"poll", "spin", "block", "block:::"}) {
    SCOPED_TRACE(responder);
    const Node server = open_node(responder);
    const Window window = make_window(server);
    haul_atomic_window_name name = name_of(window);
    EXPECT_STRNE(name.host, "::");
    const Node client = open_node("none");
    std::uint64_t sum = 0;
    for (const char* host : {"127.0.0.1", "::1"}) {
      std::strcpy(name.host, host);
      const Remote remote = connect(client, name);
      ASSERT_TRUE(remote) << host;
      for (int i = 0; i < 20; ++i) {
        std::uint64_t old = 0;
        ASSERT_EQ(haul_atomic_fetch_add(remote.get(), name.address, 1, &old), 0);
        ASSERT_EQ(old, sum++);
      }
    }
    EXPECT_EQ(word_of(window), sum);
  }
}

// The program reads IPv4 alone: the node's thread hands it these.
TEST_F(Interfaces, WithXdpServeSixBesideFour) {
  cable->client.ip("address add fd77::1/64 dev cable0 nodad");
  const Node server = serve("xdp-skb:cable1");
  // Later than the node.
  cable->server.ip("address add fd77::2/64 dev cable1 nodad");
  const Window window = make_window(server);
  haul_atomic_window_name name = name_of(window);
  Node client;
  {
    const Inside inside(cable->client);
    client = open_node("none");
  }
  const Remote four = connect(client, name);
  std::strcpy(name.host, "fd77::2");
  const Remote six = connect(client, name);
  ASSERT_TRUE(four && six);
  for (std::uint64_t i = 0; i < 40; i += 2) {
    std::uint64_t old = 0;
    ASSERT_EQ(haul_atomic_fetch_add(four.get(), name.address, 1, &old), 0);
    ASSERT_EQ(old, i);
    ASSERT_EQ(haul_atomic_fetch_add(six.get(), name.address, 1, &old), 0);
    ASSERT_EQ(old, i + 1);
  }
  EXPECT_EQ(word_of(window), 40u);
  EXPECT_GE(counter_of(server, "passed to the kernel"), 21u);
}

}  // namespace
}  // namespace atomic_test
