// Times of messages: what bench/messages/mpi/bench.c measured in each of several launches, as rows.
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
  std::vector<unsigned> ranks;  // pairs of ranks run with 2 alone
  std::vector<std::size_t> sizes;
};

// The arguments of bench.c for a first look at whether a transport works at all.
std::vector<std::string> message_probe(const SuiteRun& session);

// Compiles bench.c with each MPI; in the order of `mpis`.
std::vector<std::string> build_messages(const SuiteRun& session, const std::vector<MpiPeer>& mpis,
                                        const tools::TemporaryDirectory& directory);

// All of the plan; one row a runner, test, kind of buffers, number of ranks and size.
void measure_messages(SuiteRun& session, const std::vector<Runner>& runners,
                      const MessagePlan& plan, std::vector<Row>& rows);

// What bench.c knows.
const std::vector<std::string>& message_tests();
const std::vector<std::string>& message_buffers();

}  // namespace haul::bench
