// mpi-schemes (paper 000, Fig. 8): latency and bandwidth of messages by who moves their bytes.
//   SCNI  the ranks themselves
//   MCNI  a dedicated core: a thread of each rank's, or the node's service
// A mover needs a core beside those of the ranks; on fewer, its figures say only that it works.

#include "bench/kit/processes.hpp"
#include "bench/messages/mpi_columns.hpp"
#include "bench/messages/mpi_messages.hpp"
#include "tools/directory.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr unsigned ranks = 2;

// The movers of all ranks share the first core that no rank has.
tools::Environment thread_environment(const SuiteRun& session) {
  tools::Environment all = {{"HAUL_PLAN_MOVER", "thread"},
                            {"HAUL_SERVICE_USE", "off"},
                            // This process keeps the lease.
                            {"HAUL_MOVER_LEASE", "off"}};
  const Stage& stage = session.stage;
  const Topology& topology = stage.topology();
  for (unsigned i = 0; i < topology.allowed_count; ++i) {
    const int cpu = topology.allowed[i].cpu;
    if (cpu == stage.caller_cpu() || cpu == stage.partner_cpu()) continue;
    all.emplace_back("HAUL_MOVER_CPU", std::to_string(cpu));
    break;
  }
  return all;
}

void run_mpi_schemes(SuiteRun& session, std::vector<Row>& rows) {
  MessagePlan plan;
  plan.tests = tests_or(session, message_tests(), {"pingpong", "bandwidth"});
  plan.buffers = asked_or(session.options.mpi.buffers, {"reused"});
  plan.ranks = {ranks};
  using tools::kib;
  using tools::mib;
  const std::vector<std::size_t> few = {kib, 64 * kib, mib};
  const std::vector<std::size_t> many = {kib, 4 * kib, 16 * kib, 64 * kib, 256 * kib, mib, 4 * mib};
  plan.sizes = sizes_or(session.options, session.options.quick ? few : many);

  const std::vector<MpiPeer> mpis = choose_mpis(session);
  for (const MpiPeer& mpi : mpis) {
    const std::string unusable = mpi.unusable(Transport::haul);
    if (!unusable.empty()) throw tools::CommandFailure(unusable);
  }
  const tools::TemporaryDirectory directory;
  const std::vector<std::string> programs = build_messages(session, mpis, directory);
  const ServiceProcess service;
  std::vector<Runner> runners;
  for (std::size_t i = 0; i < mpis.size(); ++i) {
    auto add = [&](const char* scheme, const char* mover, tools::Environment extra, bool pin_late) {
      runners.push_back(
          {&mpis[i], Transport::haul, programs[i], std::move(extra), scheme, mover, pin_late});
    };
    runners.push_back({&mpis[i], Transport::native, programs[i]});
    add("SCNI", "caller", {{"HAUL_PLAN_MOVER", "caller"}, {"HAUL_SERVICE_USE", "off"}}, false);
    add("MCNI", "thread", thread_environment(session), true);
    add("MCNI", "service", service.environment(), true);
  }
  const std::size_t first = rows.size();
  measure_messages(session, runners, plan, rows);
  const bool enough = session.stage.topology().allowed_count > ranks;
  for (std::size_t i = first; i < rows.size(); ++i) {
    const bool moved = rows[i].value("scheme", "") == "MCNI";
    rows[i]["label"] = moved && !enough ? "correctness only" : "";
  }
}

constexpr auto mpi_schemes_columns = columns_of(
    column::mpi, column::transport, column::scheme, column::mover, column::test, column::buffers,
    column::size, column::time, column::gbps, column::to_native, column::to_native_q25,
    column::to_native_q75, column::placement, Column{"label", "", Unit::text});

}  // namespace

const Suite mpi_schemes_suite{
    "mpi-schemes",
    "latency and bandwidth of messages by who moves the bytes (paper 000, Fig. 8)",
    run_mpi_schemes,
    mpi_schemes_columns,
    true,
    why_no_messages,
    false,
    message_tests};

}  // namespace haul::bench
