// The other processes of a measurement: this program again in another role, and a service that
// serves the measurement alone. What they share lies in one block of memory.
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

// Zeroed memory that this process shares with the workers it starts. A worker finds it by its
// descriptor.
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

// A child process, which is killed when this object is destroyed.
class Child {
 public:
  Child() = default;
  // Starts this program with other arguments. Its standard output is discarded, and with `quiet` so
  // is its standard error.
  Child(const std::vector<std::string>& arguments, const tools::Environment& environment,
        bool quiet = false);
  ~Child();
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  // Waits for the child's end; throws CommandFailure unless it succeeded.
  void finish(const char* what);
  void kill_and_reap();

 private:
  pid_t pid_ = -1;
};

// Starts a worker in one of run_worker()'s roles; the block is its fourth descriptor.
Child start_worker(const std::string& role, unsigned index, const SharedBlock& block,
                   const tools::Environment& environment);

// A service for this measurement alone. Its socket lies in a directory that is removed with it.
class ServiceProcess {
 public:
  // map_bytes: as in `haul serve --map-bytes`. Throws CommandFailure if the service does not start.
  explicit ServiceProcess(std::uint64_t map_bytes = std::uint64_t{64} << 30);
  ~ServiceProcess();
  ServiceProcess(const ServiceProcess&) = delete;
  ServiceProcess& operator=(const ServiceProcess&) = delete;

  // What its clients need: the socket, and the order to send copies there.
  tools::Environment environment(const char* mover = "service") const;

 private:
  tools::TemporaryDirectory directory_;
  Child child_;
};

// Waits until `done()`, sleeping in between. Throws CommandFailure after a minute, or if a child
// has died.
void await(const char* what, std::vector<Child>& children, const std::function<bool()>& done);

// Sleeps while *word is `seen`; wakes everybody who sleeps on it. Works between processes.
void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen);
void wake_all(const std::atomic<std::uint32_t>& word);

// In a worker: attaches to the service; throws CommandFailure if it cannot.
void attach_to_service();

// Runs a role of `haul bench-worker ROLE`; throws CommandFailure if there is no such role.
void run_worker(const std::string& role, unsigned index, int block_fd);
void work_as_client(unsigned index, int block_fd);
void work_as_share_server(unsigned index, int block_fd);
void work_as_share_reader(unsigned index, int block_fd);
void work_as_counter(unsigned index, int block_fd);
void work_as_small_caller(unsigned bytes, int block_fd);
void work_as_late_caller(unsigned index, int block_fd);
void work_as_pinning_copier(unsigned index, int block_fd);
void work_as_overhead_copier(unsigned index, int block_fd);
void work_as_stream_source(unsigned index, int block_fd);
void work_as_stream_sink(unsigned index, int block_fd);

}  // namespace haul::bench
