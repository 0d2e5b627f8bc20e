// Other processes in a measurement: this very program again, in another role, and a service of its
// own. What they share lies in one block of memory.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/directory.hpp"
#include "tools/program.hpp"

namespace haul::bench {

// Memory that this process and the workers it starts see, zeroed. Workers find it by descriptor.
class SharedBlock {
 public:
  explicit SharedBlock(std::size_t bytes);        // makes it
  SharedBlock(int inherited, std::size_t bytes);  // a worker's view
  ~SharedBlock();
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  int fd() const { return fd_; }
  template <class T>
  T& as() const {
    return *static_cast<T*>(at_);
  }

 private:
  int fd_;
  void* at_;
  std::size_t bytes_;
};

// A child process. It is killed when this goes.
class Child {
 public:
  Child() = default;
  // This program with other arguments; its standard output goes nowhere, its messages neither if
  // `quiet`.
  Child(const std::vector<std::string>& arguments, const tools::Environment& environment,
        bool quiet = false);
  ~Child();
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  // Waits for its end; throws Failure unless it was a good one.
  void finish(const char* what);
  void kill_and_reap();

 private:
  pid_t pid_ = -1;
};

// A worker in a role of run_worker(), with the block for its fourth descriptor.
Child start_worker(const std::string& role, unsigned index, const SharedBlock& block,
                   const tools::Environment& environment);

// A service for the measurement alone. Its socket is below a directory that goes with it.
class ServiceProcess {
 public:
  // map_bytes: as `haul serve --map-bytes`. Throws Failure if it does not start.
  explicit ServiceProcess(std::uint64_t map_bytes = std::uint64_t{64} << 30);
  ~ServiceProcess();
  ServiceProcess(const ServiceProcess&) = delete;
  ServiceProcess& operator=(const ServiceProcess&) = delete;

  // For its clients: its socket, and that copies go there.
  tools::Environment environment(const char* mover = "service") const;

 private:
  tools::TemporaryDirectory directory_;
  Child child_;
};

// Waits until `done()`, asleep in between; throws Failure after a minute, or if a child has died.
void await(const char* what, std::vector<Child>& children, const std::function<bool()>& done);

// Sleeps while *word is `seen`; wakes whoever sleeps on it. Between processes.
void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen);
void wake_all(const std::atomic<std::uint32_t>& word);

// In a worker: attaches to the service; throws Failure if it cannot.
void attach_to_service();

// The roles that `haul bench-worker ROLE` knows; throws Failure.
void run_worker(const std::string& role, unsigned index, int block_fd);
void work_as_client(unsigned index, int block_fd);
void work_as_share_server(unsigned index, int block_fd);
void work_as_share_reader(unsigned index, int block_fd);
void work_as_counter(unsigned index, int block_fd);
void work_as_stream_source(unsigned index, int block_fd);
void work_as_stream_sink(unsigned index, int block_fd);

}  // namespace haul::bench
