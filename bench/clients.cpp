// clients: one to sixteen processes that keep the node's service busy. Does it lose speed by their
// number, and does each get its share? They sleep while they wait, so that the service has its
// core.
#include <haul/haul.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/clock.hpp"
#include "base/os.hpp"
#include "bench/buffer.hpp"
#include "bench/failure.hpp"
#include "bench/processes.hpp"
#include "bench/stats.hpp"
#include "bench/suite.hpp"

namespace haul::bench {
namespace {

constexpr unsigned most_clients = 16, window = 8;
constexpr std::uint64_t ms = 1'000'000;

enum class Phase : std::uint32_t { prepare, run, stop };

struct Block {
  std::atomic<Phase> phase;
  std::atomic<std::uint32_t> ready;
  std::size_t copy_bytes;
  std::uint64_t run_ns;
  std::atomic<std::uint64_t> bytes[most_clients];  // copied while all ran
};

struct Round {
  double total_gbps = 0, fairness = 1;
};

// n clients at once, for the block's time.
Round run_round(const ServiceProcess& service, SharedBlock& shared, unsigned clients) {
  auto& block = shared.as<Block>();
  block.phase.store(Phase::prepare);
  block.ready.store(0);
  std::vector<Child> children;
  for (unsigned i = 0; i < clients; ++i)
    children.push_back(start_worker("client", i, shared, service.environment()));
  await("a client", children, [&] { return block.ready.load() == clients; });
  const std::uint64_t begin = now_ns();
  block.phase.store(Phase::run);
  os::sleep_ns(block.run_ns);
  block.phase.store(Phase::stop);
  const auto elapsed = static_cast<double>(now_ns() - begin);
  for (Child& child : children) child.finish("a client");
  double sum = 0, squares = 0;
  for (unsigned i = 0; i < clients; ++i) {
    const auto bytes = static_cast<double>(block.bytes[i].load());
    sum += bytes;
    squares += bytes * bytes;
  }
  // Jain: 1 if all get the same, 1/n if one gets all.
  return {sum / elapsed, squares > 0 ? sum * sum / (clients * squares) : 0};
}

}  // namespace

void work_as_client(unsigned index, int block_fd) {
  const SharedBlock shared(block_fd, sizeof(Block));
  auto& block = shared.as<Block>();
  attach_to_service();
  const std::size_t bytes = block.copy_bytes;
  auto* src = static_cast<std::byte*>(haul_alloc(bytes));
  auto* dst = static_cast<std::byte*>(haul_alloc(bytes * window));
  if (src == nullptr || dst == nullptr) throw Failure(haul_last_error());
  write_content(src, bytes, index);
  std::array<haul_ticket, window> tickets{};
  for (unsigned i = 0; i < window; ++i) tickets[i] = haul_copy(dst + i * bytes, src, bytes);
  require(haul_drain(), "haul_drain()");
  block.ready.fetch_add(1);
  while (block.phase.load() == Phase::prepare) os::sleep_ns(ms / 4);
  std::uint64_t copied = 0;
  // A full window all the time; tests never help, so the service does it all.
  for (std::uint64_t turn = 0; block.phase.load() == Phase::run; ++turn) {
    bool any = false;
    for (unsigned i = 0; i < window; ++i) {
      const int status = haul_test(tickets[i]);
      require(status, "haul_test()");
      if (status == 0) continue;
      any = true;
      copied += turn != 0 ? bytes : 0;
      tickets[i] = haul_copy(dst + i * bytes, src, bytes);
    }
    if (!any) os::sleep_ns(ms / 10);
  }
  block.bytes[index].store(copied);
  require(haul_drain(), "haul_drain()");
  for (unsigned i = 0; i < window; ++i) check_content(dst + i * bytes, bytes, index);
}

void run_clients(Session& session, std::vector<Row>& rows) {
  SharedBlock shared(sizeof(Block));
  auto& block = shared.as<Block>();
  block.copy_bytes =
      session.options.sizes.empty() ? std::size_t{1} << 20 : session.options.sizes[0];
  block.run_ns = (session.options.quick ? 100 : 400) * ms;
  const unsigned repetitions = session.options.quick ? 3 : 7;
  const std::array<unsigned, 5> counts = {1, 2, 4, 8, most_clients};
  const ServiceProcess service;
  std::array<Samples, counts.size()> totals, fairness;
  // In turning order, so that all counts see the same noise.
  for (unsigned r = 0; r < repetitions; ++r) {
    for (std::size_t c = 0; c < counts.size(); ++c) {
      const std::size_t at = (c + r) % counts.size();
      session.options.progress(static_cast<double>(r * counts.size() + c) /
                                   static_cast<double>(repetitions * counts.size()),
                               std::to_string(counts[at]) + " clients");
      const Round round = run_round(service, shared, counts[at]);
      totals[at].push_back(round.total_gbps);
      fairness[at].push_back(round.fairness);
    }
  }
  for (std::size_t c = 0; c < counts.size(); ++c) {
    const Ratio against_one = ratio_of(totals[c], totals[0]);
    rows.push_back({{"scheme", "MCNI"},
                    {"mover", "service"},
                    {"engine", "cpu"},
                    {"clients", counts[c]},
                    {"size_bytes", block.copy_bytes},
                    {"window", window},
                    {"total_gbps", round3(median(totals[c]))},
                    {"ratio", round3(against_one.median)},
                    {"ratio_q25", round3(against_one.low)},
                    {"ratio_q75", round3(against_one.high)},
                    {"jain", round3(median(fairness[c]))},
                    {"jain_least", round3(quantile(fairness[c], 0))},
                    {"repetitions", totals[c].size()}});
  }
}

}  // namespace haul::bench
