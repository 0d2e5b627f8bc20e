// haul run: an unmodified program on haul.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/kit/document.hpp"
#include "cli/kit/tree.hpp"
#include "cli/mpi/fabric_report.hpp"
#include "cli/mpi/run_job.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

struct RunChoices {
  bool mpi = false, alloc_mem = false, report = false, strict = false, dry_run = false;
  std::string json;
  std::vector<std::string> command;
};

void print_setup(const MpiJob& job) {
  fmt::print("# {}\nenv", job.mpi.title);
  for (const auto& [name, value] : job.setup.environment) {
    fmt::print(" \\\n  {}={}", name, shell_word(value));
  }
  fmt::print(" \\\n ");
  for (const std::string& word : job.setup.command) fmt::print(" {}", shell_word(word));
  fmt::print("\n");
}

void write_report(const RunChoices& choices, const MpiJob& job, int status,
                  const Collector& collector) {
  nlohmann::ordered_json document = {
      {"mpi", job.mpi.title}, {"command", choices.command}, {"exit_status", status}};
  document.update(traffic_document(collector.reports()));
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
  if (choices.report) print_traffic(stderr, collector.reports());
  if (!choices.json.empty()) write_report(choices, job, status, collector);
  if (choices.strict && status == 0 && collector.reports().empty()) {
    throw tools::CommandFailure(
        "no rank has opened an endpoint of haul (--strict); see that the program calls MPI_Init, "
        "is linked to the MPI of its launcher, and runs on this host");
  }
  throw ExitStatus{status};
}

void run(const RunChoices& choices) {
  if (!choices.mpi) throw UsageError("say how to run the command: --mpi");
  if (choices.command.empty()) {
    throw UsageError("name a command to run, as in `haul run --mpi -- mpirun -np 2 ./program`");
  }
  const MpiJob job =
      prepare_job(choices.command, choices.alloc_mem ? AllocMem::of_haul : AllocMem::of_mpi);
  if (choices.dry_run) return print_setup(job);
  if (choices.report || choices.strict || !choices.json.empty()) run_and_report(choices, job);
  std::fflush(stdout);
  const int error = tools::Image(job.setup.command, job.setup.environment).execute();
  throw tools::CommandFailure(
      fmt::format("cannot start {} ({}); check that it can be run by itself", job.mpi.launcher,
                  std::strerror(error)));
}

}  // namespace

void add_run(Tree& tree) {
  CLI::App& app = tree.command(
      "run", "Run an unmodified MPI program whose ranks send by haul",
      "Recognises the MPI whose launcher begins the command (Open MPI 4 and 5, MPICH, Intel MPI), "
      "sets the environment by which it loads haul's libfabric provider, and becomes the launcher: "
      "haul run --mpi -- mpirun -np 4 ./program.\n"
      "The program is neither changed nor linked anew. On other hosts haul must be installed at "
      "the "
      "same place.\n"
      "--alloc-mem has MPI_Alloc_mem() (and under MPICH and Intel MPI MPI_Win_allocate()), called "
      "from C or C++, give memory of haul's, from 16 KiB on: messages from or to it are copied "
      "once, "
      "without the kernel's help, also where a container refuses process_vm_readv. A program built "
      "with AddressSanitizer refuses to be preloaded.\n"
      "--report counts what the ranks of this host sent, by size and by path, and prints it on "
      "standard error when the job has ended. --strict makes it a failure if no rank used haul.\n"
      "The exit status is the launcher's where that was started.");
  auto choices = std::make_shared<RunChoices>();
  app.add_flag("--mpi", choices->mpi, "The command launches an MPI program");
  app.add_flag(
      "--alloc-mem", choices->alloc_mem,
      "MPI_Alloc_mem() and MPI_Win_allocate() give memory that the node's ranks map (preloads "
      "libhaul-mpi.so)");
  app.add_flag("--report", choices->report,
               "At the end, show how many messages of which size took which path");
  app.add_option("--json", choices->json, "At the end, write that as one JSON document")
      ->type_name("FILE");
  app.add_flag("--strict", choices->strict, "Fail if no rank has used haul");
  app.add_flag("--dry-run", choices->dry_run, "Print the environment and the command, run nothing");
  tree.program(app, choices->command, "The launcher and its arguments");
  app.callback([choices] { run(*choices); });
}

}  // namespace haul::cli
