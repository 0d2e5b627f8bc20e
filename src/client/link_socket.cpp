// Opens, writes and shuts the socket. The mutex is held for single system calls that do not wait,
// so it holds up no fork and no handler. Only ring_service_bell() does without it: its caller is in
// the middle of a publish, which the link's thread waits for (await_publishers) before it closes
// the socket.
#include "client/link_socket.hpp"

#include <pthread.h>

#include <cerrno>

#include "base/machine/clock.hpp"
#include "base/net/socket.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/os.hpp"
#include "base/sync/quiet_lock.hpp"
#include "base/thread/unforked.hpp"
#include "client/talk.hpp"
#include "gate/gate.hpp"
#include "request/wire.hpp"

namespace haul {
namespace {

constexpr std::uint64_t connect_step_ns = 200'000;

constinit pthread_mutex_t link_mutex = PTHREAD_MUTEX_INITIALIZER;  // opening, closing, sending
constinit os::SharedDescriptor service_link{};                     // set under the mutex
constinit bool shut = false;
constinit std::atomic<bool> may_tell{false};
constinit std::atomic<bool> may_use{false};
constinit bool shut_unheard = false;  // under the mutex: whether the service lets go cannot be read

// Makes the socket that is to lead to the service, and puts it into its variable before it is
// connected: so a child of fork closes it, and a file that the program opens under its number
// meanwhile is not taken for it.
int make_socket() noexcept {
  const QuietLock lock(link_mutex);
  if (shut) return -ESHUTDOWN;
  const Unforked unforked;  // a child closes it only if it knows of it
  if (!unforked) return -EAGAIN;
  const int fd = os::packet_socket();
  if (fd < 0) return fd;
  service_link.set(os::Descriptor::of(fd));
  return 0;
}

}  // namespace

int open_link_socket() noexcept {
  int best = -ENOENT;
  for (unsigned place = 0;;) {
    if (const int failed = make_socket(); failed != 0) return failed;
    const int failed = connect_to_service(service_link.now(), &place);
    if (failed == 0) {
      const QuietLock lock(link_mutex);
      if (!shut) return 0;
    }
    close_link_socket();
    if (failed == 0) return -ESHUTDOWN;
    if (failed != -ENOENT) best = failed;
    if (failed != -EPERM) return best;
  }
}

void close_link_socket() noexcept {
  const QuietLock lock(link_mutex);
  os::Descriptor old = service_link.now();
  service_link.set(os::Descriptor());
  old.close();
}

bool link_socket_open() noexcept {
  return service_link.now().valid();
}

int link_socket_fd() noexcept {
  return service_link.now().get();
}

void allow_telling(bool yes) noexcept {
  const QuietLock lock(link_mutex);
  may_tell.store(yes, std::memory_order_release);
  // Release: pairs with the load in service_may_use_memory(), whose caller may free its memory
  // then.
  if (yes || !shut_unheard) may_use.store(yes, std::memory_order_release);
}

bool service_may_use_memory() noexcept {
  return may_use.load(std::memory_order_acquire);
}

Code tell_service(const void* message, std::size_t bytes, std::uint64_t patience_ns, const int* fds,
                  unsigned fd_count) noexcept {
  const std::uint64_t deadline = now_ns() + patience_ns;
  for (;;) {
    {
      const QuietLock lock(link_mutex);
      const int fd = may_tell.load(std::memory_order_acquire) ? link_socket_fd() : -1;
      if (fd < 0) return Code::closed;
      const ssize_t sent = os::send_packet(fd, message, bytes, fds, fd_count);
      if (sent == static_cast<ssize_t>(bytes)) return Code::ok;
      if (sent != -EAGAIN && sent != -ENOBUFS) return Code::closed;
    }
    if (now_ns() >= deadline) return Code::timed_out;
    os::sleep_ns(connect_step_ns);
  }
}

void ring_service_bell(std::atomic<std::uint32_t>* bell) noexcept {
  const wire::Bell message;
  // If the socket is full, bells sent before are still unheard, and serve as well.
  if (bell->exchange(0, std::memory_order_relaxed) != 0)
    os::send_packet(link_socket_fd(), &message, sizeof message);
}

void wake_service() noexcept {
  const QuietLock lock(link_mutex);  // keeps it open meanwhile
  std::atomic<std::uint32_t>* bell = gate.service_bell.load(std::memory_order_acquire);
  if (bell != nullptr && bell->load(std::memory_order_relaxed) != 0) ring_service_bell(bell);
}

void shut_link_socket(bool at_once) noexcept {
  const QuietLock lock(link_mutex);
  shut = true;
  if (at_once) {
    if (may_use.load(std::memory_order_relaxed)) shut_unheard = true;
    os::shut_socket(link_socket_fd());
  } else {
    os::shut_sending(link_socket_fd());
  }
}

void forget_link_socket() noexcept {
  link_mutex = PTHREAD_MUTEX_INITIALIZER;
  os::Descriptor parents = service_link.now();
  service_link.set(os::Descriptor());
  parents.close();
  shut = false;
  may_tell.store(false, std::memory_order_relaxed);
  may_use.store(false, std::memory_order_relaxed);
  shut_unheard = false;
}

}  // namespace haul
