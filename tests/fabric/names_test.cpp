// fi_getinfo()'s node and service: what fi_av_straddr() prints, this host and a port, and nothing
// else; the addresses that fi_info carries; endpoints that are found by a port beforehand.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "transfer.hpp"

namespace fabric_test {
namespace {

struct Answer {
  int status = 0;
  Info info;
};

Answer look_up(const char* node, const char* service, std::uint64_t flags,
               const fi_info* hints = nullptr) {
  const Info usual = hints_of(Wish{});
  fi_info* found = nullptr;
  Answer answer;
  answer.status = fi_getinfo(FI_VERSION(1, 17), node, service, flags,
                             hints != nullptr ? hints : usual.get(), &found);
  answer.info.reset(answer.status == 0 ? found : nullptr);
  return answer;
}

// A port that other runs of this test do not take at the same time.
std::string free_port() {
  static int next = 0;
  return std::to_string(20000 + getpid() % 20000 + next++);
}

std::string text_of(Node& node, const void* address) {
  std::array<char, 512> text{};
  std::size_t length = text.size();
  fi_av_straddr(node.av.get(), address, text.data(), &length);
  return text.data();
}

void expect_source(const Answer& answer) {
  ASSERT_EQ(answer.status, 0) << fi_strerror(-answer.status);
  EXPECT_NE(answer.info->src_addr, nullptr);
  EXPECT_GT(answer.info->src_addrlen, 0u);
}

void expect_destination(const Answer& answer) {
  ASSERT_EQ(answer.status, 0) << fi_strerror(-answer.status);
  EXPECT_NE(answer.info->dest_addr, nullptr);
  EXPECT_GT(answer.info->dest_addrlen, 0u);
}

class Names : public testing::Test {
 protected:
  void SetUp() override {
    if (!provider_is_haul()) GTEST_SKIP() << "others have other addresses";
  }
};

TEST_F(Names, a_source_is_always_there) {
  const std::string port = free_port();
  expect_source(look_up(nullptr, nullptr, 0));
  expect_source(look_up("localhost", nullptr, FI_SOURCE));
  expect_source(look_up(nullptr, port.c_str(), FI_SOURCE));
  expect_source(look_up("localhost", port.c_str(), FI_SOURCE));
  expect_source(look_up("127.0.0.1", port.c_str(), FI_SOURCE | FI_NUMERICHOST));
  const Answer both = look_up("localhost", port.c_str(), 0);
  expect_source(both);
  expect_destination(both);
  expect_destination(look_up(nullptr, port.c_str(), 0));
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  expect_destination(look_up(name, port.c_str(), 0));
}

TEST_F(Names, what_names_nothing_is_not_found) {
  const std::string port = free_port();
  const struct {
    const char* node;
    const char* service;
    std::uint64_t flags;
  } cases[] = {
      {"no-such-host.invalid", port.c_str(), 0},
      {"no-such-host.invalid", port.c_str(), FI_SOURCE},
      {"no-such-host.invalid", nullptr, FI_SOURCE},
      {"", port.c_str(), 0},
      {"localhost", port.c_str(), FI_NUMERICHOST},  // no number
      {"192.0.2.1", port.c_str(), FI_NUMERICHOST},  // of no host (RFC 5737)
      {"192.0.2.1", port.c_str(), FI_SOURCE | FI_NUMERICHOST},
      {"localhost", nullptr, 0},  // which of its endpoints?
      {"localhost", "no-such-service", 0},
      {"localhost", "0", 0},
      {"localhost", "65536", 0},
      {"haul://", nullptr, 0},
      {"haul://zz", nullptr, FI_SOURCE},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(look_up(one.node, one.service, one.flags).status, -FI_ENODATA)
        << one.node << ' ' << (one.service != nullptr ? one.service : "-") << ' ' << one.flags;
  }
  // libfabric may turn a provider's -FI_EINVAL into its own.
  EXPECT_LT(look_up(nullptr, nullptr, FI_SOURCE).status, 0) << "a source without a name";
}

TEST_F(Names, an_address_as_it_is_printed) {
  Node node(Wish{});
  ASSERT_TRUE(node.ready());
  const std::vector<std::byte> own = node.name();
  const std::string text = text_of(node, own.data());
  const Answer to = look_up(text.c_str(), nullptr, 0);
  expect_destination(to);
  ASSERT_EQ(to.info->dest_addrlen, own.size());
  EXPECT_EQ(std::memcmp(to.info->dest_addr, own.data(), own.size()), 0);
  const Answer from = look_up(text.c_str(), nullptr, FI_SOURCE);
  expect_source(from);
  ASSERT_EQ(from.info->src_addrlen, own.size());
  EXPECT_EQ(std::memcmp(from.info->src_addr, own.data(), own.size()), 0);
  std::string longer = text + "0";
  EXPECT_EQ(look_up(longer.c_str(), nullptr, 0).status, -FI_ENODATA);
}

TEST_F(Names, addresses_in_the_hints) {
  Node node(Wish{});
  ASSERT_TRUE(node.ready());
  const std::vector<std::byte> own = node.name();
  const auto copy = [&](std::size_t bytes) {
    void* memory = std::calloc(1, bytes);
    std::memcpy(memory, own.data(), std::min(bytes, own.size()));
    return memory;
  };
  const Info hints = hints_of(Wish{});
  hints->dest_addr = copy(own.size());
  hints->dest_addrlen = own.size();
  const Answer kept = look_up(nullptr, nullptr, 0, hints.get());
  expect_destination(kept);
  EXPECT_EQ(std::memcmp(kept.info->dest_addr, own.data(), own.size()), 0);
  // node and service come before the hint; with FI_SOURCE they are about the other end.
  const std::string port = free_port();
  const Answer named = look_up("localhost", port.c_str(), 0, hints.get());
  expect_destination(named);
  EXPECT_NE(std::memcmp(named.info->dest_addr, own.data(), own.size()), 0);
  const Answer beside = look_up("localhost", port.c_str(), FI_SOURCE, hints.get());
  expect_destination(beside);
  EXPECT_EQ(std::memcmp(beside.info->dest_addr, own.data(), own.size()), 0);
  // What it answers finds the same again.
  const Answer again = look_up(nullptr, nullptr, 0, beside.info.get());
  ASSERT_EQ(again.status, 0);
  EXPECT_EQ(std::memcmp(again.info->src_addr, beside.info->src_addr, beside.info->src_addrlen), 0);
  // Another network's.
  std::memset(hints->dest_addr, 1, own.size());
  EXPECT_EQ(look_up(nullptr, nullptr, 0, hints.get()).status, -FI_ENODATA);
  hints->dest_addrlen = 16;
  EXPECT_EQ(look_up(nullptr, nullptr, 0, hints.get()).status, -FI_ENODATA);
}

// The server opens its endpoint at a port; clients find it there, in band: no address is exchanged
// but in messages.
TEST_F(Names, endpoints_meet_at_a_port) {
  const std::string port = free_port();
  const Answer source = look_up("localhost", port.c_str(), FI_SOURCE);
  ASSERT_EQ(source.status, 0);
  Node server(Wish{}, *source.info);
  ASSERT_TRUE(server.ready()) << server.why();
  Node client(Wish{});
  ASSERT_TRUE(client.ready());
  client.companions.push_back(&server);
  server.companions.push_back(&client);

  const Answer there = look_up("localhost", port.c_str(), 0);
  ASSERT_EQ(there.status, 0);
  const std::vector<std::byte> name = server.name();
  ASSERT_EQ(there.info->dest_addrlen, name.size());
  EXPECT_EQ(std::memcmp(there.info->dest_addr, name.data(), name.size()), 0);
  fi_addr_t to_server = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(client.av.get(), there.info->dest_addr, 1, &to_server, 0, nullptr), 1);
  fi_addr_t by_name = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insertsvc(client.av.get(), "localhost", port.c_str(), &by_name, 0, nullptr), 1);
  EXPECT_EQ(fi_av_insertsvc(client.av.get(), "no-such-host.invalid", "1", &by_name, 0, nullptr),
            -FI_ENODATA);

