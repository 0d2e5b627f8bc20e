// A descriptor of memory, or of a BPF map, program or link. BPF objects have no file of their own
// (they share one with eventfds, epolls and so on), so they are told from the program's files by
// their number in the kernel.
#pragma once

#include <cstdint>

#include "base/os/descriptor.hpp"

namespace haul::atomics {

// A small value, as os::Descriptor.
class KernelObject {
 public:
  KernelObject() noexcept = default;  // none
  static KernelObject of(int fd) noexcept;

  bool valid() const noexcept { return fd_.valid(); }
  // Whether it is still there. For a BPF object this reads a file of /proc: about 10 us.
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
