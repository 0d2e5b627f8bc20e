// A bounce buffer for one call: lent from a small static pool or, when that is empty, taken from
// the stack. Neither allocates, and a helping waiter's stack may be small.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::cma {

class Bounce {
 public:
  // Lock-free. Any thread.
  Bounce() noexcept;
  ~Bounce();
  Bounce(const Bounce&) = delete;
  Bounce& operator=(const Bounce&) = delete;

  std::uintptr_t address() const noexcept { return reinterpret_cast<std::uintptr_t>(data_); }
  std::byte* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }  // a multiple of 8

 private:
  static constexpr std::size_t own_bytes = 2048;
  std::byte* data_;
  std::size_t size_bytes_;
  int lent_;  // index in the pool, -1: own_
  alignas(64) std::byte own_[own_bytes];
};

}  // namespace haul::cma
