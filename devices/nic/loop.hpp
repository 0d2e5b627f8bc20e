// The looped ports: what HAUL_ENGINE_NIC names, or the veth pairs of `haul nic setup`; and the
// network namespace that they are in, which no thread of the program ever enters.
#pragma once

#include <cstddef>

#include "devices/nic/frame.h"

namespace haul::nic {

// A frame that leaves by `out` arrives at `in`; for a port with a loop plug both are the same.
struct Port {
  unsigned out = 0, in = 0;
  std::size_t mtu = 0;
  bool hardware = false;  // and no veth or loopback interface, which are software
  char name[40] = {};
};

// In its network namespace: is its cable connected at both ends?
bool has_link(unsigned interface) noexcept;

struct Choices {
  bool xdp = false;          // receive by AF_XDP, where memory is registered
  bool vfio = false;         // a card by its PCI address, without the kernel
  bool plugged = false;      // its frames return by a plug, and not within it
  std::size_t buffer = 0;    // bytes of its receive buffers, 0: the usual
  unsigned trial = 0;        // percent of frames lost, repeated, overtaken
  std::size_t fragment = 0;  // bytes, 0: what the ports take
  char netns[64] = {};       // where the ports are; empty: see find()
  char ports[1024] = {};     // named ones
};

class Loop {
 public:
  // The engine's arguments. False: the sentence says what is wrong with them.
  bool read(const char* arguments, char* sentence, std::size_t bytes) noexcept;
  // Finds the ports: those that are named, in the program's own network namespace if no other is;
  // else the pairs in the namespace that `haul nic setup` makes. False: why not and the remedy.
  bool find(char* sentence, std::size_t bytes) noexcept;

  const Choices& choices() const noexcept { return choices_; }
  unsigned count() const noexcept { return count_; }
  const Port& port(unsigned index) const noexcept { return ports_[index]; }

  // Runs the function in the ports' namespace, in a thread that is made for it and has ended when
  // this returns. False: no such thread can be made, or it may not go there; errno.
  bool there(void (*body)(void*), void* argument) const noexcept;

 private:
  void find_there() noexcept;
  bool add(const char* out, const char* in) noexcept;

  Choices choices_;
  int netns_ = -1;  // -1: the program's own
  Port ports_[NIC_LANES];
  unsigned count_ = 0;
  char wrong_[160] = {};
};

}  // namespace haul::nic
