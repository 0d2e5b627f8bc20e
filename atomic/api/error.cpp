#include "atomic/api/handles.hpp"
#include "atomic/window/name.hpp"

namespace haul::atomics {

int fail(const Error& error) noexcept {
  set_last_error(error);
  return static_cast<int>(error.code);
}

int fail(Code code, const char* sentence) noexcept {
  return fail(make_error(code, 0, "%s", sentence));
}

int check_here(const haul_atomic_node* node) noexcept {
  if (from_c(node)->is_here()) return 0;
  return fail(Code::stale,
              "this node was opened by the process that forked this one; open one here");
}

int refuse(const haul_atomic_remote* remote) noexcept {
  if (remote == nullptr) return refuse("remote is NULL");
  return fail(Code::stale, "this connection is of the process that forked this one; connect here");
}

int check_name(const haul_atomic_window_name& name) noexcept {
  if (is_name(name)) return 0;
  return refuse("this is no name of a window; take one from haul_atomic_window_export()");
}

}  // namespace haul::atomics

// The two functions of haul.h that this library has, too (atomic.map).
extern "C" const char* haul_last_error(void) {
  return haul::last_error_sentence();
}

extern "C" const char* haul_strerror(int code) {
  return haul::describe(static_cast<haul::Code>(code));
}
