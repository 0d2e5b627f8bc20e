// Bad arguments of every function: each is refused with a sentence, nothing happens.
#include <cstring>

#include "atomic/node.hpp"

namespace atomic_test {
namespace {

class Arguments : public testing::Test {
 protected:
  Node server = open_node("block:127.0.0.1");
  Window window = make_window(server);
  haul_atomic_window_name name = name_of(window);
  Node client = open_node("none");
  Remote remote = connect(client, name);
  haul_atomic_operation one = operation(HAUL_ATOMIC_ADD, name.address, 1);
};

TEST_F(Arguments, OfOpen) {
  haul_atomic_node* node = client.get();
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_node_open(nullptr, nullptr, &node));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_node_open("none", nullptr, nullptr));
  for (const char* word : {"", "xdpp:eth0", "xdp", "xdp-skb:", "poll-skb", "NONE", "none-skb"}) {
    node = client.get();
    EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_node_open(word, nullptr, &node));
    EXPECT_EQ(node, nullptr) << word;
  }
  for (const char* address :
       {"block:localhost", "block:300.0.0.1", "block:1.2.3.4.5", "poll:eth0"}) {
    EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_node_open(address, nullptr, &node));
  }
  // Documentation's addresses are nobody's here.
  EXPECT_REFUSED(HAUL_EIO, haul_atomic_node_open("block:192.0.2.1", nullptr, &node));
  EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_node_open("xdp-skb:nosuch0", nullptr, &node));
  EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_node_open("none:nosuch0", nullptr, &node));
  EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_node_open("xdp:nosuch0", nullptr, &node));
}

TEST_F(Arguments, OfOptions) {
  const auto refused = [](auto change, int code = HAUL_EINVAL) {
    haul_atomic_node_options options = default_options();
    change(options);
    haul_atomic_node* node = nullptr;
    EXPECT_REFUSED(code, haul_atomic_node_open("block:127.0.0.1", &options, &node));
    EXPECT_EQ(node, nullptr);
  };
  refused([](auto& options) { options.size = 0; });
  refused([](auto& options) { options.size = sizeof options - 1; });
  refused([](auto& options) { options.size = sizeof options + 8; });
  refused([](auto& options) { options.hearing = 3; });
  refused([](auto& options) { options.reserved = 1; });
  refused([](auto& options) { options.sessions = 65537; });
  refused([](auto& options) { options.connections = 4097; });
  refused([](auto& options) { options.cpu_plus_1 = -1; });
  refused([](auto& options) { options.host = "localhost"; });
  refused([](auto& options) {
    options.host = "0123456789012345678901234567890123456789012345678901234567890123";
  });
  refused([&](auto& options) { options.port = name.port; }, HAUL_EAGAIN);
  refused([](auto& options) { options.hearing = HAUL_ATOMIC_HEAR_COMPLETION; });
  refused([](auto& options) { options.cpu_plus_1 = 1 + 1'000'000; });
  haul_atomic_node_options options = default_options();
  options.port = 4711;
  haul_atomic_node* node = nullptr;
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_node_open("none", &options, &node));
}

TEST_F(Arguments, OfARunThatIsRefusedAreToldInEachOperation) {
  std::vector<std::uint64_t> tickets(HAUL_ATOMIC_MAX_OUTSTANDING);
  for (std::uint64_t& ticket : tickets) {
    ASSERT_EQ(haul_atomic_submit(remote.get(), &one, 1, 0, &ticket), 0);
  }
  std::vector<haul_atomic_operation> more(2, one);
  EXPECT_REFUSED(HAUL_EAGAIN, haul_atomic_run(remote.get(), more.data(), more.size()));
  for (const haul_atomic_operation& each : more) {
    EXPECT_EQ(each.status, HAUL_EAGAIN);
    EXPECT_EQ(each.old, 0u);
  }
}

TEST_F(Arguments, TheLargestOptionsAreTaken) {
  haul_atomic_node_options options = default_options();
  options.sessions = 65536;
  options.connections = 4096;
  options.spin_us = ~0u;
  options.timeout_ns = ~0ull;
  options.cpu_plus_1 = 1;
  options.host = "127.0.0.1";
  const Node node = open_node("block:127.0.0.1", options);
  const Window its = make_window(node);
  EXPECT_STREQ(name_of(its).host, "127.0.0.1");
  const Remote to_itself = connect(node, name_of(its));
  EXPECT_EQ(haul_atomic_fetch_add(to_itself.get(), name_of(its).address, 1, nullptr), 0);
  EXPECT_EQ(word_of(its), 1u);
}

TEST_F(Arguments, OfNodes) {
  char text[8];
  std::uint64_t value = 0;
  EXPECT_EQ(haul_atomic_node_close(nullptr), 0);
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_node_describe(nullptr, text, sizeof text));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_node_describe(client.get(), nullptr, 8));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_node_describe(client.get(), text, 0));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_node_counters(nullptr, &value, 1));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_node_counters(client.get(), nullptr, 1));
  // Truncated.
  EXPECT_EQ(haul_atomic_node_describe(server.get(), text, sizeof text), 0);
  EXPECT_STREQ(text, "block, ");
  EXPECT_EQ(haul_atomic_node_describe(server.get(), text, 3), 0);
  EXPECT_STREQ(text, "bl");
}

