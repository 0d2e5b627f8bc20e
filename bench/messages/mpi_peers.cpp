// Turns what scripts/peers.sh says about an MPI into commands.
#include "bench/messages/mpi_peers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "bench/kit/libraries.hpp"
#include "bench/messages/mpi_sources.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr unsigned ask_limit_s = 30, compile_limit_s = 300;
constexpr const char *provider_file = "libhaul-fi.so", *malloc_file = "libhaul-malloc.so";

// The script's variables are lists of words, quoted so that a shell can read them a second time. A
// shell therefore reads them, and prints each as its name, the number of words, and the words,
// every one followed by a NUL.
constexpr const char* ask_script = R"(
variables=$(printf '%s' "$1" | sh -s env "$2") || exit
eval "$variables"
for variable in MPI_TITLE MPI_CC MPI_LAUNCH MPI_ENV MPI_CROWD_ARGS MPI_CROWD_ENV MPI_NATIVE_ARGS \
  MPI_NATIVE_ENV MPI_OFI_ARGS MPI_OFI_ENV; do
  eval "eval \"set -- \$$variable\""
  printf '%s\0%s\0' "$variable" "$#"
  if [ $# -gt 0 ]; then printf '%s\0' "$@"; fi
done
)";

using Words = std::vector<std::string>;
using Answer = std::map<std::string, Words>;

Answer parse(const std::string& text) {
  Words fields;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    fields.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  Answer answer;
  for (std::size_t i = 0; i + 1 < fields.size();) {
    Words& words = answer[fields[i]];
    const std::size_t count = std::stoul(fields[i + 1]);
    i += 2;
    for (std::size_t word = 0; word < count && i < fields.size(); ++word)
      words.push_back(fields[i++]);
  }
  return answer;
}

// `directory` is where the provider lies; "" for one of libfabric's own.
CommandOutcome ask(const std::string& name, const std::string& provider,
                   const std::string& directory) {
  return run_command({"sh", "-c", ask_script, "sh", std::string(peers_script()), name},
                     {{"PROVIDER", provider}, {"DIR", directory}}, ask_limit_s);
}

tools::Environment assignments(const Words& words) {
  tools::Environment all;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos)
      all.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return all;
}

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

template <class List>
void append(List& to, const List& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void write_sources(const std::string& directory) {
  for (const SourceFile& file : mpi_sources()) {
    const std::filesystem::path path = std::filesystem::path(directory) / file.path;
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
    std::ofstream stream(path, std::ios::binary);
    stream << file.text;
    stream.close();
    if (failed || !stream)
      throw tools::CommandFailure(fmt::format(
          "cannot write {}; is the disk full? If not, set TMPDIR to another place", path.string()));
  }
}

}  // namespace

const char* transport_name(Transport transport) {
  switch (transport) {
    case Transport::haul: return "haul";
    case Transport::haul_shared: return "haul-shared";
    case Transport::native: return "native";
    case Transport::ofi_shm: return "ofi-shm";
    case Transport::loopback: return "loopback";
  }
  return "";
}

const std::vector<std::string>& mpi_names() {
  static const std::vector<std::string> names = {"openmpi4", "openmpi5", "mpich5", "intel"};
  return names;
}

std::optional<MpiPeer> MpiPeer::find(const std::string& name, std::string& missing) {
  const CommandOutcome own =
      ask(name, "haul", std::filesystem::path(plugin_file(provider_file)).parent_path());
  if (!own.good()) {
    std::string reason = reason_of(own);
    if (reason.starts_with("haul: ")) reason.erase(0, 6);
    missing = fmt::format("{} (or `make bench-peers` in haul's sources)", reason);
    return std::nullopt;
  }
  Answer answer = parse(own.out), shm = parse(ask(name, "shm", "").out),
         tcp = parse(ask(name, "tcp", "").out);
  MpiPeer mpi;
  mpi.name_ = name;
  mpi.title_ = joined(answer["MPI_TITLE"]);
  mpi.compiler_ = answer["MPI_CC"];
  mpi.launcher_ = answer["MPI_LAUNCH"];
  mpi.environment_ = assignments(answer["MPI_ENV"]);
  mpi.crowd_args_ = answer["MPI_CROWD_ARGS"];
  mpi.crowd_environment_ = assignments(answer["MPI_CROWD_ENV"]);
  mpi.native_args_ = answer["MPI_NATIVE_ARGS"];
  mpi.native_environment_ = assignments(answer["MPI_NATIVE_ENV"]);
  mpi.haul_args_ = answer["MPI_OFI_ARGS"];
  mpi.haul_environment_ = assignments(answer["MPI_OFI_ENV"]);
  mpi.shm_args_ = shm["MPI_OFI_ARGS"];
  mpi.shm_environment_ = assignments(shm["MPI_OFI_ENV"]);
  mpi.tcp_args_ = tcp["MPI_OFI_ARGS"];
  mpi.tcp_environment_ = assignments(tcp["MPI_OFI_ENV"]);
  mpi.tcp_environment_.emplace_back("FI_TCP_IFACE", "lo");
  if (mpi.compiler_.empty() || mpi.launcher_.empty())
    throw tools::CommandFailure(
        fmt::format("{} names no compiler or launcher; this is a bug", name));
  return mpi;
}

std::string MpiPeer::build(const std::string& directory, const std::string& program,
                           const std::vector<std::string>& files) const {
  write_sources(directory);
  std::string path = fmt::format("{}/{}-{}", directory, program, name_);
  Words command = compiler_;
  append(command, {"-std=gnu11", "-O3", "-march=native", "-I", directory, "-o", path});
  for (const std::string& file : files)
    command.push_back(fmt::format("{}/bench/messages/mpi/{}", directory, file));
  command.emplace_back("-lm");
  const CommandOutcome outcome = run_command(command, environment_, compile_limit_s);
  if (!outcome.good())
    throw tools::CommandFailure(
        fmt::format("{} cannot be compiled with {} ({}); are gcc and the MPI's headers "
                    "installed?",
                    program, title_, reason_of(outcome)));
  return path;
}

std::string MpiPeer::unusable(Transport transport) const {
  if (transport != Transport::haul && transport != Transport::haul_shared) return "";
  const std::string path = plugin_file(transport == Transport::haul ? provider_file : malloc_file);
  if (access(path.c_str(), R_OK) == 0) return "";
  return fmt::format("there is no {}; install libfabric-dev and build haul anew", path);
}

CommandOutcome MpiPeer::run(Transport transport, const Launch& launch, const Words& program) const {
  Words command = launcher_;
  tools::Environment all = environment_;
  // Always: ranks pin themselves.
  append(all, crowd_environment_);
  append(command, crowd_args_);
  switch (transport) {
    case Transport::haul_shared:
      all.emplace_back("LD_PRELOAD", plugin_file(malloc_file));
      [[fallthrough]];
    case Transport::haul:
      append(command, haul_args_);
      append(all, haul_environment_);
      break;
    case Transport::native:
      append(command, native_args_);
      append(all, native_environment_);
      break;
    case Transport::ofi_shm:
      append(command, shm_args_);
      append(all, shm_environment_);
      break;
    case Transport::loopback:
      append(command, tcp_args_);
      append(all, tcp_environment_);
      break;
  }
  append(all, launch.extra);
  append(command, {"-n", std::to_string(launch.ranks)});
  append(command, program);
  return run_command(command, all, launch.limit_s);
}

}  // namespace haul::bench
