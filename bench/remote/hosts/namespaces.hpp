// Hosts on one machine: unnamed network namespaces joined by virtual Ethernet cables. They go with
// their descriptors, so a killed process leaves none. Needs root and `ip` (iproute2); failures are
// tools::CommandFailure.
#pragma once

#include <cstdint>
#include <string>

namespace haul::bench {

class Namespace {
 public:
  Namespace();  // a new, empty one; its loopback interface is up
  ~Namespace();
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

  int fd() const { return fd_; }
  // Runs `ip` with these arguments in it.
  void ip(const std::string& arguments) const;
  // Runs a command of the shell in it; its exit status.
  int shell(const std::string& command) const;
  // Writes a file below /sys or /proc/sys as it is in this namespace, such as
  // "/sys/class/net/eth0/queues/rx-0/rps_cpus".
  void write(const std::string& path, const std::string& text) const;

 private:
  int fd_;
};

// While it lives the calling thread is in that namespace: sockets opened then stay there.
class Inside {
 public:
  explicit Inside(const Namespace& space);
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  int home_;
};

// A cable: interface `a_name` with address `a_address` ("10.0.0.1/24") in a, the other end in b.
// Receive checksums and segmentation are left as they are.
void join(const Namespace& a, const std::string& a_name, const std::string& a_address,
          const Namespace& b, const std::string& b_name, const std::string& b_address);

// "" if namespaces can be made here, else why not.
std::string why_no_namespaces();

}  // namespace haul::bench
