#include "cli/remote/atomic_demo.hpp"

#include <fmt/format.h>

#include <memory>

#include "base/os/os.hpp"
#include "bench/kit/stats.hpp"
#include "bench/remote/hosts/atomic_calls.hpp"
#include "bench/remote/hosts/atomic_stage.hpp"
#include "bench/remote/hosts/peers_redis.hpp"
#include "cli/kit/table.hpp"
#include "cli/kit/terminal.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

using bench::Op;

constexpr unsigned tour_rounds = 5;
constexpr bench::Limit warm_up{200, 20'000'000}, limit{2000, 100'000'000};
constexpr std::uint32_t client_spin_us = 1'000'000;

// Microseconds for a call: one median for each round.
struct Medians {
  bench::Samples thread, redis, receive_path;
};

double ask(const bench::Pair& hosts, const bench::ResponderChoice& responder, int home_cpu) {
  const bench::Node home = hosts.open_home(responder, home_cpu);
  const bench::Window window = bench::make_window(home, sizeof(std::uint64_t));
  const bench::Node client = bench::open_node(
      hosts.client, fmt::format("{}:{}", responder.hearing, bench::atomic_interface), -1,
      client_spin_us);
  bench::Asker asker(client, window);
  asker.ask(Op::add, warm_up);
  return bench::median(asker.ask(Op::add, limit).times_us);
}

Medians measure(int client_cpu, int home_cpu) {
  bench::Pair hosts;
  hosts.place(bench::PacketSteering::rps, client_cpu, home_cpu);
  const bench::IdleSpinner spinner(home_cpu);
  std::unique_ptr<bench::Redis> redis;
  if (bench::Redis::missing().empty()) redis = std::make_unique<bench::Redis>(hosts, home_cpu);
  Medians medians;
  ProgressBar bar("   measuring");
  for (unsigned round = 0; round < tour_rounds; ++round) {
    bar.show(static_cast<double>(round) / tour_rounds, "round trips");
    for (const bench::ResponderChoice& responder : bench::responders(bench::PacketSteering::rps)) {
      const std::string_view name = responder.name;
      if (name == "block") medians.thread.push_back(ask(hosts, responder, home_cpu));
      if (name == "xdp-skb") medians.receive_path.push_back(ask(hosts, responder, home_cpu));
    }
    if (redis != nullptr) {
      medians.redis.push_back(
          bench::median(bench::time_calls(limit, 0, [&] { redis->increment(); }).times_us));
    }
  }
  return medians;
}

void print(const Medians& medians) {
  const auto line = [](const char* what, const bench::Samples& samples) {
    if (samples.empty()) return;
    fmt::print("   {:<46} {:>8}\n", what, tools::show_ns(bench::median(samples) * 1e3));
  };
  fmt::print("   to add one there and hear what it was (fetch&add):\n");
  line("by Redis (INCR)", medians.redis);
  line("by a thread of haul's, asleep until asked", medians.thread);
  line("in the receive path (XDP), by no process", medians.receive_path);
  fmt::print(
      "{}", wrapped(fmt::format("Two hosts, here two network namespaces, each with a core; packets "
                                "interrupt them as a network card would. `haul atomic serve "
                                "--responder xdp:eth0` does this for other hosts, in {:.2f} of the "
                                "thread's time; `haul lock` builds a queue lock on it.",
                                bench::ratio_of(medians.receive_path, medians.thread).median),
                    3));
}

}  // namespace

void show_counter(const bench::Stage& stage) {
  std::string why;
  if (stage.partner_cpu() < 0) {
    why = "two hosts need two CPUs, and this process may use only one";
  } else if (haul_atomic_probe_xdp() < 0) {
    why = haul_last_error();
  } else {
    why = bench::why_no_atomics();
  }
  if (!why.empty()) {
    fmt::print("{}", wrapped(fmt::format("Left out: {}.", why), 3));
    return;
  }
  bench::let_mover_sleep();  // it would spin on the other host's core
  os::pin_thread(static_cast<unsigned>(stage.caller_cpu()));
  print(measure(stage.caller_cpu(), stage.partner_cpu()));
}

}  // namespace haul::cli
