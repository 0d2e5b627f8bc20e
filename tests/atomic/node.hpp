// Nodes, windows and connections of a test, closed when it ends; and where they are: on this host,
// or on two hosts, which are namespaces joined by a cable.
#pragma once

#include <gtest/gtest.h>
#include <haul/atomic.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/remote/hosts/namespaces.hpp"

namespace atomic_test {

struct Close {
  void operator()(haul_atomic_node* node) const { EXPECT_EQ(haul_atomic_node_close(node), 0); }
  void operator()(haul_atomic_window* window) const {
    EXPECT_EQ(haul_atomic_window_destroy(window), 0);
  }
  void operator()(haul_atomic_remote* remote) const {
    EXPECT_EQ(haul_atomic_disconnect(remote), 0);
  }
};
using Node = std::unique_ptr<haul_atomic_node, Close>;
using Window = std::unique_ptr<haul_atomic_window, Close>;
using Remote = std::unique_ptr<haul_atomic_remote, Close>;

inline haul_atomic_node_options default_options() {
  haul_atomic_node_options options{};
  options.size = sizeof options;
  // Long enough for a busy machine; a test that waits for it says so.
  options.timeout_ns = 20'000'000'000;
  return options;
}

// Each fails the test if it cannot be had, and then returns nullptr.
Node open_node(const std::string& responder,
               const haul_atomic_node_options& options = default_options());
Window make_window(const Node& node, std::size_t bytes = 8192);
Remote connect(const Node& node, const haul_atomic_window_name& name);

haul_atomic_window_name name_of(const Window& window);
std::string description_of(const Node& node);
std::uint64_t counter_of(const Node& node, const std::string& name);
// A word of the window's memory here.
std::uint64_t& word_of(const Window& window, std::size_t offset = 0);

haul_atomic_operation operation(unsigned code, std::uint64_t address, std::uint64_t operand = 0,
                                std::uint64_t compare = 0, unsigned width = 8, unsigned flags = 0,
                                std::uint64_t token = 0);

// Who serves, and how the client hears. Empty interface names: both are here, on 127.0.0.1.
struct Carrier {
  const char* name;
  const char* server;  // of haul_atomic_node_open(), without the place
  const char* client;
  haul_atomic_hearing hearing;
  bool is_fabric() const { return std::string(server).find("fabric:") == 0; }
  bool needs_root() const {
    return !is_fabric() && (std::string(client) != "none" || needs_xdp_server());
  }
  bool needs_xdp_server() const { return std::string(server).find("xdp") == 0; }
};
inline constexpr Carrier local_carriers[] = {{"Poll", "poll", "none", HAUL_ATOMIC_HEAR_AUTO},
                                             {"Spin", "spin", "none", HAUL_ATOMIC_HEAR_AUTO},
                                             {"Block", "block", "none", HAUL_ATOMIC_HEAR_AUTO}};
inline constexpr Carrier carriers[] = {
    local_carriers[0],
    local_carriers[1],
    local_carriers[2],
    {"BlockHeardByMap", "block", "none-skb", HAUL_ATOMIC_HEAR_AUTO},
    {"SkbHeardBySocket", "xdp-skb", "none", HAUL_ATOMIC_HEAR_AUTO},
    {"SkbHeardByMap", "xdp-skb", "none-skb", HAUL_ATOMIC_HEAR_COMPLETION},
    {"NativeHeardBySocket", "xdp-native", "none-native", HAUL_ATOMIC_HEAR_SOCKET},
    {"NativeHeardByMap", "xdp-native", "none-native", HAUL_ATOMIC_HEAR_AUTO},
    {"Fabric", "fabric:tcp;ofi_rxm", "fabric:tcp;ofi_rxm", HAUL_ATOMIC_HEAR_AUTO},
};
// Those with a responder of ours, which counts and knows its clients.
inline std::vector<Carrier> responder_carriers() {
  std::vector<Carrier> all;
  for (const Carrier& one : carriers) {
    if (!one.is_fabric()) all.push_back(one);
  }
  return all;
}
// "" if the fabric's plug-in was built; else why not.
std::string why_no_fabric();

// Two hosts.
struct Cable {
  static constexpr char client_interface[] = "cable0", server_interface[] = "cable1";
  static constexpr char client_address[] = "10.77.0.1", server_address[] = "10.77.0.2";
  Cable();
  haul::bench::Namespace client, server;
};
// "" if this process can have them, and the plug-in was built; else why not.
std::string why_no_cable();

// A place for a carrier.
class Place {
 public:
  explicit Place(const Carrier& carrier);
  Node open_server(const haul_atomic_node_options& options = default_options()) const;
  Node open_client(haul_atomic_node_options options = default_options()) const;
  // Another one, by socket: an interface has one XDP program.
  Node open_other_client(const haul_atomic_node_options& options = default_options()) const;
  // While it lives the thread is on the server's host.
  std::unique_ptr<haul::bench::Inside> enter_server() const;
  std::unique_ptr<haul::bench::Inside> enter_client() const;
  const Cable* cable() const { return cable_.get(); }

 private:
  const Carrier carrier_;
  std::unique_ptr<Cable> cable_;
};

// A server with a window, a client that is connected to it.
class OnCarrier : public testing::TestWithParam<Carrier> {
 protected:
  void SetUp() override;
  std::uint64_t& word(std::size_t offset = 0) { return word_of(window, offset); }
  std::uint64_t at(std::size_t offset) const { return name.address + offset; }

  std::unique_ptr<Place> place;
  Node server;
  Window window;
  haul_atomic_window_name name{};
  Node client;
  Remote remote;
};

inline std::string name_of_carrier(const testing::TestParamInfo<Carrier>& info) {
  return info.param.name;
}

// A call that must be refused with this code and a sentence of its own.
#define EXPECT_REFUSED(code, call)                                                           \
  do {                                                                                       \
    haul_atomic_window_name unused_name;                                                     \
    EXPECT_EQ(haul_atomic_window_parse("the call before", &unused_name), HAUL_EINVAL);       \
    EXPECT_EQ((call), (code)) << haul_last_error();                                          \
    const std::string sentence = haul_last_error();                                          \
    EXPECT_EQ(sentence.find("the call before"), std::string::npos) << #call " says nothing"; \
    EXPECT_NE(sentence, "");                                                                 \
  } while (false)

}  // namespace atomic_test
