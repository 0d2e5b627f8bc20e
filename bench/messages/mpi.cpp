// mpi: messages within this node, under each MPI that is installed. haul's provider, the MPI's own
// shared memory and libfabric's shm take turns, one launch each; ratios compare launches of the
// same round.

#include "bench/messages/mpi_columns.hpp"
#include "bench/messages/mpi_messages.hpp"
#include "tools/directory.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

void run_mpi(SuiteRun& session, std::vector<Row>& rows) {
  const bool quick = session.options.quick;
  MessagePlan plan;
  plan.tests = quick ? std::vector<std::string>{"pingpong", "rate"}
                     : std::vector<std::string>{"pingpong", "pingping",  "exchange", "alltoall",
                                                "bcast",    "allreduce", "rate"};
  plan.buffers = quick ? std::vector<std::string>{"reused", "rewritten"}
                       : std::vector<std::string>{"reused", "rewritten", "fresh", "off-cache"};
  plan.tests = tests_or(session, message_tests(), plan.tests);
  plan.buffers = asked_or(session.options.mpi.buffers, plan.buffers);
  plan.ranks = session.options.mpi.ranks;
  if (plan.ranks.empty()) plan.ranks = {2};
  if (session.options.mpi.ranks.empty() && session.stage.topology().allowed_count >= 4)
    plan.ranks.push_back(4);
  using tools::kib;
  using tools::mib;
  const std::vector<std::size_t> few = {8, kib, 64 * kib, mib};
  const std::vector<std::size_t> many = {0,         8,         64,      256,      kib,
                                         2 * kib,   4 * kib,   8 * kib, 16 * kib, 64 * kib,
                                         256 * kib, 512 * kib, mib,     4 * mib,  16 * mib};
  plan.sizes = sizes_or(session.options, quick ? few : many);

  const std::vector<MpiPeer> mpis = choose_mpis(session);
  const tools::TemporaryDirectory directory;
  const std::vector<std::string> programs = build_messages(session, mpis, directory);
  const std::vector<Runner> runners =
      choose_runners(session, mpis, programs, message_probe(session));
  measure_messages(session, runners, plan, rows);
}

constexpr auto mpi_columns = columns_of(
    column::mpi, column::transport, column::test, column::buffers, column::ranks, column::size,
    column::time, column::gbps, column::to_native, column::to_native_q25, column::to_native_q75,
    Column{"ratio_to_best", "of best native", Unit::ratio}, column::placement);

}  // namespace

const Suite mpi_suite{
    "mpi",
    "messages within a node under each MPI: haul, the MPI's own, libfabric's shm (paper 001)",
    run_mpi,
    mpi_columns,
    true,
    why_no_messages,
    false,
    message_tests};

}  // namespace haul::bench
