// Another process with memory to reach: a forked child that does as it is told.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/extent.hpp"

namespace haul::conformance {

class Peer {
 public:
  enum class Memory {
    hidden,   // private: the test sees it through load() and store() alone
    visible,  // shared: memory() shows it as it changes
  };

  // Forks, and opens the child's space. Dies with the test.
  explicit Peer(std::size_t bytes, Memory memory = Memory::hidden);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  Space space() const { return space_; }  // self_space: it could not be opened; why() says why
  const char* why() const { return why_; }
  pid_t pid() const { return pid_; }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(memory_); }
  std::size_t size_bytes() const { return bytes_; }
  const std::uint8_t* memory() const { return memory_; }

  // The child's memory := these bytes, and back. `bytes` is size_bytes() long.
  void load(const std::uint8_t* bytes);
  const std::uint8_t* store();  // valid until the next call
  // mprotect in the child, of whole pages.
  void protect(std::size_t offset, std::size_t length, int protection);
  // SIGKILL and reap.
  void kill();

 private:
  struct Order {
    char verb;  // l, s, p
    std::size_t offset, length;
    int protection;
  };
  void tell(const Order& order);
  [[noreturn]] void obey();

  std::size_t bytes_;
  std::uint8_t* memory_;
  std::uint8_t* mirror_;
  int orders_[2];
  pid_t pid_ = -1;
  Space space_ = self_space;
  char why_[256] = {};
};

}  // namespace haul::conformance
