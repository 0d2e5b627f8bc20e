// Tells a process from the children it forks: what is open in the parent is not open in them.
#pragma once

#include <cstdint>

#include "base/os/os.hpp"

namespace haul::atomics {

class Presence {
 public:
  Presence() noexcept = default;
  ~Presence() {
    if (page_ != nullptr) os::unmap(page_, bytes);
  }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  // False: no memory.
  bool open() noexcept {
    page_ = static_cast<std::uint32_t*>(os::map_anonymous(bytes));
    if (page_ == nullptr || !os::wipe_on_fork(page_, bytes)) return false;
    *page_ = 1;
    return true;
  }
  bool is_here() const noexcept { return *static_cast<volatile std::uint32_t*>(page_) != 0; }

 private:
  static constexpr std::size_t bytes = 4096;
  std::uint32_t* page_ = nullptr;  // the kernel empties it in a child
};

}  // namespace haul::atomics
