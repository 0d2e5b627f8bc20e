// mpi: messages within this node under each MPI that is here. haul's provider, the MPI's own shared
// memory and libfabric's shm take turns, a launch each; ratios are of launches of the same round.

#include "bench/messages/mpi_messages.hpp"
#include "tools/directory.hpp"

namespace haul::bench {

void run_mpi(SuiteRun& session, std::vector<Row>& rows) {
  const bool quick = session.options.quick;
  MessagePlan plan;
  plan.tests =
      quick ? std::vector<std::string>{"pingpong", "rate"}
            : std::vector<std::string>{"pingpong", "pingping", "exchange", "alltoall", "rate"};
  plan.buffers = quick ? std::vector<std::string>{"reused", "rewritten"}
                       : std::vector<std::string>{"reused", "rewritten", "fresh", "off-cache"};
  plan.tests = asked_or(session.options.mpi.tests, plan.tests);
  plan.buffers = asked_or(session.options.mpi.buffers, plan.buffers);
  plan.ranks = session.options.mpi.ranks;
  if (plan.ranks.empty()) plan.ranks = {2};
  if (session.options.mpi.ranks.empty() && session.stage.topology().allowed_count >= 4)
    plan.ranks.push_back(4);
  constexpr std::size_t kib = 1024, mib = kib * kib;
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

}  // namespace haul::bench
