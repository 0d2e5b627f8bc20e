// Looped ports for the tests of the engine nic: veth pairs in a network namespace of the test's
// own. (The command haul nic, which makes such, is tested in nic_cli.sh.)
#pragma once

#include <fcntl.h>

#include <string>

#include "support.hpp"

namespace e2e {

inline int ip(const std::string& words) {
  return std::system(("ip " + words + " > /dev/null 2>&1").c_str());
}

// Some pairs of ports, gone at the end.
class Ports {
 public:
  explicit Ports(unsigned pairs = 3, unsigned mtu = 61540)
      : name_("haul-nic-test-" + std::to_string(getpid())) {
    if (ip("netns add " + name_) != 0) return;
    made_ = true;
    const std::string bytes = std::to_string(mtu);
    made_ = ip("-n " + name_ + " link set dev lo up") == 0;
    for (unsigned pair = 0; pair < pairs && made_; ++pair) {
      const std::string out = "out" + std::to_string(pair), in = "in" + std::to_string(pair);
      made_ = ip("-n " + name_ + " link add " + out + " mtu " + bytes +
                 " numtxqueues 1 numrxqueues 1 type veth peer name " + in + " mtu " + bytes +
                 " numtxqueues 1 numrxqueues 1") == 0 &&
              ip("-n " + name_ + " link set dev " + out + " arp off up") == 0 &&
              ip("-n " + name_ + " link set dev " + in + " arp off up") == 0;
    }
  }
  ~Ports() {
    ip("-n " + name_ + " link delete dev out0");
    ip("netns delete " + name_);
  }
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;

  bool made() const { return made_; }
  const std::string& name() const { return name_; }
  std::string knob(const char* words) const { return "netns=" + name_ + " " + words; }
  // The calling thread is among the ports from now on.
  void enter() const {
    const int fd = open(("/run/netns/" + name_).c_str(), O_RDONLY | O_CLOEXEC);
    CHILD_EQUAL(setns(fd, CLONE_NEWNET), 0);
    close(fd);
  }
  void down() const { CHILD_EQUAL(ip("-n " + name_ + " link set dev out0 down"), 0); }

 private:
  std::string name_;
  bool made_ = false;
};

// Why not; nullptr: they can be made.
inline const char* cannot() {
  if (geteuid() != 0) return "a network namespace needs root";
  if (ip("-V") != 0) return "the command ip is missing; install iproute2";
  return nullptr;
}

}  // namespace e2e
