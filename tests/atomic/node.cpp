#include "atomic/node.hpp"

#include "tools/failure.hpp"

namespace atomic_test {

using haul::bench::Inside;

Node open_node(const std::string& responder, const haul_atomic_node_options& options) {
  haul_atomic_node* node = nullptr;
  EXPECT_EQ(haul_atomic_node_open(responder.c_str(), &options, &node), 0)
      << responder << ": " << haul_last_error();
  return Node(node);
}

Window make_window(const Node& node, std::size_t bytes) {
  haul_atomic_window* window = nullptr;
  EXPECT_EQ(haul_atomic_window_create(node.get(), bytes, &window), 0) << haul_last_error();
  return Window(window);
}

Remote connect(const Node& node, const haul_atomic_window_name& name) {
  haul_atomic_remote* remote = nullptr;
  EXPECT_EQ(haul_atomic_connect(node.get(), &name, &remote), 0) << haul_last_error();
  return Remote(remote);
}

haul_atomic_window_name name_of(const Window& window) {
  haul_atomic_window_name name{};
  EXPECT_EQ(haul_atomic_window_export(window.get(), &name), 0);
  return name;
}

std::string description_of(const Node& node) {
  char text[300];
  EXPECT_EQ(haul_atomic_node_describe(node.get(), text, sizeof text), 0);
  return text;
}

std::uint64_t counter_of(const Node& node, const std::string& name) {
  std::uint64_t values[64];
  const int count = haul_atomic_node_counters(node.get(), values, 64);
  for (std::size_t i = 0; i < static_cast<std::size_t>(std::max(count, 0)); ++i) {
    if (name == haul_atomic_node_counter_name(i)) return values[i];
  }
  ADD_FAILURE() << "no counter '" << name << "'";
  return 0;
}

std::uint64_t& word_of(const Window& window, std::size_t offset) {
  auto* memory = static_cast<unsigned char*>(haul_atomic_window_memory(window.get()));
  return *reinterpret_cast<std::uint64_t*>(memory + offset);
}

haul_atomic_operation operation(unsigned code, std::uint64_t address, std::uint64_t operand,
                                std::uint64_t compare, unsigned width, unsigned flags,
                                std::uint64_t token) {
  haul_atomic_operation made{};
  made.code = static_cast<std::uint8_t>(code);
  made.width = static_cast<std::uint8_t>(width);
  made.flags = static_cast<std::uint8_t>(flags);
  made.status = 12345;  // nobody's
  made.address = address;
  made.operand = operand;
  made.compare = compare;
  made.token = token;
  made.old = 0x5a5a5a5a;
  return made;
}

Cable::Cable() {
  haul::bench::join(client, client_interface, std::string(client_address) + "/24", server,
                    server_interface, std::string(server_address) + "/24");
}

std::string why_no_cable() {
#ifdef HAUL_TEST_XDP
  static const std::string why = haul::bench::why_no_namespaces();
  return why;
#else
  return "built without the XDP plug-in (libbpf-dev, clang)";
#endif
}

std::string why_no_fabric() {
#ifdef HAUL_TEST_FABRIC
  return "";  // then tcp;ofi_rxm must be there, or the tests fail
#else
  return "built without the fabric plug-in (libfabric-dev)";
#endif
}

Place::Place(const Carrier& carrier) : carrier_(carrier) {
  if (carrier.needs_root()) cable_ = std::make_unique<Cable>();
}

std::unique_ptr<Inside> Place::enter_server() const {
  return cable_ ? std::make_unique<Inside>(cable_->server) : nullptr;
}

std::unique_ptr<Inside> Place::enter_client() const {
  return cable_ ? std::make_unique<Inside>(cable_->client) : nullptr;
}

Node Place::open_server(const haul_atomic_node_options& options) const {
  const auto inside = enter_server();
  const std::string place = carrier_.needs_xdp_server() ? Cable::server_interface
                            : cable_                    ? Cable::server_address
                                                        : "127.0.0.1";
  return open_node(carrier_.server + (":" + place), options);
}

Node Place::open_client(haul_atomic_node_options options) const {
  const auto inside = enter_client();
  options.hearing = static_cast<std::uint8_t>(carrier_.hearing);
  const std::string word = carrier_.client;
  if (carrier_.is_fabric()) return open_node(word + ":127.0.0.1", options);
  return open_node(word == "none" ? word : word + ":" + Cable::client_interface, options);
}

Node Place::open_other_client(const haul_atomic_node_options& options) const {
  const auto inside = enter_client();
  return open_node(carrier_.is_fabric() ? carrier_.client + std::string(":127.0.0.1") : "none",
                   options);
}

void OnCarrier::SetUp() {
  if (GetParam().needs_root() && !why_no_cable().empty()) GTEST_SKIP() << why_no_cable();
  if (GetParam().is_fabric() && !why_no_fabric().empty()) GTEST_SKIP() << why_no_fabric();
  place = std::make_unique<Place>(GetParam());
  server = place->open_server();
  ASSERT_TRUE(server);
  window = make_window(server);
  ASSERT_TRUE(window);
  name = name_of(window);
  client = place->open_client();
  ASSERT_TRUE(client);
  remote = connect(client, name);
  ASSERT_TRUE(remote);
}

}  // namespace atomic_test
