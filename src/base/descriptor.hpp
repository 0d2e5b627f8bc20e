// A descriptor of haul's in a process that is not haul's: the program may close it, or open a file
// of its own at its number, at any time. So a descriptor that is kept goes with the identity of the
// file behind it, and is looked at before each use: what is not haul's any more is neither written
// nor closed.
//
// Looking and using are two steps. A program that puts a file at haul's number between them, in
// another thread, can still be written to; no system call does both.
#pragma once

#include <atomic>
#include <cstdint>

namespace haul::os {

// Which file a descriptor is. {0, 0}: none is open there. Files without a name (memfds, sockets,
// pipes) have an identity each; anonymous inodes (eventfd, epoll, timerfd, and pidfds before Linux
// 6.9) share one, so that they can be told from the program's files, and not from each other.
struct FileId {
  std::uint64_t device = 0, inode = 0;
  bool operator==(const FileId&) const = default;
};
FileId file_id(int fd) noexcept;

// Out of the numbers of the standard streams, where a program that has closed those would write.
// Closes fd where it gives back another, or -errno (also where fd was one).
int above_streams(int fd) noexcept;

// A number and the file that is expected there. A small value: copies name the same descriptor, and
// whoever owns it closes one of them. Not thread-safe by itself.
class Descriptor {
 public:
  constexpr Descriptor() noexcept = default;  // none

  // fd as it is now; none where fd is negative.
  static Descriptor of(int fd) noexcept;

  int number() const noexcept { return number_; }  // -1: none
  bool valid() const noexcept { return number_ >= 0; }
  // Is the same file still open there? One fstat().
  bool intact() const noexcept { return number_ >= 0 && file_id(number_) == id_; }
  // The number if it is intact, else -1, with which every system call fails and does nothing.
  int get() const noexcept { return intact() ? number_ : -1; }
  // Closes it if it is intact. None afterwards.
  void close() noexcept;
  // None afterwards, and open as before.
  int release() noexcept;

 private:
  friend class SharedDescriptor;

  int number_ = -1;
  FileId id_{};
};

// One that a thread sets and others use meanwhile. Setters exclude each other by other means. Who
// reads while it changes may get none, or one that is not intact, but never another's. No
// constructor: it may lie in zeroed memory, where it is none.
class SharedDescriptor {
 public:
  void set(const Descriptor& descriptor) noexcept {
    // None first, so that no number ever goes with another file's identity.
    number_plus_1_.store(0, std::memory_order_release);
    device_.store(descriptor.id_.device, std::memory_order_release);
    inode_.store(descriptor.id_.inode, std::memory_order_release);
    number_plus_1_.store(descriptor.number_ + 1, std::memory_order_release);
  }
  Descriptor now() const noexcept {
    Descriptor seen;
    // Acquire, each: pairs with set().
    seen.number_ = number_plus_1_.load(std::memory_order_acquire) - 1;
    seen.id_.device = device_.load(std::memory_order_acquire);
    seen.id_.inode = inode_.load(std::memory_order_acquire);
    return seen;
  }

 private:
  std::atomic<int> number_plus_1_;
  std::atomic<std::uint64_t> device_, inode_;
};

}  // namespace haul::os
