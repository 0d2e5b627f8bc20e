// TCP sockets: connecting, streams, ends, and the node's addresses.
#include "base/net/inet.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"

using namespace haul;

namespace {

constexpr std::uint64_t patience_ns = 10'000'000'000;

// Repeats a call that says -EAGAIN or -EINPROGRESS.
template <class Call>
auto insist(Call call) {
  const std::uint64_t end = now_ns() + patience_ns;
  auto result = call();
  while ((result == -EAGAIN || result == -EINPROGRESS) && now_ns() < end) {
    os::yield();
    result = call();
  }
  return result;
}

os::InetAddress loopback() {
  os::InetAddress address;
  address.bytes[0] = 127;
  address.bytes[3] = 1;
  return address;
}

TEST(Inet, LoopbackIsAnAddressOfItsOwn) {
  os::InetAddress addresses[16];
  const int count = os::local_addresses(addresses, 16, true);
  if (count == 0) GTEST_SKIP() << "the loopback interface is down";
  ASSERT_GT(count, 0);
  EXPECT_EQ(addresses[0], loopback());
  const int others = os::local_addresses(addresses, 16, false);
  ASSERT_GE(others, 0);
  for (int i = 0; i < others; ++i) EXPECT_FALSE(addresses[i] == loopback());
  EXPECT_LE(os::local_addresses(addresses, 1, false), 1);
}

TEST(Inet, BytesGoBothWaysUntilOneSideCloses) {
  std::uint16_t port = 0;
  const int listener = os::listen_inet(&port);
  ASSERT_GE(listener, 0);
  EXPECT_NE(port, 0);
  EXPECT_EQ(os::accept_inet(listener), -EAGAIN);
  const int client = os::connect_inet(loopback(), port);
  if (client == -ENETUNREACH) GTEST_SKIP() << "the loopback interface is down";
  ASSERT_GE(client, 0);
  ASSERT_EQ(insist([&] { return os::connect_result(client); }), 0);
  const int server = insist([&] { return os::accept_inet(listener); });
  ASSERT_GE(server, 0);
  os::watch_connection(server, 10, 5, 4);
  os::InetAddress own;
  EXPECT_TRUE(os::own_address(server, &own));
  EXPECT_EQ(own, loopback());  // also where it listens by IPv6

  char buffer[16];
  EXPECT_EQ(os::receive_stream(server, buffer, sizeof buffer), -EAGAIN);
  for (const auto& way : {std::pair{client, server}, std::pair{server, client}}) {
    EXPECT_EQ(os::send_stream(way.first, "hello", 5), 5);
    EXPECT_EQ(insist([&] { return os::receive_stream(way.second, buffer, sizeof buffer); }), 5);
    EXPECT_EQ(std::string(buffer, 5), "hello");
  }
  // Nobody reads: in the end nothing goes.
  const std::string much(std::size_t{1} << 20, 'x');
  ssize_t sent;
  do {
    sent = os::send_stream(client, much.data(), much.size());
  } while (sent > 0);
  EXPECT_EQ(sent, -EAGAIN);
  os::close_fd(client);
  std::string all(much.size(), ' ');
  do {
    sent = insist([&] { return os::receive_stream(server, all.data(), all.size()); });
  } while (sent > 0);
  EXPECT_EQ(sent, 0);
  os::close_fd(server);
  os::close_fd(listener);
}

TEST(Inet, NobodyListensIsRefused) {
  std::uint16_t port = 0;
  const int listener = os::listen_inet(&port);
  ASSERT_GE(listener, 0);
  os::close_fd(listener);
  const int client = os::connect_inet(loopback(), port);
  if (client == -ENETUNREACH) GTEST_SKIP() << "the loopback interface is down";
  if (client >= 0) {
    EXPECT_EQ(insist([&] { return os::connect_result(client); }), -ECONNREFUSED);
    os::close_fd(client);
  } else {
    EXPECT_EQ(client, -ECONNREFUSED);
  }
}

}  // namespace
