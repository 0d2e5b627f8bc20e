#include "cli/mpi/mpi.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "bench/kit/command.hpp"
#include "bench/kit/libraries.hpp"
#include "bench/messages/mpi_peers.hpp"
#include "cli/kit/environment.hpp"
#include "cli/kit/tree.hpp"

namespace haul::cli {
namespace {

constexpr unsigned answer_s = 10;
constexpr int not_started = 127;
constexpr const char* provider_name = "libhaul-fi.so";
// These lie beside it.
constexpr const char *mpi_memory_name = "libhaul-mpi.so", *malloc_name = "libhaul-malloc.so";
constexpr const char* preload_variable = "LD_PRELOAD";

// "4.1.4" from "mpirun (OpenRTE) 4.1.4": the first number after `mark`. "" if there is none.
std::string version_after(const std::string& text, std::string_view mark) {
  std::size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  const std::size_t line_end = text.find('\n', at);
  at = text.find_first_of("0123456789", at + mark.size());
  if (at == std::string::npos || at > line_end) return "";
  return text.substr(at, text.find_first_not_of("0123456789.", at) - at);
}

// "3.4" of "3.4.1a2": the first two parts as a number to compare, 304.
int release(const std::string& version) {
  const int major = std::atoi(version.c_str());
  const std::size_t dot = version.find('.');
  return 100 * major + (dot == std::string::npos ? 0 : std::atoi(version.c_str() + dot + 1));
}

// What a launcher says of itself, and the oldest version that haul can set up.
struct KnownMpi {
  const char *sign, *before_version, *name, *oldest;
  MpiKind kind;
};
constexpr KnownMpi known_mpis[] = {
    {"(Open MPI) ", "(Open MPI) ", "Open MPI", "4.0", MpiKind::open_mpi_4},
    {"(OpenRTE) ", "(OpenRTE) ", "Open MPI", "4.0", MpiKind::open_mpi_4},
    {"Intel(R) MPI Library", "Intel(R) MPI Library", "Intel MPI", "2019", MpiKind::intel},
    {"HYDRA build details", "Version:", "MPICH", "3.4", MpiKind::mpich}};

std::string directory_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : file.substr(0, slash);
}

std::string absolute(const std::string& file) {
  if (file.starts_with('/')) return file;
  char* here = getcwd(nullptr, 0);
  std::string result = here == nullptr ? file : std::string(here) + "/" + file;
  std::free(here);
  return result;
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// The device that an MPICH was configured with: "ch4:ucx,ofi". "" if the launcher does not say.
std::string mpich_device(const std::string& build_details) {
  constexpr std::string_view mark = "--with-device=";
  const std::size_t at = build_details.find(mark);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + mark.size();
  return build_details.substr(begin, build_details.find_first_of(" '\"\n", begin) - begin);
}

// Intel's launcher starts others by name, and another MPI's have the same names.
std::pair<std::string, std::string> own_directory_first(const std::string& launcher) {
  const std::string directory = directory_of(launcher), path = variable("PATH");
  return {"PATH", path.empty() ? directory : directory + ":" + path};
}

// What a launcher says of itself; "" if it says nothing in time.
std::string words_of(const std::string& launcher) {
  const bench::CommandOutcome said =
      bench::run_command({launcher, "--version"}, {own_directory_first(launcher)}, answer_s);
  return said.timed_out || said.status == not_started ? "" : said.out + said.err;
}

// Refuses arguments that ask for something other than `wanted` after one of `names`: "--mca pml
// ob1".
void refuse_other(const std::vector<std::string>& command, const std::vector<std::string>& names,
                  const std::string& what, const std::string& wanted) {
  for (std::size_t i = 0; i + 2 < command.size(); ++i) {
    for (const std::string& name : names) {
      if (command[i] != name || command[i + 1] != what || command[i + 2] == wanted) continue;
      throw UsageError(
          fmt::format("'{} {} {}' in the command keeps haul out; leave it out, or run "
                      "the command without `haul run`",
                      name, what, command[i + 2]));
    }
  }
}

// Open MPI passes its own variables on to other hosts, but others only if told to.
std::vector<std::string> exported_variables(SharedMemory shared) {
  std::vector<std::string> arguments = {"-x", "FI_PROVIDER_PATH"};
  if (shared != SharedMemory::none) arguments.insert(arguments.end(), {"-x", preload_variable});
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string text = *one;
    if (text.starts_with("HAUL_")) {
      arguments.insert(arguments.end(), {"-x", text.substr(0, text.find('='))});
    }
  }
  return arguments;
}

// Whether the command, or the batch system it runs in, names hosts.
bool names_hosts(const std::vector<std::string>& command) {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE"}) {
    if (!variable(name).empty()) return true;
  }
  for (const std::string& argument : command) {
    for (const char* name : {"-H", "--host", "-host", "--hostfile", "-hostfile", "--machinefile",
                             "-machinefile", "--default-hostfile"}) {
      if (argument == name) return true;
    }
  }
  return false;
}

