// What is a fabric's own: which providers there are, names that do not fit a node, locks.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "atomic/node.hpp"

namespace atomic_test {
namespace {

constexpr char fabric[] = "fabric:tcp;ofi_rxm:127.0.0.1";

class OverFabric : public testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_fabric().empty()) GTEST_SKIP() << why_no_fabric();
  }
  // How it is refused.
  static std::string refusal_of(const std::string& responder, int code) {
    haul_atomic_node* none = nullptr;
    EXPECT_EQ(haul_atomic_node_open(responder.c_str(), nullptr, &none), code) << responder;
    EXPECT_EQ(none, nullptr);
    return haul_last_error();
  }
};

TEST_F(OverFabric, ProvidersThatAreNotThereAreRefused) {
  EXPECT_NE(refusal_of("fabric:nonesuch", HAUL_ENOTSUP).find("'nonesuch'"), std::string::npos);
  EXPECT_NE(refusal_of("fabric:tcp;ofi_rxm:nowhere0", HAUL_ENOTSUP).find("nowhere0"),
            std::string::npos);
  refusal_of("fabric:tcp;ofi_rxm:203.0.113.77", HAUL_EIO);  // not ours
  refusal_of("fabric:", HAUL_EINVAL);
  refusal_of("fabric", HAUL_EINVAL);
}

TEST_F(OverFabric, ItSaysWhatItIsAndItsNamesAreReadBack) {
  const Node node = open_node(fabric);
  ASSERT_TRUE(node);
  EXPECT_EQ(description_of(node).find("fabric, tcp;ofi_rxm@127.0.0.1 port "), 0u);
  const Window window = make_window(node);
  const haul_atomic_window_name name = name_of(window);
  EXPECT_EQ(name.kind, 1);
  EXPECT_STREQ(name.host, "tcp;ofi_rxm@127.0.0.1");
  char text[160];
  ASSERT_EQ(haul_atomic_window_format(&name, text, sizeof text), 0);
  EXPECT_EQ(std::string(text).find("haul+fabric:tcp;ofi_rxm@127.0.0.1:"), 0u);
  haul_atomic_window_name read{};
  ASSERT_EQ(haul_atomic_window_parse(text, &read), 0);
  EXPECT_EQ(std::memcmp(&read, &name, sizeof name), 0);
}

TEST_F(OverFabric, NamesOfTheOtherKindAreNotSupported) {
  const Node by_fabric = open_node(fabric), by_udp = open_node("block:127.0.0.1");
  ASSERT_TRUE(by_fabric && by_udp);
  const haul_atomic_window_name fabric_name = name_of(make_window(by_fabric));
  const haul_atomic_window_name udp_name = name_of(make_window(by_udp));
  haul_atomic_remote* none = nullptr;
  EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_connect(by_udp.get(), &fabric_name, &none));
  EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_connect(by_fabric.get(), &udp_name, &none));
  haul_atomic_window_name other = fabric_name;
  std::strcpy(other.host, "verbs;ofi_rxm@127.0.0.1");
  EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_connect(by_fabric.get(), &other, &none));
  std::strcpy(other.host, "tcp;ofi_rxm@=AAAA");
  EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_connect(by_fabric.get(), &other, &none));
  std::strcpy(other.host, "127.0.0.1");
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_connect(by_fabric.get(), &other, &none));
}

TEST_F(OverFabric, AnOperationOutsideTheRegistrationTouchesNothing) {
  const Node server = open_node(fabric), client = open_node(fabric);
  ASSERT_TRUE(server && client);
  const Window window = make_window(server, 4096);
  haul_atomic_window_name larger = name_of(window);
  larger.bytes = 1 << 20;  // says the client; the provider knows better
  const Remote remote = connect(client, larger);
  haul_atomic_operation far = operation(HAUL_ATOMIC_ADD, larger.address + 65536, 1);
  EXPECT_LT(haul_atomic_run(remote.get(), &far, 1), 0);
  // Neither side is the worse for it.
  const Remote again = connect(client, name_of(window));
  ASSERT_TRUE(again);
  EXPECT_EQ(haul_atomic_fetch_add(again.get(), larger.address, 1, nullptr), 0) << haul_last_error();
  EXPECT_EQ(word_of(window), 1u);
}

// A counter that only the lock protects.
TEST_F(OverFabric, LocksExclude) {
  constexpr std::uint32_t members = 3;
  constexpr std::uint64_t each = 60;
  const Node home = open_node(fabric);
  ASSERT_TRUE(home);
  const Window window = make_window(home);
  const haul_atomic_lock_place place{name_of(window), 0};
  volatile std::uint64_t counter = 0;
  std::uint64_t last_token = 0;
  std::vector<std::thread> running;
  for (std::uint32_t rank = 0; rank < members; ++rank) {
    running.emplace_back([&, rank] {
      const Node node = open_node(fabric);
      ASSERT_TRUE(node);
      const Window own = make_window(node);
      haul_atomic_lock_options options{};
      options.size = sizeof options;
      options.rank = rank;
      options.count = members;
      options.home = &place;
      options.lease_ns = 20'000'000'000;  // nobody dies here, however slow the machine is
      haul_atomic_lock* lock = nullptr;
      ASSERT_EQ(haul_atomic_lock_open(node.get(), own.get(), &options, &lock), 0)
          << haul_last_error();
      for (std::uint64_t i = 0; i < each; ++i) {
        std::uint64_t token = 0;
        ASSERT_EQ(haul_atomic_lock_acquire(lock, UINT64_MAX, &token), 0) << haul_last_error();
        EXPECT_GT(token, last_token);
        last_token = token;
        counter = counter + 1;
        ASSERT_EQ(haul_atomic_lock_release(lock), 0) << haul_last_error();
      }
      EXPECT_EQ(haul_atomic_lock_close(lock), 0);
    });
  }
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(counter, members * each);
}

}  // namespace
}  // namespace atomic_test
