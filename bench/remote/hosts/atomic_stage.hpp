// The stage of remote atomics: the client's core and the home's, hosts in namespaces, the
// responders at the home, and where the receive path runs.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "bench/kit/suite.hpp"
#include "bench/remote/hosts/atomic_nodes.hpp"

namespace haul::bench {

struct Cores {
  int client, home;
};
// Pins the calling thread to the client's core. Throws CommandFailure if there is only one core, or
// if namespaces cannot be made.
Cores take_cores(SuiteRun& session);

// "" if the suites of remote atomics can run here, else why not.
std::string why_no_atomics();

// Which core processes an arriving packet. A veth cable has no interrupts: on its own, the sender's
// core does all that the receiver's kernel does, which flatters XDP. With receive packet steering
// the sender's core interrupts the receiver's core instead, as a network card would.
enum class PacketSteering { sender, rps };
const char* placement_name(PacketSteering placement);  // inline, rps
inline constexpr PacketSteering placements[] = {PacketSteering::sender, PacketSteering::rps};

// What else runs on the home's core: nothing (the paper's SMP kernel: a core for each thread), or a
// process that counts (its UP kernel).
enum class Mode { apart, shared };
const char* mode_name(Mode mode);

// Packets that arrive at that interface are processed as `placement` says, by `cpu` if they are
// steered.
void steer(const Namespace& where, const std::string& interface, PacketSteering placement, int cpu);

// What executes the operations at the home.
struct ResponderChoice {
  const char* name;     // as in rows
  const char* word;     // of haul_atomic_node_open()
  bool is_host;         // a process of the home is involved
  const char* hearing;  // the word for a client that hears by completion map in the same XDP mode
};
// Native XDP on veth runs before packets are steered, so it exists for the placement `sender` only.
std::vector<ResponderChoice> responders(PacketSteering placement);

inline constexpr char atomic_interface[] = "haul0";

// Two hosts, a client and a home, joined by a cable.
class Pair {
 public:
  Pair();
  void place(PacketSteering placement, int client_cpu, int home_cpu);
  // cpu: where a host responder's thread runs.
  Node open_home(const ResponderChoice& responder, int cpu) const;

  static constexpr char client_address[] = "10.88.0.1", home_address[] = "10.88.0.2";
  Namespace client, home;
};

// A SCHED_IDLE thread that keeps a core from halting without taking it from anybody: a virtual core
// that has halted takes longer to wake than an operation takes.
class IdleSpinner {
 public:
  explicit IdleSpinner(int cpu);
  ~IdleSpinner();
  IdleSpinner(const IdleSpinner&) = delete;
  IdleSpinner& operator=(const IdleSpinner&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// take(one, share): called for each contestant once a round, in an order that rotates, so that all
// see the same noise. `share`, 0 to 1, is how much of the whole is done.
template <class Contestants, class Take>
void take_rounds(unsigned rounds, Contestants& all, const Take& take) {
  const std::size_t count = all.size();
  for (std::size_t i = 0; i < rounds * count; ++i) {
    take(all[(i % count + i / count) % count],
         static_cast<double>(i) / static_cast<double>(rounds * count));
  }
}

// A row with the fields that all rows of remote atomics have; those that do not apply are null.
Row atomic_row(const std::string& responder, Mode mode, PacketSteering placement,
               const std::string& op, unsigned contenders);

}  // namespace haul::bench
