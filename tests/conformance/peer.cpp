#include "conformance/peer.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/spaces.hpp"

namespace haul::conformance {
namespace {

std::uint8_t* map(std::size_t bytes, int sharing) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) std::abort();
  return static_cast<std::uint8_t*>(address);
}

}  // namespace

Peer::Peer(std::size_t bytes, Memory memory)
    : bytes_(bytes),
      memory_(map(bytes, memory == Memory::visible ? MAP_SHARED : MAP_PRIVATE)),
      mirror_(map(bytes, MAP_SHARED)) {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, orders_) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) obey();
  close(orders_[1]);
  Expected<Space> opened = open_space(pid_);
  if (opened) {
    space_ = *opened;
  } else {
    std::snprintf(why_, sizeof why_, "%s", opened.error().sentence);
  }
}

Peer::~Peer() {
  if (space_ != self_space) close_space(space_);
  kill();
  close(orders_[0]);
  munmap(memory_, bytes_);
  munmap(mirror_, bytes_);
}

void Peer::obey() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  close(orders_[0]);
  Order order;
  while (read(orders_[1], &order, sizeof order) == sizeof order) {
    if (order.verb == 'l') std::memcpy(memory_, mirror_, bytes_);
    if (order.verb == 's') std::memcpy(mirror_, memory_, bytes_);
    if (order.verb == 'p' &&
        mprotect(memory_ + order.offset, order.length, order.protection) != 0) {
      _exit(1);
    }
    if (write(orders_[1], "k", 1) != 1) _exit(1);
  }
  _exit(0);
}

void Peer::tell(const Order& order) {
  char answer = 0;
  ASSERT_EQ(write(orders_[0], &order, sizeof order), static_cast<ssize_t>(sizeof order));
  ASSERT_EQ(read(orders_[0], &answer, 1), 1) << "the peer is gone";
}

void Peer::load(const std::uint8_t* bytes) {
  std::memcpy(mirror_, bytes, bytes_);
  tell(Order{'l', 0, 0, 0});
}

const std::uint8_t* Peer::store() {
  tell(Order{'s', 0, 0, 0});
  return mirror_;
}

void Peer::protect(std::size_t offset, std::size_t length, int protection) {
  tell(Order{'p', offset, length, protection});
}

void Peer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace haul::conformance
