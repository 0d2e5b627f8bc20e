// Sleeping on descriptors.
#include "fabric/endpoint/waiting/wait_object.hpp"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include <algorithm>
#include <climits>
#include <new>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"

namespace haul::fabric {

namespace {
constexpr std::uint64_t ns_per_ms = 1'000'000;
constexpr std::uint64_t never = ~std::uint64_t{0};
constexpr int blind_ms = 1;    // how long an endpoint without doorbell is left alone
constexpr int look_ms = 1000;  // one whose doorbell the program may have closed
constexpr std::uint64_t doorbell_event = os::Epoll::own_event + 1;
}  // namespace

int WaitObject::open(fi_wait_obj kind, std::unique_ptr<WaitObject>& object) noexcept {
  switch (kind) {
    case FI_WAIT_NONE: object.reset(); return 0;
    case FI_WAIT_UNSPEC:
    case FI_WAIT_FD:
    case FI_WAIT_POLLFD:
    case FI_WAIT_YIELD: break;
    default: return -FI_ENOSYS;
  }
  std::unique_ptr<WaitObject> made(new (std::nothrow) WaitObject(kind));
  if (made == nullptr) return -FI_ENOMEM;
  if (kind != FI_WAIT_YIELD) {
    if (const int error = os::Epoll::open(&made->epoll_); error != 0) return error;
  }
  object = std::move(made);
  return 0;
}

WaitObject::~WaitObject() {
  epoll_.close();
}

void WaitObject::watch(int doorbell) noexcept {
  if (yields()) return;
  const int error = doorbell >= 0 ? epoll_.add(doorbell, doorbell_event) : -EBADF;
  if (error != 0 && error != -EEXIST) blind_.fetch_add(1, std::memory_order_relaxed);
}

void WaitObject::unwatch(int doorbell) noexcept {
  if (yields()) return;
  if (doorbell >= 0) {
    epoll_.remove(doorbell);
  } else {
    blind_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void WaitObject::ring() noexcept {
  epoll_.ring();
}

void WaitObject::quiet() noexcept {
  epoll_.quiet();
}

void WaitObject::sleep(int timeout_ms) noexcept {
  if (yields()) {
    os::yield();
    return;
  }
  const int most_ms = blind_.load(std::memory_order_relaxed) > 0 ? blind_ms : look_ms;
  timeout_ms = timeout_ms < 0 ? most_ms : std::min(timeout_ms, most_ms);
  epoll_event event;
  if (epoll_.wait(&event, 1, timeout_ms) == -EBADF) os::sleep_ns(blind_ms * ns_per_ms);
}

int WaitObject::get_wait(const WaitObject* object, void* argument) noexcept {
  if (object == nullptr || object->yields()) return -FI_ENODATA;
  if (argument == nullptr) return -FI_EINVAL;
  if (object->kind_ != FI_WAIT_POLLFD) {
    *static_cast<int*>(argument) = object->epoll_.get();
    return 0;
  }
  auto* set = static_cast<fi_wait_pollfd*>(argument);
  const std::size_t room = set->nfds;
  set->change_index = 1;  // the one descriptor never changes
  set->nfds = 1;
  if (room < 1) return -FI_ETOOSMALL;
  set->fd[0] = {object->epoll_.get(), POLLIN, 0};
  return 0;
}

int WaitObject::get_kind(const WaitObject* object, void* argument) noexcept {
  if (argument == nullptr) return -FI_EINVAL;
  fi_wait_obj kind = FI_WAIT_NONE;
  if (object != nullptr) kind = object->kind_ == FI_WAIT_UNSPEC ? FI_WAIT_FD : object->kind_;
  *static_cast<fi_wait_obj*>(argument) = kind;
  return 0;
}

Deadline::Deadline(int timeout_ms) noexcept
    : begin_ns_(now_ns()),
      end_ns_(timeout_ms < 0 ? never
                             : begin_ns_ + static_cast<std::uint64_t>(timeout_ms) * ns_per_ms) {}

bool Deadline::passed() const noexcept {
  return end_ns_ != never && now_ns() >= end_ns_;
}

bool Deadline::young() const noexcept {
  constexpr std::uint64_t polling_ns = 50'000;
  return now_ns() - begin_ns_ < polling_ns;
}

int Deadline::remaining_ms() const noexcept {
  if (end_ns_ == never) return -1;
  const std::uint64_t now = now_ns();
  if (now >= end_ns_) return 0;
  return static_cast<int>(
      std::min<std::uint64_t>((end_ns_ - now + ns_per_ms - 1) / ns_per_ms, INT_MAX));
}

}  // namespace haul::fabric
