#include "bench/remote/hosts/atomic_stage.hpp"

#include <fmt/format.h>
#include <sched.h>

#include "base/os/os.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

// A set of one CPU as sysfs wants it: hexadecimal words of 32 bits, the highest first.
std::string mask_of(int cpu) {
  std::string text = fmt::format("{:x}", 1u << (cpu % 32));
  for (int word = cpu / 32; word > 0; --word) text += ",00000000";
  return text;
}

}  // namespace

Cores take_cores(SuiteRun& session) {
  const Stage& stage = session.stage;
  if (stage.partner_cpu() < 0)
    throw tools::CommandFailure(
        "remote atomics are measured between two cores, but this process may use only one");
  const std::string why_not = why_no_atomics();
  if (!why_not.empty()) throw tools::CommandFailure(why_not);
  let_mover_sleep();  // it would spin on the home's core
  os::pin_thread(static_cast<unsigned>(stage.caller_cpu()));
  return {stage.caller_cpu(), stage.partner_cpu()};
}

std::string why_no_atomics() {
  static const std::string why = why_no_namespaces();
  return why;
}

const char* placement_name(PacketSteering placement) {
  return placement == PacketSteering::rps ? "rps" : "inline";
}

const char* mode_name(Mode mode) {
  return mode == Mode::apart ? "apart" : "shared";
}

void steer(const Namespace& where, const std::string& interface, PacketSteering placement,
           int cpu) {
  where.write(fmt::format("/sys/class/net/{}/queues/rx-0/rps_cpus", interface),
              placement == PacketSteering::rps ? mask_of(cpu) : "0");
}

std::vector<ResponderChoice> responders(PacketSteering placement) {
  std::vector<ResponderChoice> all;
  if (placement == PacketSteering::sender)
    all.push_back({"xdp-native", "xdp-native", false, "none-native"});
  all.push_back({"xdp-skb", "xdp-skb", false, "none-skb"});
  all.push_back({"poll", "poll", true, "none-skb"});
  all.push_back({"spin", "spin", true, "none-skb"});
  all.push_back({"block", "block", true, "none-skb"});
  return all;
}

Pair::Pair() {
  join(client, atomic_interface, std::string(client_address) + "/24", home, atomic_interface,
       std::string(home_address) + "/24");
}

void Pair::place(PacketSteering placement, int client_cpu, int home_cpu) {
  steer(client, atomic_interface, placement, client_cpu);
  steer(home, atomic_interface, placement, home_cpu);
}

Node Pair::open_home(const ResponderChoice& responder, int cpu) const {
  return open_node(
      home,
      fmt::format("{}:{}", responder.word, responder.is_host ? home_address : atomic_interface),
      cpu);
}

IdleSpinner::IdleSpinner(int cpu)
    : thread_([this, cpu] {
        os::pin_thread(static_cast<unsigned>(cpu));
        const sched_param none{};
        sched_setscheduler(0, SCHED_IDLE, &none);
        while (!stop_.load(std::memory_order_relaxed)) __builtin_ia32_pause();
      }) {}

IdleSpinner::~IdleSpinner() {
  stop_.store(true, std::memory_order_relaxed);
  thread_.join();
}

Row atomic_row(const std::string& responder, Mode mode, PacketSteering placement,
               const std::string& op, unsigned contenders) {
  return {{"responder", responder},
          {"mode", mode_name(mode)},
          {"placement", placement_name(placement)},
          {"op", op},
          {"contenders", contenders},
          {"rate_per_s", nullptr},
          {"median_us", nullptr},
          {"p99_us", nullptr},
          {"bystander_ratio", nullptr},
          {"home_core", "a SCHED_IDLE thread keeps it from halting"}};
}

}  // namespace haul::bench
