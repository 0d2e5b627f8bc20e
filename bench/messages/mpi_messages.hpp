// Times of messages: turns into rows what bench/messages/mpi/bench.c measured in each of several
// launches.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "bench/messages/mpi_race.hpp"
#include "tools/directory.hpp"

namespace haul::bench {

struct MessagePlan {
  std::vector<std::string> tests, buffers;
  std::vector<unsigned> ranks;  // tests of a pair run with 2 ranks only
  std::vector<std::size_t> sizes;
};

// The arguments of bench.c for a short run that shows whether a transport works at all.
std::vector<std::string> message_probe(const SuiteRun& session);

// Compiles bench.c with each MPI; the programs come in the order of `mpis`.
std::vector<std::string> build_messages(const SuiteRun& session, const std::vector<MpiPeer>& mpis,
                                        const tools::TemporaryDirectory& directory);

// Measures all of the plan: one row for each runner, test, kind of buffers, number of ranks and
// size.
void measure_messages(SuiteRun& session, const std::vector<Runner>& runners,
                      const MessagePlan& plan, std::vector<Row>& rows);

// The names that bench.c knows.
const std::vector<std::string>& message_tests();
const std::vector<std::string>& message_buffers();

// What has the ranks' MPI_Alloc_mem() give memory that they map, when it is preloaded: the path of
// libhaul-mpi.so. Throws CommandFailure if it is not there.
std::string mapped_memory_library();

}  // namespace haul::bench
