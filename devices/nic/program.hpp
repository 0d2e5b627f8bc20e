// The XDP program of lanes that receive by AF_XDP (nic.bpf.c), loaded once a process; each port of
// such a lane runs it. It goes with the process.
#pragma once

#include "devices/nic/frame.h"

namespace haul::nic {

class PortProgram {
 public:
  // False, and errno: no rights (CAP_BPF, CAP_NET_ADMIN), or no such program in this kernel.
  bool load() noexcept;
  // What the program knows of a lane. It counts there.
  nic_lane& lane(unsigned index) noexcept { return lanes_[index]; }
  // In the port's network namespace: a descriptor that holds the program on the port, in its
  // driver: there frames pass one after another. -1 and errno; EBUSY: another program is there.
  int attach(unsigned interface) noexcept;
  // The socket that gets a lane's fragments.
  bool connect(unsigned lane, int socket) noexcept;
  void disconnect(unsigned lane) noexcept;

 private:
  int program_ = -1, sockets_ = -1;
  nic_lane* lanes_ = nullptr;
};

}  // namespace haul::nic
