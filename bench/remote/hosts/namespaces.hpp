// Hosts on one machine: unnamed network namespaces joined by virtual Ethernet cables. They vanish
// with their descriptors, so a killed process leaves none behind. Needs root and `ip` (iproute2);
// failures are thrown as tools::CommandFailure.
#pragma once

#include <cstdint>
#include <string>

namespace haul::bench {

class Namespace {
 public:
  Namespace();  // makes a new, empty one, whose loopback interface is up
  ~Namespace();
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

  int fd() const { return fd_; }
  // Runs `ip` with these arguments in the namespace.
  void ip(const std::string& arguments) const;
  // Runs a shell command in the namespace; returns its exit status.
  int shell(const std::string& command) const;
  // Writes a file below /sys or /proc/sys as it is in this namespace, such as
  // "/sys/class/net/eth0/queues/rx-0/rps_cpus".
  void write(const std::string& path, const std::string& text) const;

 private:
  int fd_;
};

// While this lives, the calling thread is in that namespace; sockets opened meanwhile stay there.
class Inside {
 public:
  explicit Inside(const Namespace& space);
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  int home_;
};

// Joins a and b by a cable: interface `a_name` with address `a_address` ("10.0.0.1/24") in a, the
// other end in b. Receive checksums and segmentation stay as they are.
void join(const Namespace& a, const std::string& a_name, const std::string& a_address,
          const Namespace& b, const std::string& b_name, const std::string& b_address);

// "" if namespaces can be made here, else the reason why not.
std::string why_no_namespaces();

}  // namespace haul::bench
