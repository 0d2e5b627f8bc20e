// Redis for comparison: a server in the home's namespace, and a client that sends INCR.
#pragma once

#include <memory>

#include "bench/remote/hosts/atomic_stage.hpp"
#include "bench/remote/hosts/program.hpp"

namespace haul::bench {

class Redis {
 public:
  // "", or why there is no Redis to measure.
  static std::string missing();

  // Starts the server on that core. Throws CommandFailure if it does not answer within seconds.
  Redis(const Pair& hosts, int home_cpu);
  ~Redis();
  Redis(const Redis&) = delete;
  Redis& operator=(const Redis&) = delete;

  pid_t server() const { return server_.pid(); }
  // Sends INCR of one key and waits for the reply. Throws CommandFailure unless the reply is one
  // more than the last.
  void increment();

 private:
  Program server_;
  int socket_ = -1;
  std::uint64_t current_ = 0;
};

}  // namespace haul::bench
