// Exactly once, on a network that loses, repeats and reorders.
//   atomic_soak [--operations N] [--seed S] [--responder poll|spin|block|xdp-skb|xdp-native]
//     [--drop D] [--duplicate D] [--reorder D] [--clients K] [--control]
// K clients in one host and a server in another do random operations over a bad cable (D per mille
// of the packets each way, 50 if not said). Every operation must be answered and executed once,
// unless a broken link skips it or its token is stale, and the history of each word be
// linearizable.
// --control: the server forgets its results, which must
// be found out. Exits with 77 where it cannot be run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/atomic/faults.hpp"
#include "tests/atomic/soak_check.hpp"
#include "tests/atomic/soak_client.hpp"
#include "tests/atomic/soak_server.hpp"
#include "tools/failure.hpp"

namespace {

using namespace atomic_test;
using haul::bench::Inside;
using haul::bench::Namespace;
using haul::tools::CommandFailure;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t operations_of_a_round = 250'000;
constexpr unsigned most_clients = 8;
constexpr int skipped = 77;

struct Plan {
  std::uint64_t operations = 300'000, seed = 1;
  std::string responder = "block";
  FaultRates rates{50, 50, 50};
  unsigned clients = 4;
  bool control = false;
};

[[noreturn]] void usage(const char* word) {
  std::fprintf(stderr, "atomic_soak: '%s' is no option, or lacks its value; see soak.cpp\n", word);
  std::exit(2);
}

Plan read_plan(int argc, char** argv) {
  Plan plan;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--control") {
      plan.control = true;
      continue;
    }
    if (i + 1 == argc) usage(argv[i]);
    const char* value = argv[++i];
    const auto number = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
    if (name == "--operations")
      plan.operations = std::strtoull(value, nullptr, 10);
    else if (name == "--seed")
      plan.seed = number;
    else if (name == "--responder")
      plan.responder = value;
    else if (name == "--drop")
      plan.rates.drop = number;
    else if (name == "--duplicate")
      plan.rates.duplicate = number;
    else if (name == "--reorder")
      plan.rates.reorder = number;
    else if (name == "--clients")
      plan.clients = number;
    else
      usage(argv[i - 1]);
  }
  if (plan.clients < 1 || plan.clients > most_clients) usage("--clients (1 to 8)");
  return plan;
}

// Stamps soon wrap.
std::uint64_t first_token(const Plan& plan) {
  return ((plan.seed + 1) << 32) - 500;
}

bool wants_xdp(const Plan& plan) {
  return !plan.control && plan.responder.rfind("xdp-", 0) == 0;
}

