#include "bench/remote/hosts/atomic_nodes.hpp"

#include "tools/failure.hpp"

namespace haul::bench {

Node open_node(const Namespace& where, const std::string& responder, int cpu,
               std::uint32_t spin_us) {
  haul_atomic_node_options options{};
  options.size = sizeof options;
  options.cpu_plus_1 = cpu + 1;
  options.spin_us = spin_us;
  haul_atomic_node* node = nullptr;
  const Inside inside(where);
  tools::require(haul_atomic_node_open(responder.c_str(), &options, &node), responder.c_str());
  return Node(node);
}

Window make_window(const Node& node, std::size_t bytes) {
  haul_atomic_window* window = nullptr;
  tools::require(haul_atomic_window_create(node.get(), bytes, &window),
                 "haul_atomic_window_create()");
  return Window(window);
}

haul_atomic_window_name name_of(const Window& window) {
  haul_atomic_window_name name{};
  tools::require(haul_atomic_window_export(window.get(), &name), "haul_atomic_window_export()");
  return name;
}

Remote connect(const Node& node, const haul_atomic_window_name& name) {
  haul_atomic_remote* remote = nullptr;
  tools::require(haul_atomic_connect(node.get(), &name, &remote), "haul_atomic_connect()");
  return Remote(remote);
}

Lock join_lock(const Node& node, const Window& own, haul_atomic_lock_options options) {
  options.size = sizeof options;
  haul_atomic_lock* lock = nullptr;
  tools::require(haul_atomic_lock_open(node.get(), own.get(), &options, &lock),
                 "haul_atomic_lock_open()");
  return Lock(lock);
}

std::uint64_t word_of(const Window& window, std::size_t offset) {
  const auto* memory = static_cast<const unsigned char*>(haul_atomic_window_memory(window.get()));
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(memory + offset), __ATOMIC_SEQ_CST);
}

}  // namespace haul::bench
