// An epoll set that can be told from the program's. Anonymous inodes look alike (descriptor.hpp),
// so the set holds an event of its own, and is intact if the kernel finds that event in it.
//
// A small value: copies name the same set, and its owner closes one of them. Threads: any may call
// ring() and wait(); its user orders the rest.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "base/os/descriptor.hpp"

namespace haul::os {

class Epoll {
 public:
  static constexpr std::uint64_t own_event = 0;  // what wait() calls it

  constexpr Epoll() noexcept = default;  // none
  // 0 or -errno.
  static int open(Epoll* made) noexcept;
  // Closes the set and its event, if they are still its own; afterwards this names none. Another
  // process's copy stays whole.
  void close() noexcept;

  bool valid() const noexcept { return number_ >= 0; }
  // The number if it is still this set, else -1. Two system calls.
  int get() const noexcept;
  bool intact() const noexcept { return get() >= 0; }

  // Watches fd under `name`, until remove(), for being readable or closed by the other side. 0 or
  // -errno; -EEXIST: fd is watched already.
  int add(int fd, std::uint64_t name) const noexcept;
  void remove(int fd) const noexcept;

  // Makes wait() return, from now until quiet().
  void ring() const noexcept;
  void quiet() const noexcept;
  // Waits for up to `capacity` events, for at most timeout_ms (negative: without limit). How many,
  // or -errno: -EBADF, at once, if the set is lost.
  int wait(epoll_event* events, int capacity, int timeout_ms) const noexcept;

 private:
  int number_ = -1;
  Descriptor event_;
};

}  // namespace haul::os