// The clients' host: those of even number share a node, which hears by completion map where the
// server is an XDP program; the others have nodes of their own, with sockets.
class Crowd {
 public:
  Crowd(const Namespace& host, const Plan& plan, const haul_atomic_window_name& name,
        const Words& words)
      : host_(host), newest_token_(first_token(plan)) {
    const Inside inside(host);
    const std::string first =
        wants_xdp(plan) ? "none-" + plan.responder.substr(4) + ":haul0" : "none";
    for (unsigned i = 0; i < plan.clients; ++i) {
      if (i == 0 || i % 2 != 0) open(i == 0 ? first : "none");
      haul_atomic_remote* remote = nullptr;
      must_do(haul_atomic_connect(i % 2 == 0 ? nodes_[0] : nodes_.back(), &name, &remote),
              "connecting a client");
      remotes_.push_back(remote);
      clients_.push_back(
          std::make_unique<Client>(remote, name.address, words,
                                   Client::Options{i, plan.clients, plan.seed, &newest_token_}));
    }
  }
  ~Crowd() {
    for (haul_atomic_remote* remote : remotes_) haul_atomic_disconnect(remote);
    for (haul_atomic_node* node : nodes_) haul_atomic_node_close(node);
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  // Each does its share; throws what the first of them failed of.
  void run(std::uint64_t operations) {
    std::vector<std::thread> threads;
    for (const auto& client : clients_) {
      threads.emplace_back([this, &client, operations] {
        const Inside inside(host_);  // where the library looks for the way
        client->run((operations + clients_.size() - 1) / clients_.size());
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& client : clients_) {
      if (!client->failure().empty()) throw CommandFailure(client->failure());
    }
  }

  std::vector<const Client*> clients() const {
    std::vector<const Client*> all;
    for (const auto& client : clients_) all.push_back(client.get());
    return all;
  }
  std::uint64_t count_of(const char* counter) const {
    std::uint64_t sum = 0;
    for (haul_atomic_node* node : nodes_) sum += counters_of(node)[counter];
    return sum;
  }

 private:
  void open(const std::string& responder) {
    haul_atomic_node* node = nullptr;
    must_do(haul_atomic_node_open(responder.c_str(), nullptr, &node), "opening a client");
    nodes_.push_back(node);
  }

  const Namespace& host_;
  std::atomic<std::uint64_t> newest_token_;
  std::vector<haul_atomic_node*> nodes_;
  std::vector<haul_atomic_remote*> remotes_;
  std::vector<std::unique_ptr<Client>> clients_;
};

struct Outcome {
  Tally tally;
  std::uint64_t packets = 0, slowest_ns = 0;
  double run_s = 0, check_s = 0;
  bool counts_agree = true, histories_agree = true;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool counts_agree(const Server& server, const Tally& tally) {
  auto counters = server.counters();
  return counters["served operations"] == tally.executed &&
         counters["refused operations: stale token"] == tally.stale;
}

Outcome soak(const Plan& plan, const Server& server, Crowd& crowd, Checker& checker) {
  Outcome outcome;
  while (outcome.tally.executed < plan.operations) {
    const auto start = Clock::now();
    crowd.run(std::min(operations_of_a_round, plan.operations - outcome.tally.executed));
    outcome.run_s += seconds_since(start);
    const auto end = Clock::now();
    outcome.tally = Tally{};
    outcome.packets = 0;
    for (const Client* client : crowd.clients()) {
      outcome.tally += client->tally();
      outcome.packets += client->packets();
      outcome.slowest_ns = std::max(outcome.slowest_ns, client->slowest_ns());
    }
    outcome.counts_agree = counts_agree(server, outcome.tally);
    outcome.histories_agree = checker.check(crowd.clients());
    outcome.check_s += seconds_since(end);
    if (!outcome.counts_agree || !outcome.histories_agree) return outcome;
  }
  // What is on its way yet.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  outcome.counts_agree = counts_agree(server, outcome.tally);
  outcome.histories_agree = checker.is_at_rest();
  return outcome;
}

unsigned long long show(std::uint64_t number) {
  return number;
}

void tell_way(const BadCable& cable, unsigned way, const char* where) {
  const BadCable::Counts counts = cable.counts(way);
  std::printf(
      "  packets to the %s: %llu, lost %llu, sent twice %llu at once and %llu later, "
      "overtaken %llu\n",
      where, show(counts[FAULTS_SEEN]), show(counts[FAULTS_DROPPED]),
      show(counts[FAULTS_DUPLICATED]), show(counts[FAULTS_DUPLICATED_LATE]),
      show(counts[FAULTS_KEPT]));
}

void tell(const Plan& plan, const Outcome& outcome, const Server& server, const Crowd& crowd,
          const Checker& checker) {
  std::printf(
      "%s: %llu operations in %llu packets of %u clients, %.1f s and %.1f s to check "
      "(--seed %llu)\n",
      server.description().c_str(), show(outcome.tally.executed), show(outcome.packets),
      plan.clients, outcome.run_s, outcome.check_s, show(plan.seed));
  auto counters = server.counters();
  std::printf(
      "  acknowledged %llu, executed %llu, packets replayed %llu, repeated %llu; dropped "
      "as old %llu, as in flight %llu; slowest %.1f ms\n",
      show(outcome.tally.executed), show(counters["served operations"]), show(counters["replayed"]),
      show(crowd.count_of("requests repeated")), show(counters["dropped: old sequence"]),
      show(counters["dropped: in flight"]), static_cast<double>(outcome.slowest_ns) / 1e6);
  const Tally& tally = outcome.tally;
  std::printf(
      "  links: %llu held, %llu broken, %llu operations skipped; tokens: %llu refused as stale "
      "(the server: %llu), %llu busy\n",
      show(tally.links_held), show(tally.links_broken), show(tally.skipped), show(tally.stale),
      show(counters["refused operations: stale token"]), show(tally.busy));
  std::printf("  histories: %llu operations checked, %u words wrong, %u undecided%s%s\n",
              show(checker.checked()), checker.wrong_words(), checker.undecided_words(),
              checker.why().empty() ? "" : "; ", checker.why().c_str());
}

// Two hosts and what is between them.
struct Network {
  explicit Network(const Plan& plan)
      : cable({{clients, "haul0", "10.0.0.1/24"}, {server, "haul1", "10.0.0.2/24"}}, plan.rates,
              wants_xdp(plan) && plan.responder == "xdp-native") {}

  const Namespace clients, server;
  const BadCable cable;
};

bool run(const Plan& plan, const Network& network) {
  const Words words(plan.clients);
  const std::string responder = plan.responder + (wants_xdp(plan) ? ":haul1" : ":10.0.0.2");
  const auto server = plan.control ? serve_forgetfully(network.server, words.bytes())
                                   : serve(network.server, responder, words.bytes());
  Crowd crowd(network.clients, plan, server->name(), words);
  for (unsigned i = 0; i < Words::guarded; ++i) {
    const auto stamp = static_cast<std::uint32_t>(first_token(plan));
    server->words()[Words::first_guarded + i] = stamped(stamp, 0);
  }
  Checker checker(words, server->words());
  const Outcome outcome = soak(plan, *server, crowd, checker);
  tell(plan, outcome, *server, crowd, checker);
  tell_way(network.cable, 0, "server");
  tell_way(network.cable, 1, "clients");
  if (plan.control) {
    // The histories alone must give it away: who only counts does not know which were wrong.
    const bool found_out = checker.wrong_words() > 0 && !outcome.counts_agree;
    std::printf("  the control was %s\n", found_out ? "found out" : "NOT found out");
    return found_out;
  }
  // Where the server is an XDP program, so must those be that hear: else nothing but the kernel's
  // own way would be tested.
  const bool by_program = !wants_xdp(plan) || crowd.count_of("replies completed") > 0;
  // One that is refused for good as busy would be no operation.
  const bool rarely_busy = outcome.tally.busy * 1000 <= outcome.tally.executed;
  const bool right = outcome.counts_agree && outcome.histories_agree && rarely_busy && by_program;
  if (!by_program) std::printf("  no reply was heard by an XDP program\n");
  std::printf("  %s\n", right ? "every operation was executed once" : "WRONG");
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  const Plan plan = read_plan(argc, argv);
  std::unique_ptr<Network> network;
  try {
    network = std::make_unique<Network>(plan);
  } catch (const CommandFailure& failure) {
    std::printf("skipped: %s\n", failure.what());
    return skipped;
  }
  try {
    return run(plan, *network) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const CommandFailure& failure) {
    std::fprintf(stderr, "atomic_soak: %s\n", failure.what());
    return EXIT_FAILURE;
  }
}
