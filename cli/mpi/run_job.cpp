#include "cli/mpi/run_job.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/os/os.hpp"
#include "cli/kit/tree.hpp"
#include "tools/failure.hpp"
#include "tools/relay.hpp"

namespace haul::cli {
namespace {

constexpr int tick_ms = 100;  // used where the kernel has no pidfd
constexpr auto last_words = std::chrono::seconds(1);

}  // namespace

MpiJob prepare_job(const std::vector<std::string>& command, SharedMemory shared) {
  const std::string& name = command.front();
  const std::string file = tools::find_program(name);
  if (file.empty()) {
    throw UsageError(fmt::format(
        "there is no program '{}' in PATH; install an MPI, such as Debian's openmpi-bin, or give "
        "its launcher's full path",
        name));
  }
  std::string why;
  const std::optional<InstalledMpi> mpi = recognise_mpi(file, &why);
  if (!mpi) {
    throw UsageError(
        fmt::format("'{}' is no MPI launcher that haul can set up: {}; begin the command with "
                    "mpirun or mpiexec "
                    "of Open MPI, MPICH or Intel MPI",
                    name, why));
  }
  const std::string provider = provider_file();
  if (provider.empty()) throw tools::CommandFailure(provider_remedy());
  if (const std::string missing = missing_for_provider(*mpi); !missing.empty()) {
    throw tools::CommandFailure(
        fmt::format("{} ({}) cannot use haul: {}", mpi->title, file, missing));
  }
  return {*mpi, set_up_mpi(*mpi, command, provider.substr(0, provider.rfind('/')), shared)};
}

int run_job(MpiJob job, Collector& collector) {
  job.setup.environment.emplace_back("HAUL_FABRIC_REPORT", collector.name());
  const pid_t pid = tools::start_program(job.setup.command, job.setup.environment);
  tools::begin_relay(pid);
  const int process = os::pidfd_open(pid);
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) break;
    collector.wait(process < 0 ? -1 : process, process < 0 ? tick_ms : -1);
  }
  tools::end_relay();
  if (process >= 0) close(process);
  collector.drain(last_words);
  return tools::shell_status(status);
}

std::string shell_word(const std::string& text) {
  constexpr const char* plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace haul::cli
