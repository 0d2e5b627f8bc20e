// The command `bcisim`: parses, runs one command, and turns every failure into one line and an exit
// status: 2 for what was asked wrongly, 1 for what failed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/printable.hpp"

namespace {

constexpr int exit_failure = 1, exit_usage = 2;

int fail(int status, std::string sentence) {
  std::replace(sentence.begin(), sentence.end(), '\n', ' ');
  sentence.erase(sentence.find_last_not_of(" .") + 1);
  fmt::print(stderr, "bcisim: {}\n", bcisim::cli::printable(sentence));
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace bcisim;
  try {
    CLI::App root("Simulates the bulk copy engine of paper 003 on traces of real programs",
                  "bcisim");
    cli::add_info(root);
    cli::add_run(root);
    cli::add_compare(root);
    cli::add_figures(root);
    cli::add_advise(root);
    cli::add_convert(root);
    cli::add_cut(root);
    root.require_subcommand(0, 1);
    try {
      root.parse(argc, argv);
      if (root.get_subcommands().empty()) {
        return fail(exit_usage,
                    "name a command, such as `bcisim figures`; `bcisim --help` lists them");
      }
    } catch (const CLI::Success& asked) {  // --help
      root.exit(asked);
    } catch (const CLI::ParseError& wrong) {
      return fail(exit_usage, fmt::format("{}; see `bcisim --help`", wrong.what()));
    } catch (const cli::UsageError& wrong) {
      return fail(exit_usage, wrong.what());
    }
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
    return fail(exit_failure, "cannot write to standard output; is the disk full?");
  } catch (const std::bad_alloc&) {
    std::fflush(stdout);
    return fail(exit_failure, "out of memory; simulate on fewer --threads, or smaller caches");
  } catch (const std::exception& failure) {
    std::fflush(stdout);
    return fail(exit_failure, failure.what());
  }
}
