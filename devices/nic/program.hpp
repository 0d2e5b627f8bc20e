// The XDP program of lanes that receive by AF_XDP (nic.bpf.c), loaded once a process; each port of
// such a lane runs it. It goes with the process.
#pragma once

#include <algorithm>

#include "devices/nic/frame.h"
#include "devices/nic/loop.hpp"
#include "devices/nic/packet.hpp"

namespace haul::nic {

class PortProgram {
 public:
  PortProgram() noexcept { std::fill_n(links_, NIC_LANES, -1); }
  // False, and errno: no rights (CAP_BPF, CAP_NET_ADMIN), or no such program in this kernel.
  bool load() noexcept;
  // What the program knows of a lane. It counts there.
  nic_lane& lane(unsigned index) noexcept { return lanes_[index]; }
  // In the port's network namespace: the lane's receiving port takes in all frames from now on, and
  // runs the program, in its driver, or behind that where a card's driver has no XDP. Either way
  // frames pass one after another. This stays so when the lane is closed: some drivers take the
  // link down for seconds when a program comes or goes. When one came, this waits for the link.
  // False and errno; EBUSY or EEXIST: another program is there.
  bool attach(unsigned lane, const Port& port) noexcept;
  // Takes it from all ports.
  void detach() noexcept;
  // The socket that gets a lane's fragments.
  bool connect(unsigned lane, int socket) noexcept;
  void disconnect(unsigned lane) noexcept;

 private:
  int link(unsigned interface, std::uint32_t where) noexcept;

  int program_ = -1, sockets_ = -1;
  int links_[NIC_LANES];           // where it is attached, or -1
  PortSocket hearing_[NIC_LANES];  // has that port take in all frames
  nic_lane* lanes_ = nullptr;
};

}  // namespace haul::nic
