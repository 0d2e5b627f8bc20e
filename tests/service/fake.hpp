// A service in a process of its own, and clients that speak its protocol word by word.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/net/socket.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "request/board.hpp"
#include "request/wire.hpp"
#include "service/server.hpp"

namespace haul::service_test {

inline constexpr std::uint64_t mib = std::uint64_t{1} << 20;

// Runs the service in a child. Ends with the test, which fails if the child has crashed.
class Service {
 public:
  explicit Service(service::Options options = {});
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const std::string& path() const { return path_; }
  pid_t pid() const { return pid_; }
  bool alive();
  // Asks it to stop and waits; its exit status as of waitpid().
  int stop();
  // It was killed on purpose.
  void forgive() { status_ = 0; }
  // Does it say this within 10 s?
  bool says(const std::string& part);
  // Asks as a monitor.
  wire::Stats stats(std::vector<wire::ClientStats>* clients = nullptr);

 private:
  std::string directory_, path_;
  pid_t pid_ = -1;
  int said_[2] = {-1, -1};
  std::string heard_;
  bool reaped_ = false;
  int status_ = 0;
};

struct FakeOptions {
  std::uint64_t arena_bytes = 16 * mib;
  unsigned weight = wire::default_weight;
  unsigned rings = 1;
  std::string name = "fake";
  bool hello = true;  // say it in the constructor
};

class Fake {
 public:
  explicit Fake(const std::string& path, FakeOptions options = {});
  ~Fake();
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;

  // What Hello says; say_hello() sends it.
  wire::Hello hello;
  bool say_hello(const std::vector<int>& fds);
  bool say_hello() { return say_hello(usual_fds()); }
  std::vector<int> usual_fds() const;

  int fd() const { return fd_; }
  int table_fd() const { return table_fd_; }
  Board& board() { return *reinterpret_cast<Board*>(table_); }
  Ring& ring(unsigned index = 0) { return *reinterpret_cast<Ring*>(table_ + ring_offset(index)); }
  std::byte* table() { return table_; }
  std::uint8_t* arena() { return arena_; }
  std::uint64_t arena_address(std::uint64_t offset = 0) {
    return reinterpret_cast<std::uintptr_t>(arena_) + offset;
  }

  // A copy of one chunk, of this process's memory.
  static Job copy_job(std::uint64_t dst, std::uint64_t src, std::size_t length);
  static Job copy_job(const void* dst, const void* src, std::size_t length) {
    return copy_job(reinterpret_cast<std::uintptr_t>(dst), reinterpret_cast<std::uintptr_t>(src),
                    length);
  }
  // Publishes and rings if need be; its seq.
  std::uint64_t submit(Job job, unsigned ring = 0, const Extras* extras = nullptr);
  void ring_bell();
  bool ended(std::uint64_t seq, unsigned ring = 0);
  // Waits at most 20 s; Code::timed_out if that is over, closed if the service has closed.
  Code wait(std::uint64_t seq, unsigned ring = 0);
  Code run(const Job& job, unsigned ring = 0) { return wait(submit(job, ring), ring); }
  // Good bytes of the failed request, as the service left them.
  std::uint64_t good_bytes(std::uint64_t seq, unsigned ring = 0);

  template <class Message>
  bool send(const Message& message, const std::vector<int>& fds = {}) {
    return send(&message, sizeof message, fds);
  }
  bool send(const void* message, std::size_t bytes, const std::vector<int>& fds);
  // The next message of that type within 20 s; others are dropped, but for Refused, which is kept.
  template <class Message>
  bool receive(Message* message) {
    return receive(message, sizeof *message, Message{}.kind);
  }
  // Waits for "closed" (20 s). What came before is read; a Refused is kept.
  bool closed();
  const wire::Refused& refused() const { return refused_; }
  const wire::Welcome& welcome() const { return welcome_; }

  // Another's grant, as space.
  wire::Bound bind(const Fake& owner, std::uint64_t index, Space space);
  void grant(std::uint64_t index, std::uint64_t address, std::uint64_t length,
             std::uint32_t rights);

 private:
  bool receive(void* message, std::size_t bytes, wire::MessageKind kind);

  int fd_ = -1, table_fd_ = -1, arena_fd_ = -1;
  std::byte* table_ = nullptr;
  std::uint8_t* arena_ = nullptr;
  std::uint64_t arena_bytes_ = 0;
  std::uint64_t probe_ = 0x1234567890abcdef;
  wire::Welcome welcome_;
  wire::Refused refused_;
};

// Bytes that tell where they belong.
void paint(std::uint8_t* at, std::size_t bytes, std::uint32_t seed);
bool painted(const std::uint8_t* at, std::size_t bytes, std::uint32_t seed);

}  // namespace haul::service_test
