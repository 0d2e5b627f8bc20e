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

inline Node* from_c(haul_atomic* node) noexcept {
  return reinterpret_cast<Node*>(node);
}
inline Window* from_c(haul_window* window) noexcept {
  return reinterpret_cast<Window*>(window);
}
inline const Window* from_c(const haul_window* window) noexcept {
  return reinterpret_cast<const Window*>(window);
}
inline Connection* from_c(haul_remote* remote) noexcept {
  return reinterpret_cast<Connection*>(remote);
}
inline haul_atomic* to_c(Node* node) noexcept {
  return reinterpret_cast<haul_atomic*>(node);
}
inline haul_window* to_c(Window* window) noexcept {
  return reinterpret_cast<haul_window*>(window);
}
inline haul_remote* to_c(Connection* connection) noexcept {
  return reinterpret_cast<haul_remote*>(connection);
}

// Remembers the sentence for haul_atomic_last_error() and gives back the code.
int fail(const Error& error) noexcept;
// HAUL_EINVAL with this sentence.
int refuse(const char* sentence) noexcept;

}  // namespace haul::atomics
