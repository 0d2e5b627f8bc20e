// mpi-pinning (paper 001, Fig. 11): messages whose bytes an engine moves that must have memory
// registered, beside those that the CPU moves.
//
// Such an engine gets the copies between memory of MPI_Alloc_mem(), which the ranks map: private
// memory of another process is copied by the kernel alone, which needs no registration. What
// another process can change is registered for each use, so `cached` would be `overlapped` here,
// and is left out.
#include <string>
#include <string_view>

#include "bench/copy/schemes/schemes.hpp"
#include "bench/messages/mpi_columns.hpp"
#include "bench/messages/mpi_messages.hpp"
#include "tools/directory.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

// The ways of one MPI follow each other; the first is what the others are compared with.
struct RegisteredWay {
  const char* scheme;
  const char* engine;
  const char* registration;  // as HAUL_MEMORY_REGISTER, or none
  const char* label;
};
constexpr RegisteredWay registered_ways[] = {{"SCI", "uring", "blocking", "no hardware"},
                                             {"SCI", "uring", "overlapped", "no hardware"},
                                             {"SCNI", "cpu", "none", ""}};

tools::Environment registering_environment(const RegisteredWay& way) {
  tools::Environment all = {{"HAUL_PLAN_MOVER", "caller"},
                            {"HAUL_SERVICE_USE", "off"},
                            {"LD_PRELOAD", mapped_memory_library()},
                            {"HAUL_PLAN_ENGINE", way.engine}};
  if (std::string_view(way.registration) != "none")
    all.emplace_back("HAUL_MEMORY_REGISTER", way.registration);
  return all;
}

void run_mpi_pinning(SuiteRun& session, std::vector<Row>& rows) {
  using tools::kib;
  using tools::mib;
  MessagePlan plan;
  plan.tests = tests_or(session, message_tests(), {"pingpong"});
  plan.buffers = {"alloc-mem"};
  plan.ranks = {2};
  const std::vector<std::size_t> few = {64 * kib, mib},
                                 many = {64 * kib, 256 * kib, mib, 4 * mib, 16 * mib};
  plan.sizes = sizes_or(session.options, session.options.quick ? few : many);
  (void)schemes_of({"uring"}, {"blocking"});  // or it says why there is no such engine
  const std::vector<MpiPeer> mpis = choose_mpis(session);
  for (const MpiPeer& mpi : mpis) {
    const std::string unusable = mpi.unusable(Transport::haul);
    if (!unusable.empty()) throw tools::CommandFailure(unusable);
  }
  const tools::TemporaryDirectory directory;
  const std::vector<std::string> programs = build_messages(session, mpis, directory);
  std::vector<Runner> runners;
  for (std::size_t i = 0; i < mpis.size(); ++i)
    for (const RegisteredWay& way : registered_ways)
      runners.push_back({&mpis[i], Transport::haul, programs[i], registering_environment(way),
                         way.scheme, "caller", false});
  const std::size_t first = rows.size();
  measure_messages(session, runners, plan, rows);
  // Its rows come in the runners' order, for each size.
  for (std::size_t i = first; i < rows.size(); ++i) {
    const RegisteredWay& way = registered_ways[(i - first) % std::size(registered_ways)];
    rows[i]["engine"] = way.engine;
    rows[i]["registration"] = way.registration;
    rows[i]["label"] = way.label;
  }
  session.options.note(
      "uring is no hardware: its figures test haul's part, and say nothing of a device");
}

constexpr auto mpi_pinning_columns =
    columns_of(column::mpi, column::test, column::buffers, column::size, column::scheme,
               column::engine, column::registration, column::time, column::gbps,
               Column{"ratio_to_first", "of blocking", Unit::ratio},
               Column{"ratio_to_first_q25", "25 %", Unit::ratio},
               Column{"ratio_to_first_q75", "75 %", Unit::ratio}, column::placement, column::label);

}  // namespace

const Suite mpi_pinning_suite{
    "mpi-pinning",
    "messages by an engine that registers memory, and how it is registered (paper 001, Fig. 11)",
    run_mpi_pinning,
    mpi_pinning_columns,
    true,
    why_no_messages,
    false,
    message_tests};

}  // namespace haul::bench
