// haul run: an unmodified program on haul.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "bench/transparent/preload.hpp"
#include "cli/kit/document.hpp"
#include "cli/kit/tree.hpp"
#include "cli/mpi/fabric_report.hpp"
#include "cli/mpi/report/fabric_large.hpp"
#include "cli/mpi/rings/calibrate_rings.hpp"
#include "cli/mpi/run_job.hpp"
#include "cli/transparent/mem_report.hpp"
#include "cli/transparent/transparent_run.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

struct RunChoices {
  bool mpi = false, transparent = false, alloc_mem = false, report = false, strict = false,
       dry_run = false;
  std::string json, memory = "private";
  std::vector<std::string> command;
};

void print_setup(const tools::Environment& environment, const std::vector<std::string>& command) {
  fmt::print("env");
  for (const auto& [name, value] : environment) fmt::print(" \\\n  {}={}", name, shell_word(value));
  fmt::print(" \\\n ");
  for (const std::string& word : command) fmt::print(" {}", shell_word(word));
  fmt::print("\n");
}

// Becomes the program.
[[noreturn]] void become(const std::vector<std::string>& command,
                         const tools::Environment& environment) {
  std::fflush(stdout);
  const int error = tools::Image(command, environment).execute();
  throw tools::CommandFailure(
      fmt::format("cannot start {} ({}); check that it can be run by itself", command.front(),
                  std::strerror(error)));
}

void run_transparent(const RunChoices& choices) {
  if (choices.alloc_mem || choices.strict || choices.memory != "private")
    throw UsageError("--alloc-mem, --memory and --strict go with --mpi; leave them out");
  if (choices.dry_run) return print_setup(bench::transparent_environment(""), choices.command);
  if (!choices.report && choices.json.empty())
    become(choices.command, bench::transparent_environment(""));
  check_writable(choices.json);
  const TransparentOutcome outcome = run_transparently(choices.command);
  Gains gains;
  if (choices.report) print_copies(stderr, outcome, gains);
  if (!choices.json.empty()) {
    nlohmann::ordered_json document = {{"command", choices.command}};
    document.update(copies_document(outcome, gains));
    write_document(choices.json, document);
  }
  throw ExitStatus{outcome.status};
}

SharedMemory shared_memory(const RunChoices& choices) {
  return choices.memory == "shared" ? SharedMemory::of_malloc
         : choices.alloc_mem        ? SharedMemory::of_mpi
                                    : SharedMemory::none;
}

void write_report(const RunChoices& choices, const MpiJob& job, int status,
                  const Collector& collector, const RingPrice& ring) {
  nlohmann::ordered_json document = {
      {"mpi", job.mpi.title}, {"command", choices.command}, {"exit_status", status}};
  document.update(traffic_document(collector.reports()));
  document.update(large_document(collector.reports(), ring, shared_memory(choices)));
  std::vector<fabric::MonitorReply> replies;
  for (const EndpointReport& report : collector.reports()) replies.push_back(report.reply);
  document["pairs"] = pairs_document(replies);
  write_document(choices.json, document);
}

[[noreturn]] void run_and_report(const RunChoices& choices, const MpiJob& job) {
  check_writable(choices.json);
  Collector collector;
  const int status = run_job(job, collector);
  // Standard output is the program's.
  const RingPrice ring = RingPrice::of_this_machine();
  if (choices.report) {
    print_traffic(stderr, collector.reports());
    print_large(stderr, collector.reports(), ring, shared_memory(choices));
  }
  if (!choices.json.empty()) write_report(choices, job, status, collector, ring);
  if (choices.strict && status == 0 && collector.reports().empty()) {
    throw tools::CommandFailure(
        "no rank has opened an endpoint of haul (--strict); check that the program calls MPI_Init, "
        "is linked to the MPI of its launcher, and runs on this host");
  }
  throw ExitStatus{status};
}