tools::Environment provider_environment(const InstalledMpi& mpi, const std::string& directory) {
  const std::string others = variable("FI_PROVIDER_PATH");
  // Intel MPI reads only the first directory.
  const bool alone = others.empty() || others == directory || mpi.kind == MpiKind::intel;
  tools::Environment environment = {
      {"FI_PROVIDER_PATH", alone ? directory : directory + ":" + others}};
  switch (mpi.kind) {
    case MpiKind::open_mpi_4:
    case MpiKind::open_mpi_5:
      environment.insert(environment.end(), {{"OMPI_MCA_pml", "cm"},
                                             {"OMPI_MCA_mtl", "ofi"},
                                             {mpi.kind == MpiKind::open_mpi_4
                                                  ? "OMPI_MCA_mtl_ofi_provider_include"
                                                  : "OMPI_MCA_opal_common_ofi_provider_include",
                                              "haul"}});
      break;
    case MpiKind::mpich:
      // Without NOLOCAL, MPICH keeps messages within a node on a path of its own.
      environment.insert(
          environment.end(),
          {{"FI_PROVIDER", "haul"}, {"MPIR_CVAR_CH4_NETMOD", "ofi"}, {"MPIR_CVAR_NOLOCAL", "1"}});
      break;
    case MpiKind::intel:
      environment.insert(environment.end(), {{"FI_PROVIDER", "haul"}, {"I_MPI_FABRICS", "ofi"}});
      if (!variable("I_MPI_OFI_PROVIDER").empty()) {  // if it is set, it takes precedence
        environment.emplace_back("I_MPI_OFI_PROVIDER", "haul");
      }
      break;
  }
  return environment;
}

}  // namespace

std::optional<InstalledMpi> recognise_mpi(const std::string& file, std::string* why) {
  InstalledMpi mpi;
  mpi.launcher = absolute(file);
  const std::string said = words_of(mpi.launcher);
  for (const KnownMpi& known : known_mpis) {
    const std::string version =
        said.find(known.sign) == std::string::npos ? "" : version_after(said, known.before_version);
    if (version.empty()) continue;
    mpi.title = fmt::format("{} {}", known.name, version);
    mpi.kind = known.kind == MpiKind::open_mpi_4 && release(version) >= 500 ? MpiKind::open_mpi_5
                                                                            : known.kind;
    if (release(version) >= release(known.oldest)) return mpi;
    *why = fmt::format("{} is too old for haul; use {} or newer", mpi.title, known.oldest);
    return std::nullopt;
  }
  *why =
      said.empty() ? "it does not answer --version" : "it is none of Open MPI, MPICH or Intel MPI";
  return std::nullopt;
}

std::string missing_for_provider(const InstalledMpi& mpi) {
  if (mpi.kind == MpiKind::intel) return "";
  if (mpi.kind == MpiKind::mpich) {
    const std::string device = mpich_device(words_of(mpi.launcher));
    if (device.empty() || device.find("ofi") != std::string::npos) return "";
    return fmt::format("it was built without libfabric (device {}); use one built with ch4:ofi",
                       device);
  }
  const std::string info = directory_of(mpi.launcher) + "/ompi_info";
  const bench::CommandOutcome said = bench::run_command({info, "--parsable"}, {}, answer_s);
  if (!said.good()) return "";  // nothing is known, so the MPI may well have it
  if (said.out.find("mca:mtl:ofi:") != std::string::npos) return "";
  return "it was built without libfabric (no mtl ofi in `ompi_info`); use one built "
         "--with-ofi";
}

std::string provider_file() {
  const std::string file = bench::plugin_file(provider_name);
  return access(file.c_str(), R_OK) == 0 ? file : "";
}

std::string provider_remedy() {
  return fmt::format(
      "{} is not beside libhaul.so.0; install the package haul-mpi, or libfabric-dev where it is "
      "missing and build all of haul (`make`)",
      provider_name);
}

tools::Environment launch_environment(const InstalledMpi& mpi) {
  if (mpi.kind != MpiKind::intel) return {};
  tools::Environment environment = {own_directory_first(mpi.launcher)};
  // In a Python wheel the data lie where the MPI's scripts do not look.
  const std::string data = directory_of(mpi.launcher) + "/../opt/mpi";
  if (variable("I_MPI_ROOT").empty() && is_directory(data)) {
    environment.emplace_back("I_MPI_ROOT", data);
  }
  return environment;
}

MpiSetup set_up_mpi(const InstalledMpi& mpi, const std::vector<std::string>& command,
                    const std::string& provider_directory, SharedMemory shared) {
  MpiSetup setup{command, provider_environment(mpi, provider_directory)};
  if (shared != SharedMemory::none) {
    std::string files = provider_directory + "/" + mpi_memory_name;
    if (shared == SharedMemory::of_malloc)
      files = provider_directory + "/" + malloc_name + ":" + files;
    const std::string others = variable(preload_variable);
    setup.environment.emplace_back(preload_variable, others.empty() ? files : files + ":" + others);
  }
  switch (mpi.kind) {
    case MpiKind::open_mpi_4:
    case MpiKind::open_mpi_5: {
      const std::vector<std::string> options = {"--mca", "-mca", "--gmca", "-gmca", "--omca"};
      refuse_other(command, options, "pml", "cm");
      refuse_other(command, options, "mtl", "ofi");
      if (names_hosts(command)) {
        const std::vector<std::string> extra = exported_variables(shared);
        setup.command.insert(setup.command.begin() + 1, extra.begin(), extra.end());
      }
      break;
    }
    case MpiKind::mpich:
    case MpiKind::intel:
      for (const auto& [name, value] : setup.environment) {
        refuse_other(command, {"-genv", "-env", "--genv", "--env"}, name, value);
      }
      break;
  }
  for (auto& one : launch_environment(mpi)) setup.environment.push_back(std::move(one));
  return setup;
}

}  // namespace haul::cli
