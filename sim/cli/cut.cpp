// bcisim cut: a part of a trace, with what the caches held when it began.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "cli/printable.hpp"
#include "convert/cut.hpp"

namespace bcisim::cli {

void add_cut(CLI::App& root) {
  CLI::App* const command =
      root.add_subcommand("cut", "Cut a part out of a trace, with a checkpoint of the caches");
  const auto options = std::make_shared<CutOptions>();
  command->add_option("trace", options->input, "The trace")->required();
  command->add_option("-o,--output", options->output, "The part")->required();
  add_count_option(*command, "--skip", options->skip,
                   "Instructions to leave out at its beginning (default: none)");
  add_count_option(*command, "--keep", options->keep, "Instructions to keep")->required();
  add_level_option(*command, options->level);
  command->callback([options] {
    const CutSummary summary = cut(*options);
    fmt::print("{}: {} instructions behind {}{}, {} blocks of caches, {} bytes\n",
               printable(options->output), summary.kept, summary.skipped,
               summary.kept < options->keep ? " (all that there are)" : "", summary.blocks,
               summary.file_bytes);
  });
}

}  // namespace bcisim::cli
