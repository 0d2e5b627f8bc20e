// The owner of the soak's window.
#pragma once

#include <haul/atomic.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "bench/remote/hosts/namespaces.hpp"

namespace atomic_test {

class Server {
 public:
  virtual ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  virtual std::string description() const = 0;
  virtual haul_atomic_window_name name() const = 0;
  virtual std::uint64_t* words() const = 0;
  // By name.
  virtual std::map<std::string, std::uint64_t> counters() const = 0;

 protected:
  Server() = default;
};

// For many clients: the session of one that was killed stays for a minute.
haul_atomic_node_options soak_options();
void must_do(int code, const char* what);  // else throws tools::CommandFailure with haul's sentence
std::map<std::string, std::uint64_t> counters_of(haul_atomic_node* node);

// A node of the library, in that host.
std::unique_ptr<Server> serve(const haul::bench::Namespace& host, const std::string& responder,
                              std::uint64_t bytes);

// The control: a responder at 10.0.0.2 that has forgotten what it answered before whenever a packet
// comes, so that it executes repetitions again.
std::unique_ptr<Server> serve_forgetfully(const haul::bench::Namespace& host, std::uint64_t bytes);

}  // namespace atomic_test
