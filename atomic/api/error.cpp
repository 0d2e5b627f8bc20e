#include "atomic/api/handles.hpp"

namespace haul::atomics {

int fail(const Error& error) noexcept {
  set_last_error(error);
  return static_cast<int>(error.code);
}

int refuse(const char* sentence) noexcept {
  return fail(make_error(Code::invalid, 0, "%s", sentence));
}

}  // namespace haul::atomics

// The two functions of haul.h that this library has, too (atomic.map).
extern "C" const char* haul_last_error(void) {
  return haul::last_error_sentence();
}

extern "C" const char* haul_strerror(int code) {
  return haul::describe(static_cast<haul::Code>(code));
}