void run(const RunChoices& choices) {
  if (choices.mpi == choices.transparent)
    throw UsageError("say how to run the command: --mpi or --transparent");
  if (choices.command.empty()) {
    throw UsageError(choices.mpi
                         ? "name a command to run, as in `haul run --mpi -- mpirun -np 2 ./program`"
                         : "name a command to run, as in `haul run --transparent -- python3 x.py`");
  }
  if (choices.transparent) return run_transparent(choices);
  const MpiJob job = prepare_job(choices.command, shared_memory(choices));
  if (choices.dry_run) {
    fmt::print("# {}\n", job.mpi.title);
    return print_setup(job.setup.environment, job.setup.command);
  }
  calibrate_before_job();
  if (choices.report || choices.strict || !choices.json.empty()) run_and_report(choices, job);
  become(job.setup.command, job.setup.environment);
}

}  // namespace

void add_run(Tree& tree) {
  CLI::App& app = tree.command(
      "run", "Run an unmodified program on haul: its large copies, or an MPI job's messages",
      "--transparent has the program load libhaul-mem.so, which takes over its calls of memcpy(), "
      "memmove(), memset() and their relatives from 1 MiB on: memory that is not there yet gets "
      "its "
      "pages at once, huge ones where the call fills them, and a core of haul's shares the work "
      "where that is faster, as is found out for each place that calls: haul run --transparent -- "
      "python3 program.py. A call returns when its bytes are there, or looks so. Copies that the "
      "compiler or "
      "libc itself makes, and those of programs that are linked statically or change users, are "
      "not "
      "reached.\n"
      "--mpi recognises the MPI whose launcher begins the command (Open MPI 4 and 5, MPICH, Intel "
      "MPI), sets the environment by which it loads haul's libfabric provider, and becomes the "
      "launcher: haul run --mpi -- mpirun -np 4 ./program.\n"
      "The program is neither changed nor relinked. On other hosts haul must be installed at the "
      "same place. A program built with AddressSanitizer refuses to be preloaded.\n"
      "--alloc-mem has MPI_Alloc_mem() (and under MPICH and Intel MPI MPI_Win_allocate()), called "
      "from C or C++, give memory of haul's, from 16 KiB on: messages from or to it are copied "
      "once, without the kernel's help, also where a container refuses process_vm_readv.\n"
      "--memory=shared has malloc(), calloc(), realloc() and C++ new give such memory, too, from "
      "64 KiB on (HAUL_MEMORY_SHARED_FROM_BYTES): it preloads libhaul-malloc.so. A child of fork "
      "gets a copy of its own, for which fork() takes a millisecond a MiB unless the child calls "
      "exec; a program with a malloc of its own keeps that.\n"
      "--report prints on standard error, when the program has ended, what its processes copied, "
      "from where, in which way and how fast; or what the ranks of this host sent, by size and by "
      "path, what large messages gained against the ring, and which memory kept them from being "
      "mapped, with the remedy. --strict makes it a failure if no rank used haul.\n"
      "The exit status is that of the program or launcher, where that was started.");
  auto choices = std::make_shared<RunChoices>();
  app.add_flag("--transparent", choices->transparent,
               "haul takes over the command's large copies and fills");
  app.add_flag("--mpi", choices->mpi, "The command launches an MPI program");
  app.add_flag(
      "--alloc-mem", choices->alloc_mem,
      "MPI_Alloc_mem() and MPI_Win_allocate() give memory that the node's ranks map (preloads "
      "libhaul-mpi.so)");
  tree.choice(app, "--memory", choices->memory, {"private", "shared"},
              "With --mpi: large allocations are private, or born shared, so that the node's "
              "ranks map them (preloads libhaul-malloc.so, libhaul-mpi.so)");
  app.add_flag("--report", choices->report,
               "At the end, show what was copied from where, or which messages took which path");
  app.add_option("--json", choices->json, "At the end, write that as one JSON document")
      ->type_name("FILE");
  app.add_flag("--strict", choices->strict, "Fail if no rank has used haul");
  app.add_flag("--dry-run", choices->dry_run, "Print the environment and the command, run nothing");
  tree.program(app, choices->command, "The program or launcher, and its arguments");
  app.callback([choices] { run(*choices); });
}

}  // namespace haul::cli
