#include "base/net/epoll.hpp"

#include <cerrno>

#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {
namespace {

constexpr std::uint32_t input = EPOLLIN | EPOLLRDHUP;

int change(int epoll, int operation, int fd, std::uint64_t name) noexcept {
  const KeepErrno keep;
  epoll_event event{};
  event.events = input;
  event.data.u64 = name;
  return epoll_ctl(epoll, operation, fd, &event) == 0 ? 0 : -errno;
}

}  // namespace

int Epoll::open(Epoll* made) noexcept {
  const KeepErrno keep;
  *made = Epoll();
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  made->number_ = epoll < 0 ? -errno : above_streams(epoll);
  if (made->number_ < 0) return made->number_;
  const int event = event_fd();
  made->event_ = Descriptor::of(event);
  const int error = event < 0 ? event : change(made->number_, EPOLL_CTL_ADD, event, own_event);
  if (error == 0) return 0;
  close_fd(made->number_);
  made->event_.close();
  *made = Epoll();
  return error;
}

void Epoll::close() noexcept {
  if (const int number = get(); number >= 0) close_fd(number);
  event_.close();
  *this = Epoll();
}

int Epoll::get() const noexcept {
  const int event = event_.get();
  if (number_ < 0 || event < 0) return -1;
  return change(number_, EPOLL_CTL_MOD, event, own_event) == 0 ? number_ : -1;
}

int Epoll::add(int fd, std::uint64_t name) const noexcept {
  return change(get(), EPOLL_CTL_ADD, fd, name);
}

void Epoll::remove(int fd) const noexcept {
  if (fd >= 0) change(get(), EPOLL_CTL_DEL, fd, 0);
}

void Epoll::ring() const noexcept {
  if (const int event = event_.get(); event >= 0) event_signal(event);
}

void Epoll::quiet() const noexcept {
  if (const int event = event_.get(); event >= 0) event_clear(event);
}

int Epoll::wait(epoll_event* events, int capacity, int timeout_ms) const noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int number = get();
  if (number < 0) return -EBADF;
  const int count = epoll_wait(number, events, capacity, timeout_ms);
  return count < 0 ? -errno : count;
}

}  // namespace haul::os
