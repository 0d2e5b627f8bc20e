// io_uring(7), as far as haul uses it: requests that the kernel's own threads carry out, on memory
// that is registered with it. System calls are made bare, since libc has no functions for them.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/os/descriptor.hpp"

namespace haul::os {

// One thread at a time calls start(), finished() and close(); others may call the rest beside it.
class Uring {
 public:
  // Opens a ring that holds `entries` requests and may have `buffers` ranges registered. 0 or
  // -errno: EPERM where a system-call filter or kernel.io_uring_disabled forbids it, ENOSYS, EINVAL
  // before Linux 5.19.
  int open(unsigned entries, unsigned buffers) noexcept;
  // In a child of fork it gives up what was inherited, which is the parent's.
  void close() noexcept;

  // Has one of the kernel's threads write the registered bytes to the file, or read them from it.
  // 0 or -errno: EAGAIN or EBUSY, there is no room now.
  int start(bool writes, const Descriptor& file, std::uint64_t offset, std::uintptr_t address,
            std::uint32_t bytes, unsigned buffer, std::uint64_t tag) noexcept;
  // The next one that has ended: its tag, and its bytes or -errno. False: none has. No system call.
  bool finished(std::uint64_t* tag, std::int32_t* result) noexcept;

  // Registers a range as buffer `index`; no bytes: ends that. 0 or -errno: ENOMEM, EFAULT, or
  // EOPNOTSUPP for memory of files.
  int set_buffer(unsigned index, std::uintptr_t address, std::size_t bytes) noexcept;

 private:
  Descriptor ring_;
  std::uint8_t* rings_ = nullptr;
  std::uint8_t* entries_ = nullptr;
  std::size_t rings_bytes_ = 0, entries_bytes_ = 0;
  std::atomic<std::uint32_t>*submit_tail_ = nullptr, *complete_head_ = nullptr,
  *complete_tail_ = nullptr;
  std::uint32_t *submit_array_ = nullptr, submit_mask_ = 0, complete_mask_ = 0;
  std::uint8_t* completions_ = nullptr;
};

}  // namespace haul::os
