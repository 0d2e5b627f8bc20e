// The command `haul`: parses its arguments, runs one command, and turns every failure into one line
// and an exit status.
#include <fmt/format.h>
#include <haul/haul.hpp>

#include <algorithm>
#include <cstdio>

#include "cli/kit/terminal.hpp"
#include "cli/kit/tree.hpp"
#include "tools/failure.hpp"

namespace {

constexpr int exit_failure = 1, exit_usage = 2;

int fail(int status, std::string sentence) {
  std::replace(sentence.begin(), sentence.end(), '\n', ' ');
  sentence.erase(sentence.find_last_not_of(" .") + 1);
  fmt::print(stderr, "{}{}\n", haul::cli::line_head(haul::LogLevel::error), sentence);
  return status;
}

// Output that could not be written (a full disk) is a failure.
int flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  return fail(exit_failure, "cannot write to standard output; is the disk full?");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace haul;
  try {
    cli::Tree tree;
    cli::add_demo(tree);
    cli::add_info(tree);
    cli::add_tune(tree);
    cli::add_explain(tree);
    cli::add_bench(tree);
    cli::add_bench_worker(tree);
    cli::add_run(tree);
    cli::add_profile(tree);
    cli::add_serve(tree);
    cli::add_top(tree);
    cli::add_atomic(tree);
    cli::add_lock(tree);
    cli::add_nic(tree);
    cli::add_clean(tree);
    cli::add_completion(tree);
    cli::add_man(tree);
    CLI::App& root = tree.root();
    std::string command;
    for (const CLI::App* one : cli::commands_of(tree)) {
      if (argc > 1 && one->get_name() == argv[1]) command = " " + one->get_name();
    }
    try {
      root.parse(tree.take_program(argc, argv), argv);
      if (root.get_subcommands().empty()) {
        return fail(exit_usage, "name a command, such as `haul demo`; `haul --help` lists them");
      }
    } catch (const CLI::Success& asked) {  // --help, --version
      root.exit(asked);
    } catch (const CLI::ParseError& wrong) {
      return fail(exit_usage, fmt::format("{}; see `haul{} --help`", wrong.what(), command));
    } catch (const cli::UsageError& wrong) {
      return fail(exit_usage, fmt::format("{}; see `haul{} --help`", wrong.what(), command));
    }
    return flush_output();
  } catch (const cli::ExitStatus& other) {
    const int written = flush_output();
    return other.status != 0 ? other.status : written;
  } catch (const tools::CommandFailure& failure) {
    std::fflush(stdout);
    return fail(exit_failure, failure.what());
  } catch (const haul::error& failure) {  // a call of haul's has failed
    std::fflush(stdout);
    return fail(exit_failure, failure.what());
  } catch (const std::exception& unexpected) {
    std::fflush(stdout);
    return fail(exit_failure,
                fmt::format("{}; this is a bug, please report it", unexpected.what()));
  }
}