TEST_F(Arguments, OfWindows) {
  haul_atomic_window* none = window.get();
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_create(nullptr, 1, &none));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_create(server.get(), 1, nullptr));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_create(server.get(), 0, &none));
  EXPECT_EQ(none, nullptr);
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_create(server.get(), (1ull << 40) + 1, &none));
  EXPECT_REFUSED(HAUL_ENOTSUP, haul_atomic_window_create(client.get(), 1, &none));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_attach(nullptr, &none));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_attach(&name, nullptr));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_export(nullptr, &name));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_export(window.get(), nullptr));
  EXPECT_EQ(haul_atomic_window_destroy(nullptr), 0);
  EXPECT_EQ(haul_atomic_window_memory(nullptr), nullptr);
  EXPECT_EQ(haul_atomic_window_bytes(nullptr), 0u);
  char text[160];
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_format(nullptr, text, sizeof text));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_format(&name, nullptr, sizeof text));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_format(&name, text, 10));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_parse(nullptr, &name));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_parse(text, nullptr));
  ASSERT_EQ(haul_atomic_window_format(&name, text, sizeof text), 0);
  haul_atomic_window_name read{};
  EXPECT_EQ(haul_atomic_window_parse(text, &read), 0);
  EXPECT_EQ(std::memcmp(&read, &name, sizeof name), 0);
}

TEST_F(Arguments, OfNames) {
  haul_atomic_remote* none = nullptr;
  haul_atomic_window* nothing = nullptr;
  const auto refused = [&](auto change) {
    haul_atomic_window_name wrong = name;
    change(wrong);
    EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_connect(client.get(), &wrong, &none));
  };
  refused([](auto& wrong) { wrong.kind = 2; });
  refused([](auto& wrong) { std::memset(wrong.host, '1', sizeof wrong.host); });
  refused([](auto& wrong) { std::strcpy(wrong.host, "localhost"); });
  refused([](auto& wrong) { wrong.host[0] = '\0'; });
  haul_atomic_window_name wrong = name;
  wrong.kind = 2;
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_attach(&wrong, &nothing));
  wrong = name;
  std::memset(wrong.host, '1', sizeof wrong.host);
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_attach(&wrong, &nothing));
}

TEST_F(Arguments, OfConnections) {
  haul_atomic_remote* none = remote.get();
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_connect(nullptr, &name, &none));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_connect(client.get(), nullptr, &none));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_connect(client.get(), &name, nullptr));
  EXPECT_EQ(haul_atomic_disconnect(nullptr), 0);
  haul_atomic_completion completion{};
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_submit(nullptr, &one, 1, 0, nullptr));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_submit(remote.get(), nullptr, 1, 0, nullptr));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_submit(remote.get(), &one, 0, 0, nullptr));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_submit(remote.get(), &one, 17, 0, nullptr));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_test(nullptr, 1, &one, 1));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_test(remote.get(), 999, &one, 1));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_wait(nullptr, 1, &one, 1));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_wait(remote.get(), 999, &one, 1));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_reap(nullptr, &completion, 1));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_reap(remote.get(), nullptr, 1));
  EXPECT_EQ(haul_atomic_reap(remote.get(), nullptr, 0), 0);
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_run(nullptr, &one, 1));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_run(remote.get(), nullptr, 1));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_run(remote.get(), &one, 0));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_run(remote.get(), &one, 17));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_run(nullptr, &one, 1));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_run(window.get(), nullptr, 1));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_run(window.get(), &one, 0));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_window_run(window.get(), &one, 17));
  EXPECT_EQ(word_of(window), 0u);
}

TEST_F(Arguments, TooManyConnectionsOfANode) {
  haul_atomic_node_options options = default_options();
  options.connections = 2;
  const Node small = open_node("none", options);
  Remote first = connect(small, name);
  const Remote second = connect(small, name);
  haul_atomic_remote* none = nullptr;
  EXPECT_REFUSED(HAUL_ENOMEM, haul_atomic_connect(small.get(), &name, &none));
  first.reset();
  first = connect(small, name);
  EXPECT_EQ(haul_atomic_fetch_add(first.get(), name.address, 1, nullptr), 0);
}

TEST_F(Arguments, CountersHaveNames) {
  std::uint64_t values[64];
  const int count = haul_atomic_node_counters(server.get(), values, 64);
  ASSERT_GT(count, 10);
  ASSERT_LT(count, 64);
  for (int i = 0; i < count; ++i) {
    const char* counter = haul_atomic_node_counter_name(static_cast<std::size_t>(i));
    ASSERT_NE(counter, nullptr);
    EXPECT_STRNE(counter, "");
    for (int j = 0; j < i; ++j) {
      EXPECT_STRNE(counter, haul_atomic_node_counter_name(static_cast<std::size_t>(j)));
    }
  }
  EXPECT_EQ(haul_atomic_node_counter_name(static_cast<std::size_t>(count)), nullptr);
  EXPECT_EQ(haul_atomic_node_counter_name(~std::size_t{0}), nullptr);
  // As many as fit.
  values[1] = 77;
  EXPECT_EQ(haul_atomic_node_counters(server.get(), values, 1), count);
  EXPECT_EQ(values[1], 77u);
  EXPECT_EQ(haul_atomic_node_counters(server.get(), nullptr, 0), count);
}

}  // namespace
}  // namespace atomic_test
