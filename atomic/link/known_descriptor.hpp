// A descriptor that each packet goes through. Asking the kernel each time whether it is still ours
// would be felt, so what was known a moment ago is assumed to hold.
#pragma once

#include <cstdint>

#include "base/machine/clock.hpp"
#include "base/os/descriptor.hpp"

namespace haul::atomics {

// Not thread-safe.
class KnownDescriptor {
 public:
  KnownDescriptor() noexcept = default;
  explicit KnownDescriptor(os::Descriptor fd) noexcept : fd_(fd), known_ns_(now_ns()) {}

  const os::Descriptor& fd() const noexcept { return fd_; }
  // A number that may be used at once.
  int number() const noexcept { return fd_.number(); }
  bool is_ours() noexcept {
    if (!fd_.valid()) return false;
    const std::uint64_t now = now_ns();
    if (now - known_ns_ < still_known_ns) return true;
    return look(now);
  }
  // The same, asked of the kernel.
  bool look(std::uint64_t now) noexcept {
    if (!fd_.intact()) return false;
    known_ns_ = now;
    return true;
  }
  // If it is ours.
  void close() noexcept { fd_.close(); }

 private:
  // No thread calls haul, closes a descriptor, opens another at its number and calls haul again in
  // less.
  static constexpr std::uint64_t still_known_ns = 2'000;

  os::Descriptor fd_;
  std::uint64_t known_ns_ = 0;
};

}  // namespace haul::atomics
