// mpi-schemes (paper 000, Fig. 8): latency and bandwidth of messages by who moves their bytes.
//   SCNI  the ranks themselves
//   MCNI  a dedicated core: a thread of each rank's, or the node's service
// and, with --engine, by devices:
//   SCI   a device that the ranks drive
//   MCI   a device that a dedicated core drives
// A device reaches what both ranks map, so the buffers are MPI_Alloc_mem()'s then. A mover needs a
// core beside those of the ranks; on fewer, its figures say only that it works.

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

// Of one scheme by one engine, as they were asked for.
tools::Environment engine_environment(const SuiteRun& session, const EngineScheme& way) {
  const bool by_mover = way.scheme.starts_with('M');
  tools::Environment all =
      by_mover ? thread_environment(session)
               : tools::Environment{{"HAUL_PLAN_MOVER", "caller"}, {"HAUL_SERVICE_USE", "off"}};
  all.emplace_back("LD_PRELOAD", mapped_memory_library());
  all.emplace_back("HAUL_PLAN_ENGINE", way.engine);
  if (way.registration != "none") all.emplace_back("HAUL_MEMORY_REGISTER", way.registration);
  return all;
}

void run_mpi_schemes(SuiteRun& session, std::vector<Row>& rows) {
  MessagePlan plan;
  plan.tests = tests_or(session, message_tests(), {"pingpong", "bandwidth"});
  const std::vector<EngineScheme>& ways = session.options.schemes;
  const char* usual_buffers = ways.empty() ? "reused" : "alloc-mem";
  plan.buffers = asked_or(session.options.mpi.buffers, {usual_buffers});
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
    for (const EngineScheme& way : ways) {
      const bool by_mover = way.scheme.starts_with('M');
      add(way.scheme.c_str(), by_mover ? "thread" : "caller", engine_environment(session, way),
          by_mover);
    }
    if (!ways.empty()) continue;
    add("SCNI", "caller", {{"HAUL_PLAN_MOVER", "caller"}, {"HAUL_SERVICE_USE", "off"}}, false);
    add("MCNI", "thread", thread_environment(session), true);
    add("MCNI", "service", service.environment(), true);
  }
  const std::size_t first = rows.size();
  measure_messages(session, runners, plan, rows);
  const bool enough = session.stage.topology().allowed_count > ranks;
  // Its rows come in the runners' order, for each size: native first, then each way.
  for (std::size_t i = first; i < rows.size(); ++i) {
    const std::size_t turn = (i - first) % (ways.size() + 1);
    const EngineScheme* way = !ways.empty() && turn != 0 ? &ways[turn - 1] : nullptr;
    const bool moved = rows[i].value("scheme", "").starts_with('M');
    std::string label = moved && !enough ? "correctness only" : "";
    if (way != nullptr && !way->hardware) label += label.empty() ? "no hardware" : ", no hardware";
    rows[i]["label"] = label;
    if (ways.empty()) continue;
    rows[i]["engine"] = way != nullptr ? way->engine : "";
    rows[i]["registration"] = way != nullptr ? way->registration : "";
  }
  if (!ways.empty())
    session.more_columns = {Column{"engine", "engine", Unit::text},
                            Column{"registration", "registration", Unit::text}};
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
    true,
    message_tests};

}  // namespace haul::bench
