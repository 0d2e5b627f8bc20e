// Which runners there are, on which cores they run, and how far apart the cores are.
#include "bench/messages/mpi_race.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/os/os.hpp"
#include "bench/kit/buffer.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr unsigned probe_limit_s = 60;

bool asked_for(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

double round_trip_ns(SuiteRun& session) {
  // The calling thread was unpinned so that programs could start on every CPU.
  os::pin_thread(static_cast<unsigned>(session.stage.caller_cpu()));
  session.distance_ns = session.stage.round_trip_ns();
  return session.distance_ns;
}

}  // namespace

std::vector<std::string> tests_or(const SuiteRun& session, const std::vector<std::string>& known,
                                  const std::vector<std::string>& own) {
  std::vector<std::string> asked = session.options.mpi.tests;
  // `haul bench all` runs suites that have but some of them.
  std::erase_if(asked, [&](const std::string& test) { return !asked_for(known, test); });
  return asked_or(asked, own);
}

std::vector<MpiPeer> choose_mpis(const SuiteRun& session) {
  std::vector<MpiPeer> found;
  std::string last;
  for (const std::string& name : mpi_names()) {
    if (!asked_for(session.options.mpi.mpis, name)) continue;
    std::string missing;
    std::optional<MpiPeer> mpi = MpiPeer::find(name, missing);
    if (mpi) {
      found.push_back(std::move(*mpi));
    } else {
      session.options.note(missing);
      last = missing;
    }
  }
  if (found.empty()) throw tools::CommandFailure(fmt::format("no MPI to measure with: {}", last));
  return found;
}

std::string why_no_messages() {
  std::string missing;
  for (const std::string& name : mpi_names()) {
    const std::optional<MpiPeer> mpi = MpiPeer::find(name, missing);
    if (mpi) return mpi->unusable(Transport::haul);
  }
  return missing;
}

std::string cpu_list(const SuiteRun& session) {
  const int caller = session.stage.caller_cpu(), partner = session.stage.partner_cpu();
  std::string list = std::to_string(caller);
  if (partner >= 0) list += fmt::format(",{}", partner);
  const Topology& topology = session.stage.topology();
  for (unsigned i = 0; i < topology.allowed_count; ++i) {
    const int cpu = topology.allowed[i].cpu;
    if (cpu != caller && cpu != partner) list += fmt::format(",{}", cpu);
  }
  return list;
}

std::string describe(const Runner& runner) {
  return fmt::format("{} on {}{}", runner.mpi->title(), transport_name(runner.transport),
                     runner.scheme.empty() ? "" : " " + runner.scheme);
}

std::vector<Runner> choose_runners(const SuiteRun& session, const std::vector<MpiPeer>& mpis,
                                   const std::vector<std::string>& programs,
                                   const std::vector<std::string>& probe,
                                   const std::vector<Transport>& transports) {
  std::vector<Transport> all = transports;
  const auto haul = std::find(all.begin(), all.end(), Transport::haul);
  if (memory_in_use() == Memory::shared && haul != all.end())
    all.insert(haul + 1, Transport::haul_shared);
  std::vector<Runner> runners;
  for (std::size_t i = 0; i < mpis.size(); ++i) {
    for (Transport transport : all) {
      const Runner runner{&mpis[i], transport, programs[i]};
      const std::string unusable = mpis[i].unusable(transport);
      if (!unusable.empty()) {
        session.options.note(unusable);
        continue;
      }
      std::vector<std::string> command = {programs[i]};
      command.insert(command.end(), probe.begin(), probe.end());
      const CommandOutcome outcome = mpis[i].run(transport, {2, probe_limit_s}, command);
      if (outcome.good()) {
        runners.push_back(runner);
      } else if (transport == Transport::ofi_shm || transport == Transport::loopback) {
        session.options.note(fmt::format("{} does not run on libfabric's {} ({})", mpis[i].title(),
                                         transport == Transport::ofi_shm ? "shm" : "tcp",
                                         reason_of(outcome)));
      } else {
        throw tools::CommandFailure(
            fmt::format("{} does not run: {}", describe(runner), reason_of(outcome)));
      }
    }
  }
  return runners;
}

void CoreDistances::describe(Row& row) const {
  const double shortest = *std::min_element(trips_.begin(), trips_.end());
  const double longest = *std::max_element(trips_.begin(), trips_.end());
  row["placement"] = shortest == 0              ? "none"
                     : longest < near_below_ns  ? "near"
                     : shortest < near_below_ns ? "mixed"
                                                : "far";
  row["round_trip_ns"] = round1(trips_.front());
  row["round_trip_after_ns"] = round1(trips_.back());
  row["round_trip_median_ns"] = round1(median(trips_));
}

CommandOutcome run_one(SuiteRun& session, CoreDistances& placement, const Runner& runner,
                       unsigned ranks, const std::vector<std::string>& arguments,
                       unsigned limit_s) {
  std::vector<std::string> command = {runner.program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.emplace_back(runner.pin_late ? "late" : "early");
  CommandOutcome outcome =
      runner.mpi->run(runner.transport, {ranks, limit_s, runner.extra}, command);
  placement.add(round_trip_ns(session));
  if (!outcome.good())
    throw tools::CommandFailure(
        fmt::format("{} with {} ranks: {}", describe(runner), ranks, reason_of(outcome)));
  return outcome;
}

void take_figures(const CommandOutcome& outcome, const Runner& runner, const std::string& word,
                  std::size_t wanted, const std::function<bool(std::istringstream&)>& take) {
  std::istringstream lines(outcome.out);
  std::size_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string first;
    if (fields >> first && first == word && take(fields)) ++found;
  }
  if (found != wanted)
    throw tools::CommandFailure(fmt::format("{} printed {} figures instead of {}: {}",
                                            describe(runner), found, wanted, reason_of(outcome)));
}

const Runner* native_of(const std::vector<Runner>& runners, const Runner& runner) {
  for (const Runner& one : runners) {
    if (one.mpi == runner.mpi && one.transport == Transport::native) return &one;
  }
  return nullptr;
}

const Runner* first_scheme_of(const std::vector<Runner>& runners, const Runner& runner) {
  for (const Runner& one : runners) {
    if (one.mpi == runner.mpi && !one.scheme.empty()) return &one;
  }
  return nullptr;
}

}  // namespace haul::bench
