// A function that this library has taken over, as the next library has it.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace haul::preload {

// libc's function, or another preloaded library's, looked for when it is first called: that may be
// before any constructor has run.
template <class Function>
class NextFunction {
 public:
  explicit constexpr NextFunction(const char* name) noexcept : name_(name) {}
  Function* get() noexcept {
    Function* known = function_.load(std::memory_order_relaxed);
    if (known != nullptr) [[likely]]
      return known;
    known = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
    function_.store(known, std::memory_order_relaxed);
    return known;
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

}  // namespace haul::preload
