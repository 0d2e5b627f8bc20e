// Redis as a peer: a server in the home's namespace, and a client that says INCR.
#pragma once

#include <memory>

#include "bench/remote/hosts/atomic_stage.hpp"
#include "bench/remote/hosts/program.hpp"

namespace haul::bench {

class Redis {
 public:
  // "" or why there is no Redis to measure.
  static std::string missing();

  // The server on that core. Throws Failure if it does not answer within seconds.
  Redis(const Pair& hosts, int home_cpu);
  ~Redis();
  Redis(const Redis&) = delete;
  Redis& operator=(const Redis&) = delete;

  pid_t server() const { return server_.pid(); }
  // INCR of one key: the round trip. Throws Failure unless it gives one more than before.
  void increment();

 private:
  Program server_;
  int socket_ = -1;
  std::uint64_t current_ = 0;
};

}  // namespace haul::bench