  std::vector<std::byte> own = client.name(), got(own.size());
  Op receive_op, send_op;
  ASSERT_EQ(fi_recv(server.ep.get(), got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, &receive_op),
            0);
  ASSERT_EQ(client.post([&] {
    return fi_send(client.ep.get(), own.data(), own.size(), nullptr, to_server, &send_op);
  }),
            0);
  EXPECT_EQ(server.await(receive_op).err, 0);
  EXPECT_EQ(client.await(send_op).err, 0);
  ASSERT_EQ(got, own);
  const fi_addr_t to_client = server.insert(got);
  std::uint64_t answer = 7, heard = 0;
  // From that peer alone: the two ends must mean the same endpoint.
  ASSERT_EQ(fi_recv(client.ep.get(), &heard, sizeof heard, nullptr, to_server, &receive_op), 0);
  ASSERT_EQ(server.post([&] {
    return fi_send(server.ep.get(), &answer, sizeof answer, nullptr, to_client, &send_op);
  }),
            0);
  EXPECT_EQ(client.await(receive_op).err, 0);
  EXPECT_EQ(server.await(send_op).err, 0);
  EXPECT_EQ(heard, 7u);

  // It is taken, as long as it is open.
  fid_ep* second = nullptr;
  EXPECT_EQ(fi_endpoint(client.domain, source.info.get(), &second, nullptr), -FI_EADDRINUSE);
  EXPECT_EQ(close_now(server.ep), 0);
  ASSERT_EQ(fi_endpoint(client.domain, source.info.get(), &second, nullptr), 0);
  EXPECT_EQ(fi_close(&second->fid), 0);
}

}  // namespace
}  // namespace fabric_test
