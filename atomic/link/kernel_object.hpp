// A descriptor of memory, or of a BPF map, program or link. BPF's have no file of their own (they
// share one with eventfds, epolls and their like): what tells them from the program's is their
// number in the kernel.
#pragma once

#include <cstdint>

#include "base/descriptor.hpp"

namespace haul::atomics {

// A small value, as os::Descriptor.
class KernelObject {
 public:
  KernelObject() noexcept = default;  // none
  static KernelObject of(int fd) noexcept;

  bool valid() const noexcept { return fd_.valid(); }
  // Is it still there? Reads a file of /proc for one of BPF's: about 10 us.
  bool intact() const noexcept;
  // Its number if it is intact, else -1.
  int get() const noexcept { return intact() ? fd_.number() : -1; }
  // Closes it if it is intact. None afterwards.
  void close() noexcept;

 private:
  // Of BPF's: {its number 32 | kind 32}; 0: no such object.
  static std::uint64_t bpf_id_of(int fd) noexcept;

  os::Descriptor fd_;
  std::uint64_t bpf_id_ = 0;
};

}  // namespace haul::atomics
