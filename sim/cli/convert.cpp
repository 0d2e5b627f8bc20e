// bcisim convert: what the tracer wrote becomes a trace.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "convert/convert.hpp"

namespace bcisim::cli {
namespace {

struct ConvertArguments {
  std::string input;
  JsonOption json;
  std::vector<std::string> metadata;
  ConvertOptions convert;
};

void convert(ConvertArguments& options) {
  for (const std::string& pair : options.metadata) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(fmt::format("'{}' says nothing; write --meta key=value", pair));
    }
    options.convert.metadata[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  const ConvertSummary summary = bcisim::convert(options.input, options.convert);
  if (!options.json.takes_place_of_text()) fmt::print("{}", to_text(summary));
  options.json.write(to_json(summary));
}

}  // namespace

void add_convert(CLI::App& root) {
  CLI::App* const command =
      root.add_subcommand("convert", "Make a trace of the tracer's raw stream (sim/trace/)");
  const auto options = std::make_shared<ConvertArguments>();
  command->add_option("stream", options->input, "The stream; -: standard input")->required();
  command->add_option("-o,--output", options->convert.output, "The trace")->required();
  command->add_option("--symbols", options->convert.symbols,
                      "The traced kernel's /proc/kallsyms: without it no copies are found");
  command->add_option("--meta", options->metadata, "key=value, told by `bcisim info`")->take_all();
  add_level_option(*command, options->convert.level);
  options->json.add_to(*command);
  command->callback([options] { convert(*options); });
}

}  // namespace bcisim::cli
