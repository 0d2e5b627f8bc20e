// Between the C ABI's handles and what they are.
#pragma once

#include <haul/atomic.h>

#include "atomic/client/carrier.hpp"
#include "atomic/node/node.hpp"
#include "atomic/window/window.hpp"
// Every function that may block, or ask the kernel for something, begins with a guard: none is a
// cancellation point, so none can be left with a lock or a descriptor in its hands.
#include "base/uncancelled.hpp"

namespace haul::atomics {

inline Node* from_c(haul_atomic_node* node) noexcept {
  return reinterpret_cast<Node*>(node);
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
// HAUL_EINVAL with this sentence.
int refuse(const char* sentence) noexcept;

}  // namespace haul::atomics
