// Nodes, windows, connections and locks of remote atomics, which close themselves. Failures are
// thrown as tools::CommandFailure with haul's sentence.
#pragma once

#include <haul/atomic.hpp>

#include <cstdint>
#include <memory>
#include <string>

#include "bench/remote/hosts/namespaces.hpp"

namespace haul::bench {

using Node = std::unique_ptr<haul_atomic_node, atomic::closer>;
using Window = std::unique_ptr<haul_atomic_window, atomic::closer>;
using Remote = std::unique_ptr<haul_atomic_remote, atomic::closer>;
using Lock = std::unique_ptr<haul_atomic_lock, atomic::closer>;

// Opens a node in that namespace. cpu: where the responder's thread runs; -1: anywhere. spin_us: 0
// is the default.
Node open_node(const Namespace& where, const std::string& responder, int cpu = -1,
               std::uint32_t spin_us = 0);
Window make_window(const Node& node, std::size_t bytes);
haul_atomic_window_name name_of(const Window& window);
Remote connect(const Node& node, const haul_atomic_window_name& name);

// A member of a lock; `own` is the window of its words.
Lock join_lock(const Node& node, const Window& own, haul_atomic_lock_options options);

// A word of the window as it is now, read on this side.
std::uint64_t word_of(const Window& window, std::size_t offset = 0);

}  // namespace haul::bench
