// clients: one to sixteen processes keep the node's service busy. Does the service lose speed as
// their number grows, and does each get its share? Clients sleep while they wait, so that the
// service has its core to itself.
#include <haul/haul.h>

#include <array>
#include <vector>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "bench/kit/buffer.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/processes.hpp"
#include "bench/kit/stats.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr unsigned most_clients = 16, window = 4;
// Pairs of a source and a destination, divided among the clients: sixteen clients touch as many
// bytes as one does, and more than the caches hold.
constexpr unsigned all_pairs = 128;
constexpr std::uint64_t ms = 1'000'000;

enum class ClientsPhase : std::uint32_t { prepare, run, stop };

struct ClientsBlock {
  std::atomic<ClientsPhase> phase;
  std::atomic<std::uint32_t> ready;
  std::size_t copy_bytes;
  unsigned clients;
  std::uint64_t run_ns;
  std::atomic<std::uint64_t> bytes[most_clients];  // copied while all clients ran
};

struct Round {
  double total_gbps = 0, fairness = 1;
};

// Runs that many clients at once, for the time that the block says.
Round run_round(const ServiceProcess& service, SharedBlock& shared, unsigned clients) {
  auto& block = shared.as<ClientsBlock>();
  block.phase.store(ClientsPhase::prepare);
  block.ready.store(0);
  block.clients = clients;
  std::vector<Child> children;
  for (unsigned i = 0; i < clients; ++i)
    children.push_back(start_worker("client", i, shared, service.environment()));
  await("a client", children, [&] { return block.ready.load() == clients; });
  const std::uint64_t begin = now_ns();
  block.phase.store(ClientsPhase::run);
  os::sleep_ns(block.run_ns);
  block.phase.store(ClientsPhase::stop);
  const auto elapsed = static_cast<double>(now_ns() - begin);
  for (Child& child : children) child.finish("a client");
  double sum = 0, squares = 0;
  for (unsigned i = 0; i < clients; ++i) {
    const auto bytes = static_cast<double>(block.bytes[i].load());
    sum += bytes;
    squares += bytes * bytes;
  }
  // Jain's index: 1 if all clients get the same, 1/n if one gets everything.
  return {sum / elapsed, squares > 0 ? sum * sum / (clients * squares) : 0};
}

}  // namespace

void work_as_client(unsigned index, int block_fd) {
  const SharedBlock shared(block_fd, sizeof(ClientsBlock));
  auto& block = shared.as<ClientsBlock>();
  attach_to_service();
  const std::size_t bytes = block.copy_bytes;
  const unsigned pairs = all_pairs / block.clients;
  auto* src = static_cast<std::byte*>(haul_alloc(bytes * pairs));
  auto* dst = static_cast<std::byte*>(haul_alloc(bytes * pairs));
  if (src == nullptr || dst == nullptr) throw tools::CommandFailure(haul_last_error());
  for (unsigned i = 0; i < pairs; ++i) write_content(src + i * bytes, bytes, index * all_pairs + i);
  unsigned next = 0;
  const auto copy = [&] {
    const std::size_t at = next++ % pairs * bytes;
    return haul_copy(dst + at, src + at, bytes);
  };
  // A client only tests, and a test never helps, so the service does all the copying; that includes
  // the first round, which maps the pages.
  const std::uint64_t nap_ns = block.clients * ms / 8;
  std::array<haul_ticket, window> tickets{};
  std::uint64_t finished = 0;
  const auto turn = [&] {
    bool any = false;
    for (haul_ticket& ticket : tickets) {
      const int status = haul_test(ticket);
      tools::require(status, "haul_test()");
      if (status == 0) continue;
      any = true;
      ++finished;
      ticket = copy();
    }
    if (!any) os::sleep_ns(nap_ns);
  };
  while (finished < pairs + window) turn();
  block.ready.fetch_add(1);
  while (block.phase.load() == ClientsPhase::prepare) turn();
  const std::uint64_t before = finished;
  while (block.phase.load() == ClientsPhase::run) turn();
  block.bytes[index].store((finished - before) * bytes);
  tools::require(haul_drain(), "haul_drain()");
  for (unsigned i = 0; i < pairs; ++i) check_content(dst + i * bytes, bytes, index * all_pairs + i);
}

namespace {

void run_clients(SuiteRun& session, std::vector<Row>& rows) {
  SharedBlock shared(sizeof(ClientsBlock));
  auto& block = shared.as<ClientsBlock>();
  block.copy_bytes =
      session.options.sizes.empty() ? std::size_t{1} << 20 : session.options.sizes[0];
  block.run_ns = (session.options.quick ? 100 : 400) * ms;
  const unsigned repetitions = session.options.quick ? 3 : 7;
  const std::array<unsigned, 5> counts = {1, 2, 4, 8, most_clients};
  const ServiceProcess service;
  std::array<Samples, counts.size()> totals, fairness;
  // Counts take turns, so that all see the same noise.
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
    Row row = {{"scheme", "MCNI"},
               {"mover", "service"},
               {"engine", "cpu"},
               {"clients", counts[c]},
               {"size_bytes", block.copy_bytes},
               {"window", window},
               {"total_gbps", round3(median(totals[c]))}};
    put_ratio(row, "ratio", ratio_of(totals[c], totals[0]));
    row["jain"] = round3(median(fairness[c]));
    row["jain_least"] = round3(quantile(fairness[c], 0));
    row["repetitions"] = totals[c].size();
    rows.push_back(std::move(row));
  }
}

constexpr auto clients_columns =
    columns_of(Column{"clients", "clients", Unit::count}, column::size, column::scheme,
               Column{"total_gbps", "in all", Unit::gbps}, Column{"ratio", "of one's", Unit::ratio},
               column::ratio_q25, column::ratio_q75, Column{"jain", "Jain", Unit::ratio},
               Column{"jain_least", "least", Unit::ratio});

}  // namespace

const Suite clients_suite{"clients", "one to sixteen processes that share the node's service",
                          run_clients, clients_columns};

}  // namespace haul::bench
