// From the C ABI's handles to the objects behind them, and back.
#pragma once

#include <haul/atomic.h>

#include "atomic/client/carrier.hpp"
#include "atomic/node/node.hpp"
#include "atomic/window/window.hpp"
// Every function that may block, or ask the kernel for something, begins with a guard: none is a
// cancellation point, so none can be left with a lock or a descriptor in its hands.
#include "base/thread/uncancelled.hpp"

namespace haul::atomics {

inline Node* from_c(haul_atomic_node* node) noexcept {
  return reinterpret_cast<Node*>(node);
}
inline const Node* from_c(const haul_atomic_node* node) noexcept {
  return reinterpret_cast<const Node*>(node);
}
inline Window* from_c(haul_atomic_window* window) noexcept {
  return reinterpret_cast<Window*>(window);
}
inline const Window* from_c(const haul_atomic_window* window) noexcept {
  return reinterpret_cast<const Window*>(window);
}
inline RemoteConnection* from_c(haul_atomic_remote* remote) noexcept {
  return reinterpret_cast<RemoteConnection*>(remote);
}
inline haul_atomic_node* to_c(Node* node) noexcept {
  return reinterpret_cast<haul_atomic_node*>(node);
}
inline haul_atomic_window* to_c(Window* window) noexcept {
  return reinterpret_cast<haul_atomic_window*>(window);
}
inline haul_atomic_remote* to_c(RemoteConnection* connection) noexcept {
  return reinterpret_cast<haul_atomic_remote*>(connection);
}

// Remembers the sentence for haul_last_error() and gives back the code.
int fail(const Error& error) noexcept;
int fail(Code code, const char* sentence) noexcept;
// HAUL_EINVAL with this sentence.
inline int refuse(const char* sentence) noexcept {
  return fail(Code::invalid, sentence);
}

// 0, or the refusal of a node that belongs to the process which forked this one.
int check_here(const haul_atomic_node* node) noexcept;
// 0, or the refusal of a connection that is NULL or belongs to that process.
int refuse(const haul_atomic_remote* remote) noexcept;
inline int check(haul_atomic_remote* remote) noexcept {
  const bool good = remote != nullptr && from_c(remote)->carrier().is_here();
  return good ? 0 : refuse(remote);
}
// 0, or the refusal of what cannot be a window's name.
int check_name(const haul_atomic_window_name& name) noexcept;

}  // namespace haul::atomics
