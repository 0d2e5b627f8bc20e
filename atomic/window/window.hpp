// Memory on which remote atomics may act, as it is mapped here.
#pragma once

#include <haul/atomic.h>
#include <pthread.h>

#include <cstddef>

#include "atomic/client/carrier.hpp"
#include "atomic/link/kernel_object.hpp"
#include "atomic/responder/responder.hpp"
#include "base/error.hpp"

namespace haul::atomics {

class Node;

// What a haul_atomic_window is.
class Window {
 public:
  // `fd` is memory of at least `mapped_bytes` bytes (taken over, closed with the window); `owner`
  // is nullptr for a window of another process.
  static Expected<Window*> map(Node* owner, int fd, const haul_atomic_window_name& name) noexcept;
  // Unmaps it.
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  char* memory() const noexcept { return memory_; }
  const haul_atomic_window_name& name() const noexcept { return name_; }
  // What others are let into; the program may have closed it.
  const KernelObject& memory_object() const noexcept { return fd_; }
  std::size_t mapped_bytes() const noexcept { return pages_of(name_.bytes) * 4096; }

  // Executes 1 to 16 operations by the CPU, as a responder would, or by a connection (below). ok,
  // or the first that is not.
  Code run(haul_atomic_operation* operations, std::size_t count) noexcept;

  // Takes the name that its responder has given it.
  void rename(const haul_atomic_window_name& name) noexcept { name_ = name; }

  // From now on run() goes by a connection of this carrier, because the CPU's operations are not
  // atomic with those of others; nullptr: run() is refused.
  void run_by(Carrier* carrier) noexcept;

  Node* owner() const noexcept { return owner_; }
  // Before the carrier of run_by() is closed.
  void orphan() noexcept;

 private:
  Window(Node* owner, int fd, const haul_atomic_window_name& name, char* memory) noexcept
      : owner_(owner), fd_(KernelObject::of(fd)), name_(name), memory_(memory) {}

  Code run_far(haul_atomic_operation* operations, std::size_t count) noexcept;

  Node* owner_;
  KernelObject fd_;
  haul_atomic_window_name name_;
  char* const memory_;
  bool runs_far_ = false;
  Carrier* carrier_ = nullptr;
  RemoteConnection* connection_ = nullptr;  // made when it is first needed
  pthread_mutex_t connecting_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace haul::atomics
