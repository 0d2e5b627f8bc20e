// Sleeping on descriptors.
#include "fabric/endpoint/wait_object.hpp"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include <algorithm>
#include <climits>
#include <new>

#include "base/clock.hpp"
#include "base/os.hpp"

namespace haul::fabric {

namespace {
constexpr std::uint64_t ns_per_ms = 1'000'000;
constexpr std::uint64_t never = ~std::uint64_t{0};
constexpr int blind_ms = 1;  // how long an endpoint without doorbell is left alone
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
    made->epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (made->epoll_ < 0) return -errno;
    made->event_ = os::event_fd();
    if (made->event_ < 0) return made->event_;
    epoll_event event = {};
    event.events = EPOLLIN;
    if (epoll_ctl(made->epoll_, EPOLL_CTL_ADD, made->event_, &event) != 0) return -errno;
  }
  object = std::move(made);
  return 0;
}

WaitObject::~WaitObject() {
  if (epoll_ >= 0) os::close_fd(epoll_);
  if (event_ >= 0) os::close_fd(event_);
}

void WaitObject::watch(int doorbell) noexcept {
  if (epoll_ < 0) return;
  epoll_event event = {};
  event.events = EPOLLIN;
  if (doorbell >= 0 &&
      (epoll_ctl(epoll_, EPOLL_CTL_ADD, doorbell, &event) == 0 || errno == EEXIST)) {
    return;
  }
  blind_.fetch_add(1, std::memory_order_relaxed);
}

void WaitObject::unwatch(int doorbell) noexcept {
  if (epoll_ < 0) return;
  epoll_event event = {};
  if (doorbell >= 0) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, doorbell, &event);
  } else {
    blind_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void WaitObject::ring() noexcept {
  if (event_ >= 0) os::event_signal(event_);
}

void WaitObject::quiet() noexcept {
  if (event_ >= 0) os::event_clear(event_);
}

void WaitObject::sleep(int timeout_ms) noexcept {
  if (epoll_ < 0) {
    os::yield();
    return;
  }
  if (blind_.load(std::memory_order_relaxed) > 0) {
    timeout_ms = timeout_ms < 0 ? blind_ms : std::min(timeout_ms, blind_ms);
  }
  pollfd wanted = {epoll_, POLLIN, 0};
  poll(&wanted, 1, timeout_ms);
}

int WaitObject::get_wait(const WaitObject* object, void* argument) noexcept {
  if (object == nullptr || object->epoll_ < 0) return -FI_ENODATA;
  if (argument == nullptr) return -FI_EINVAL;
  if (object->kind_ != FI_WAIT_POLLFD) {
    *static_cast<int*>(argument) = object->epoll_;
    return 0;
  }
  auto* set = static_cast<fi_wait_pollfd*>(argument);
  const std::size_t room = set->nfds;
  set->change_index = 1;  // the one descriptor never changes
  set->nfds = 1;
  if (room < 1) return -FI_ETOOSMALL;
  set->fd[0] = {object->epoll_, POLLIN, 0};
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
