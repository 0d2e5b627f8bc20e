// A descriptor of haul's lives in a process that is not haul's: at any time the program may close
// it, or open a file of its own at its number. So a descriptor that is kept goes with the identity
// of the file behind it, which is checked before each use: a descriptor that is not haul's any more
// is neither written to nor closed.
//
// The check and the use are two steps. If another thread of the program puts a file at haul's
// number between them, that file can still be written to; no system call does both.
#pragma once

#include <atomic>
#include <cstdint>

namespace haul::os {

// Which file a descriptor is. {0, 0}: none is open there. Files without a name (memfds, sockets,
// pipes) each have their own identity; anonymous inodes (eventfd, epoll, timerfd, and pidfds before
// Linux 6.9) share one, so they can be told from the program's files but not from each other.
struct FileId {
  std::uint64_t device = 0, inode = 0;
  bool operator==(const FileId&) const = default;
};
FileId file_id(int fd) noexcept;

// Moves fd off the numbers of the standard streams, to which a program that has closed those may
// write. Returns the number, or -errno (also if fd was one); closes fd if the number is another.
int above_streams(int fd) noexcept;

// Closes fd, which could not be used because of this errno. Returns -error.
int close_with(int fd, int error) noexcept;

// A number and the file that is expected there. A small value: copies name the same descriptor, and
// its owner closes one of them. Not thread-safe by itself.
class Descriptor {
 public:
  constexpr Descriptor() noexcept = default;  // none

  // fd and the file there now; none where fd is negative.
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

// A descriptor that a thread sets while others use it. Setters exclude each other by other means. A
// thread that reads while it changes may get none, or one that is not intact, but never another
// file's. No constructor: in zeroed memory it is none.
class SharedDescriptor {
 public:
  void set(const Descriptor& descriptor) noexcept {
    // None is stored first, so that no number ever goes with another file's identity.
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
