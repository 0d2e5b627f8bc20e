#include "cli/mpi/mpi_demo.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "bench/kit/command.hpp"
#include "bench/messages/mpi_sources.hpp"
#include "cli/kit/table.hpp"
#include "cli/kit/terminal.hpp"
#include "cli/mpi/mpi_found.hpp"
#include "tools/directory.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

namespace fs = std::filesystem;
constexpr unsigned compile_s = 60, run_s = 30, rounds = 2;
constexpr const char* sizes = "64,65536,1048576,4194304";
constexpr const char* cache_bytes =
    "33554432";  // used only by kinds of buffers that the demo leaves out
constexpr const char* budget_us = "30000";  // for each size

// Words that follow the launcher, and the environment, with which two ranks start on any machine.
// The ranks pin themselves.
std::vector<std::string> crowd_words(const InstalledMpi& mpi) {
  switch (mpi.kind) {
    case MpiKind::open_mpi_4: return {"--oversubscribe", "--bind-to", "none"};
    case MpiKind::open_mpi_5: return {"--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"};
    case MpiKind::mpich:
    case MpiKind::intel: break;
  }
  return {};
}

tools::Environment crowd_environment(const InstalledMpi& mpi) {
  if (mpi.kind == MpiKind::intel) return {{"I_MPI_PIN", "0"}};
  if (mpi.kind == MpiKind::mpich || geteuid() != 0) return {};
  return {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
}

// Makes the MPI use its own shared memory, whatever it would choose by itself.
tools::Environment native_environment(const InstalledMpi& mpi) {
  tools::Environment environment = launch_environment(mpi);
  switch (mpi.kind) {
    case MpiKind::open_mpi_4:
      environment.insert(environment.end(),
                         {{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", "self,vader"}});
      break;
    case MpiKind::open_mpi_5:
      environment.insert(environment.end(), {{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", "self,sm"}});
      break;
    case MpiKind::intel: environment.emplace_back("I_MPI_FABRICS", "shm"); break;
    case MpiKind::mpich: break;
  }
  return environment;
}

// The compilers beside a launcher: "mpirun.openmpi" has "mpicc.openmpi". `make bench-peers` makes
// the first of these names.
std::vector<std::string> compilers_beside(const InstalledMpi& mpi) {
  const fs::path launcher = mpi.launcher;
  std::vector<std::string> names = {"haul-mpicc", "mpicc" + launcher.extension().string(), "mpicc"};
  std::vector<std::string> all;
  for (const std::string& name : names) {
    const std::string file = tools::find_program((launcher.parent_path() / name).string());
    if (!file.empty()) all.push_back(file);
  }
  return all;
}

// Compiles the program; "" if no compiler of this MPI can.
std::string compile(const InstalledMpi& mpi, const std::string& directory) {
  for (const bench::SourceFile& source : bench::mpi_sources()) {
    const fs::path path = fs::path(directory) / source.path;
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    std::ofstream(path, std::ios::binary) << source.text;
  }
  std::string program = directory + "/messages";
  for (const std::string& compiler : compilers_beside(mpi)) {
    std::vector<std::string> command = {compiler, "-std=gnu11", "-O3", "-march=native",
                                        "-I",     directory,    "-o",  program};
    for (const char* file : {"bench.c", "buffers.c", "common.c", "content.c", "exchange.c"}) {
      command.push_back(directory + "/bench/messages/mpi/" + file);
    }
    command.emplace_back("-lm");
    if (bench::run_command(command, launch_environment(mpi), compile_s).good()) return program;
  }
  return "";
}

// Microseconds for a message, by size; the best of all rounds.
using Times = std::map<std::size_t, double>;

// "row TEST KIND RANKS BYTES US ...", among whatever an MPI prints.
void keep_best(const std::string& output, Times* times) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string row, test, kind;
    unsigned ranks = 0;
    std::size_t bytes = 0;
    double us = 0;
    if (!(words >> row >> test >> kind >> ranks >> bytes >> us) || row != "row") continue;
    const auto known = times->find(bytes);
    (*times)[bytes] = known == times->end() ? us : std::min(known->second, us);
  }
}

struct Comparison {
  Times haul, native;
};

Comparison compare(const InstalledMpi& mpi, const std::string& program, const std::string& cpus) {
  std::vector<std::string> command = {mpi.launcher};
  for (std::string& word : crowd_words(mpi)) command.push_back(std::move(word));
  for (const std::string& word :
       {std::string("-n"), std::string("2"), program, std::string("pingpong"),
        std::string("reused"), std::string(sizes), cpus, std::string(cache_bytes),
        std::string(budget_us), std::string("late")}) {
    command.push_back(word);
  }
  const std::string provider = provider_file();
  MpiSetup on_haul = set_up_mpi(mpi, command, provider.substr(0, provider.rfind('/')));
  MpiSetup natively{command, native_environment(mpi)};
  for (const auto& one : crowd_environment(mpi)) {
    on_haul.environment.push_back(one);
    natively.environment.push_back(one);
  }
  Comparison comparison;
  auto run = [&](const MpiSetup& setup, const char* how, Times* times) {
    const bench::CommandOutcome outcome =
        bench::run_command(setup.command, setup.environment, run_s);
    keep_best(outcome.out, times);
    if (outcome.good() && !times->empty()) return;
    throw tools::CommandFailure(fmt::format("{} fails {}: {}; `haul info` tells what it lacks",
                                            mpi.title, how, bench::reason_of(outcome)));
  };
  for (unsigned round = 0; round < rounds; ++round) {
    run(natively, "on its own shared memory", &comparison.native);
    run(on_haul, "on haul", &comparison.haul);
  }
  return comparison;
}

void print_comparison(const InstalledMpi& mpi, const Comparison& comparison) {
  TextTable table({{"one way", Align::right},
                   {mpi.title, Align::right},
                   {"the same on haul", Align::right},
                   {"ratio", Align::right}});
  double largest = 0, ratio = 0;
  for (const auto& [bytes, us] : comparison.haul) {
    const auto native = comparison.native.find(bytes);
    if (native == comparison.native.end()) continue;
    largest = static_cast<double>(bytes);
    ratio = us / native->second;
    table.add({tools::show_bytes(bytes), tools::show_ns(native->second * 1e3),
               tools::show_ns(us * 1e3), fmt::format("{:.2f}", ratio)});
  }
  for (const std::string& line : table.lines()) fmt::print("   {}\n", line);
  fmt::print("{}",
             wrapped(fmt::format("The same program, not relinked, run by `haul run --mpi`: a "
                                 "message of {} between two ranks takes {:.2f} of the time.",
                                 tools::show_bytes(static_cast<std::uint64_t>(largest)), ratio),
                     3));
}

}  // namespace

void show_messages(const std::string& cpus) {
  auto leave_out = [](const std::string& why) { fmt::print("{}", wrapped(why, 3)); };
  if (provider_file().empty()) return leave_out("Left out: " + provider_remedy() + ".");
  if (cpus.find(',') == std::string::npos) {
    return leave_out("Left out: two ranks need two CPUs, and this process may use only one.");
  }
  const tools::TemporaryDirectory directory;
  std::string uncompiled;
  for (const InstalledMpi& mpi : find_launchers()) {
    if (!missing_for_provider(mpi).empty()) continue;
    const std::string program = compile(mpi, directory.path());
    if (!program.empty()) return print_comparison(mpi, compare(mpi, program, cpus));
    if (uncompiled.empty()) uncompiled = mpi.title;
  }
  if (!uncompiled.empty()) {
    return leave_out(
        fmt::format("Left out: no program can be compiled for {}; install its mpicc "
                    "and headers (Debian: libopenmpi-dev or libmpich-dev) and gcc.",
                    uncompiled));
  }
  leave_out(
      "Left out: no MPI was found; install one, such as Debian's openmpi-bin libopenmpi-dev.");
}

}  // namespace haul::cli
