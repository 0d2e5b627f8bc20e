#include "cli/mpi/mpi_found.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "cli/kit/environment.hpp"
#include "cli/kit/terminal.hpp"

namespace haul::cli {
namespace {

namespace fs = std::filesystem;
constexpr const char* launcher_names[] = {"mpirun",       "mpiexec",       "mpirun.openmpi",
                                          "mpirun.mpich", "mpiexec.mpich", "mpiexec.hydra"};
constexpr int load_ms = 5000;

std::vector<fs::path> directories_of(const std::string& list) {
  std::vector<fs::path> directories;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    if (end > at) directories.emplace_back(list.substr(at, end - at));
    at = end + 1;
  }
  return directories;
}

// Where `make bench-peers` puts its MPIs, each in a folder of its own.
std::vector<fs::path> peer_directories() {
  fs::path root = variable("HAUL_PEERS_DIR");
  if (root.empty() && !variable("XDG_CACHE_HOME").empty()) {
    root = fs::path(variable("XDG_CACHE_HOME")) / "haul/peers";
  } else if (root.empty() && !variable("HOME").empty()) {
    root = fs::path(variable("HOME")) / ".cache/haul/peers";
  }
  std::vector<fs::path> directories;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root, failed)) {
    directories.push_back(entry.path() / "bin");
  }
  std::sort(directories.begin(), directories.end());
  return directories;
}

std::vector<fs::path> places() {
  std::vector<fs::path> all = directories_of(variable("PATH"));
  if (const std::string root = variable("I_MPI_ROOT"); !root.empty()) {
    all.push_back(fs::path(root) / "bin");
  }
  for (const char* usual : {"/opt/intel/oneapi/mpi/latest/bin", "/usr/lib64/openmpi/bin",
                            "/usr/lib64/mpich/bin", "/usr/local/bin"}) {
    all.emplace_back(usual);
  }
  for (fs::path& peer : peer_directories()) all.push_back(std::move(peer));
  return all;
}

// What fi_version() of a library returns; 0 if the library cannot be loaded. A child loads it: a
// library's constructors may do anything, and one process must not hold two libfabrics.
std::uint32_t version_of_library(const char* file) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  const pid_t pid = fork();
  if (pid == 0) {
    std::uint32_t version = 0;
    if (void* library = dlopen(file, RTLD_LAZY | RTLD_LOCAL)) {
      const auto ask = reinterpret_cast<std::uint32_t (*)()>(dlsym(library, "fi_version"));
      if (ask != nullptr) version = ask();
    }
    (void)!write(ends[1], &version, sizeof version);
    _exit(0);
  }
  close(ends[1]);
  std::uint32_t version = 0;
  pollfd waiting{ends[0], POLLIN, 0};
  if (pid < 0 || poll(&waiting, 1, load_ms) <= 0 ||
      read(ends[0], &version, sizeof version) != sizeof version) {
    version = 0;
  }
  close(ends[0]);
  if (pid > 0) tools::kill_and_reap(pid);
  return version;
}

// The version of the libfabric that comes with an MPI, else of the system's.
std::string libfabric_of(const InstalledMpi& mpi) {
  const fs::path root = fs::path(mpi.launcher).parent_path().parent_path();
  std::vector<std::string> files;
  for (const char* place :
       {"lib/openmpi", "lib/mpich", "lib", "lib64", "libfabric/lib", "opt/mpi/libfabric/lib"}) {
    const fs::path file = root / place / "libfabric.so.1";
    std::error_code failed;
    if (fs::exists(file, failed)) files.push_back(file.string());
  }
  files.emplace_back("libfabric.so.1");
  for (const std::string& file : files) {
    if (const std::uint32_t version = version_of_library(file.c_str()); version != 0) {
      return fmt::format("{}.{}", version >> 16, version & 0xffff);
    }
  }
  return "";
}

std::string state_of(const FoundMpi& found) {
  std::string text = found.libfabric.empty() ? "" : fmt::format("libfabric {}", found.libfabric);
  if (!found.missing.empty()) return text + (text.empty() ? "" : "; ") + found.missing;
  return text;
}

}  // namespace

std::vector<InstalledMpi> find_launchers() {
  std::vector<InstalledMpi> all;
  std::set<std::string> seen;  // files, and "directory title"
  for (const fs::path& place : places()) {
    for (const char* name : launcher_names) {
      const std::string file = tools::find_program((place / name).string());
      if (file.empty()) continue;
      std::error_code failed;
      const fs::path real = fs::canonical(file, failed);
      if (failed || !seen.insert(real.string()).second) continue;
      std::string why;
      const std::optional<InstalledMpi> mpi = recognise_mpi(file, &why);
      if (!mpi) continue;
      if (seen.insert(real.parent_path().string() + " " + mpi->title).second) all.push_back(*mpi);
    }
  }
  return all;
}

std::vector<FoundMpi> find_mpis() {
  std::vector<FoundMpi> all;
  for (InstalledMpi& mpi : find_launchers()) {
    FoundMpi found{mpi, libfabric_of(mpi), missing_for_provider(mpi)};
    if (found.missing.empty() && found.libfabric.empty() && mpi.kind == MpiKind::open_mpi_4) {
      found.missing = "no libfabric was found; install libfabric1";
    }
    all.push_back(std::move(found));
  }
  return all;
}

void print_messages(const std::vector<FoundMpi>& mpis) {
  const std::string provider = provider_file();
  print_heading("Messages");
  print_field("provider", provider.empty() ? provider_remedy() : provider);
  for (const FoundMpi& found : mpis) {
    const bool ready = found.missing.empty() && !provider.empty();
    print_field(found.mpi.title.substr(0, found.mpi.title.rfind(' ')),
                fmt::format("{}: {}, {}", ready ? good("ready") : bad("not ready"), found.mpi.title,
                            found.mpi.launcher));
    if (const std::string state = state_of(found); !state.empty()) print_field("", state);
  }
  if (mpis.empty()) {
    print_field("MPI",
                "none was found; install one, such as Debian's openmpi-bin, or put its launcher "
                "into PATH");
  }
}

nlohmann::ordered_json messages_document(const std::vector<FoundMpi>& mpis) {
  const std::string provider = provider_file();
  nlohmann::ordered_json all;
  all["provider"] = {{"available", !provider.empty()},
                     {"file", provider},
                     {"status", provider.empty() ? provider_remedy() : ""}};
  all["mpis"] = nlohmann::ordered_json::array();
  for (const FoundMpi& found : mpis) {
    all["mpis"].push_back({{"mpi", found.mpi.title},
                           {"launcher", found.mpi.launcher},
                           {"libfabric", found.libfabric},
                           {"ready", found.missing.empty() && !provider.empty()},
                           {"status", found.missing}});
  }
  return all;
}

}  // namespace haul::cli
