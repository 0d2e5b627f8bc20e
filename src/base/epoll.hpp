// An epoll set that can be told from the program's. Anonymous inodes look alike (descriptor.hpp),
// so it holds an event of its own, and is intact while the kernel finds that event in it.
//
// A small value: copies name the same set, and whoever owns it closes one of them. Threads: ring()
// and wait() by any; the rest as its user orders it.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "base/descriptor.hpp"

namespace haul::os {

class Epoll {
 public:
  static constexpr std::uint64_t own_event = 0;  // what wait() calls it

  constexpr Epoll() noexcept = default;  // none
  // 0 or -errno.
  static int open(Epoll* made) noexcept;
  // Closes what is its own. None afterwards. Another process's copy stays whole.
  void close() noexcept;

  bool valid() const noexcept { return number_ >= 0; }
  // The number if it is still this set, else -1. Two system calls.
  int get() const noexcept;
  bool intact() const noexcept { return get() >= 0; }

  // Readable, or closed by the other side: `name`, until remove(). 0 or -errno. -EEXIST: fd is in
  // it.
  int add(int fd, std::uint64_t name) const noexcept;
  void remove(int fd) const noexcept;

  // Has wait() return until quiet().
  void ring() const noexcept;
  void quiet() const noexcept;
  // Up to `capacity` events; at most timeout_ms (negative: without end). How many, or -errno:
  // -EBADF if it is lost, and at once.
  int wait(epoll_event* events, int capacity, int timeout_ms) const noexcept;

 private:
  int number_ = -1;
  Descriptor event_;
};

}  // namespace haul::os
