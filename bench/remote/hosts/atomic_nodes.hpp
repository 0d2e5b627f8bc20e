// Nodes, windows, connections and locks of remote atomics, closed when they go. Whatever fails is a
// tools::CommandFailure with haul's sentence.
#pragma once

#include <haul/atomic.h>

#include <cstdint>
#include <memory>
#include <string>

#include "bench/remote/hosts/namespaces.hpp"

namespace haul::bench {

struct CloseAtomic {
  void operator()(haul_atomic_node* node) const { haul_atomic_node_close(node); }
  void operator()(haul_atomic_window* window) const { haul_atomic_window_destroy(window); }
  void operator()(haul_atomic_remote* remote) const { haul_atomic_disconnect(remote); }
  void operator()(haul_atomic_lock* lock) const { haul_atomic_lock_close(lock); }
};
using Node = std::unique_ptr<haul_atomic_node, CloseAtomic>;
using Window = std::unique_ptr<haul_atomic_window, CloseAtomic>;
using Remote = std::unique_ptr<haul_atomic_remote, CloseAtomic>;
using Lock = std::unique_ptr<haul_atomic_lock, CloseAtomic>;

// Throws a Failure with haul's sentence if `code` is negative.
void require_atomic(int code, const char* what);

// In that namespace. cpu: of the responder's thread; -1: any. spin_us: 0 is the default.
Node open_node(const Namespace& where, const std::string& responder, int cpu = -1,
               std::uint32_t spin_us = 0);
Window make_window(const Node& node, std::size_t bytes);
haul_atomic_window_name name_of(const Window& window);
Remote connect(const Node& node, const haul_atomic_window_name& name);

// A word of the window as it is now, read here.
std::uint64_t word_of(const Window& window, std::size_t offset = 0);

}  // namespace haul::bench
