#include "cli/transparent/transparent_run.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>

#include "bench/transparent/preload.hpp"
#include "tools/directory.hpp"
#include "tools/relay.hpp"

namespace haul::cli {
namespace {

double children_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

TransparentOutcome run_transparently(const std::vector<std::string>& command,
                                     const tools::Environment& more) {
  const tools::TemporaryDirectory directory;
  // A program that gives up rights leaves its tables, too; nobody else may list them.
  constexpr mode_t for_all = 01733;
  chmod(directory.path().c_str(), for_all);
  const auto begun = std::chrono::steady_clock::now();
  tools::Environment environment = bench::transparent_environment(directory.path());
  environment.insert(environment.end(), more.begin(), more.end());
  const double cpu_before_s = children_cpu_s();
  const pid_t pid = tools::start_program(command, environment);
  tools::begin_relay(pid);
  TransparentOutcome outcome;
  outcome.status = tools::shell_status(tools::reap(pid));
  tools::end_relay();
  outcome.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  outcome.cpu_s = children_cpu_s() - cpu_before_s;
  outcome.processes = read_tables(directory.path());
  return outcome;
}

}  // namespace haul::cli
