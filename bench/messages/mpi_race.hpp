// Launches in turn: the same program under several MPIs and transports, A B C A B C, with the
// distance of the cores measured around every one.
#pragma once

#include <deque>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "bench/kit/stats.hpp"
#include "bench/kit/suite.hpp"
#include "bench/messages/mpi_peers.hpp"

namespace haul::bench {

// What the user asked for, or a suite's own choice.
template <class List>
const List& asked_or(const List& asked, const List& own) {
  return asked.empty() ? own : asked;
}

// Those of the asked tests that a suite has; its own choice if none was asked for.
std::vector<std::string> tests_or(const SuiteRun& session, const std::vector<std::string>& known,
                                  const std::vector<std::string>& own);

// "" if there is an MPI and haul's provider, else what is missing.
std::string why_no_messages();

// The MPIs that the options ask for and that are here; what is missing is noted. Throws Failure if
// none is left.
std::vector<MpiPeer> choose_mpis(const SuiteRun& session);

// Ranks run on the session's two cores first, then on the others: "3,5,0".
std::string cpu_list(const SuiteRun& session);

// One of those that take turns.
struct Runner {
  const MpiPeer* mpi = nullptr;
  Transport transport = Transport::native;
  std::string program;
  tools::Environment extra = {};
  std::string scheme = {}, mover = {};  // of haul, in mpi-schemes
  bool pin_late = false;                // so that haul's threads may have other cores
};

// Each of the transports of every MPI that passes `probe`, a short run of its program. A transport
// of haul's or of the MPI itself that is there and fails is a Failure; libfabric's shm and tcp are
// noted and left out: not every MPI takes them.
std::vector<Runner> choose_runners(const SuiteRun& session, const std::vector<MpiPeer>& mpis,
                                   const std::vector<std::string>& programs,
                                   const std::vector<std::string>& probe,
                                   const std::vector<Transport>& transports = {
                                       Transport::haul, Transport::native, Transport::ofi_shm});

// The round trips of a line measured around a row's launches.
class CoreDistances {
 public:
  explicit CoreDistances(const SuiteRun& session) : trips_{session.distance_ns} {}
  void add(double round_trip_ns) { trips_.push_back(round_trip_ns); }
  // placement: near, far, mixed (the cores moved meanwhile) or none (one CPU).
  void describe(Row& row) const;

 private:
  Samples trips_;
};

// Runs one of them on `ranks` ranks and measures the distance behind it. Throws Failure with the
// program's own sentence.
CommandOutcome run_one(SuiteRun& session, CoreDistances& placement, const Runner& runner,
                       unsigned ranks, const std::vector<std::string>& arguments, unsigned limit_s);

// Calls `take` with what follows `word` on each line that begins with it, among whatever an MPI
// prints. Throws Failure unless `take` could read `wanted` such lines.
void take_figures(const CommandOutcome& outcome, const Runner& runner, const std::string& word,
                  std::size_t wanted, const std::function<bool(std::istringstream&)>& take);

// "Open MPI 5.0.11 on haul", for messages.
std::string describe(const Runner& runner);

// The same MPI's native runner; null if there is none.
const Runner* native_of(const std::vector<Runner>& runners, const Runner& runner);

// The same MPI's first runner that has a scheme; null if there is none.
const Runner* first_scheme_of(const std::vector<Runner>& runners, const Runner& runner);

}  // namespace haul::bench
