#include "convert/convert.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "convert/places.hpp"
#include "convert/stream_reader.hpp"
#include "convert/symbols.hpp"
#include "convert/weaver.hpp"
#include "format/input_bytes.hpp"

namespace bcisim {

namespace {

ConvertSummary convert(InputBytes& input, const ConvertOptions& options) {
  Symbols symbols;
  if (!options.symbols.empty()) symbols = Symbols::read(options.symbols);
  const CopyRoutines routines(symbols);
  StreamReader stream(input);
  TraceWriter writer(options.output, options.metadata, options.level);
  ConvertSummary summary;
  Places places(routines);
  Weaver weaver(places, writer, summary);
  StreamRecord record;
  while (stream.next(record)) {
    switch (record.tag) {
      case BCISIM_STATIC: places.add(record); break;
      case BCISIM_EXEC: weaver.execute(places.number_of(record.id)); break;
      case BCISIM_MEMORY:
        if (!weaver.refer(record))
          stream.fail("a reference's physical address is not as far into its page as the virtual");
        break;
      default: weaver.add_device(record); break;
    }
  }
  weaver.finish();
  nlohmann::json metadata = options.metadata;
  nlohmann::json& names = metadata["symbols"] = nlohmann::json::object();
  for (const std::uint64_t site : weaver.sites())
    if (const auto name = symbols.name_of(site)) names[fmt::format("{:#x}", site)] = *name;
  writer.set_metadata(metadata);
  writer.finish();
  summary.totals = writer.totals();
  summary.file_bytes = std::filesystem::file_size(options.output);
  return summary;
}

}  // namespace

ConvertSummary convert(const std::string& input, const ConvertOptions& options) {
  InputBytes bytes(input == "-" ? "/dev/stdin" : input);
  return convert(bytes, options);
}

ConvertSummary convert(std::span<const std::uint8_t> stream, const std::string& name,
                       const ConvertOptions& options) {
  InputBytes bytes(stream, name);
  return convert(bytes, options);
}

}  // namespace bcisim
