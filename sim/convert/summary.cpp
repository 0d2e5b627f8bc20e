#include "convert/summary.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

namespace bcisim {

const char* name_of(CopyKind kind) {
  constexpr std::array<const char*, copy_kinds> names = {"copy", "from_user",     "to_user",
                                                         "user", "with_checksum", "fill"};
  return names[static_cast<std::size_t>(kind)];
}

std::string to_text(const ConvertSummary& summary) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    fmt::format_to(std::back_inserter(text), "{:<16}{}\n", name, value);
  };
  const Totals& totals = summary.totals;
  line("instructions",
       fmt::format("{} ({:.1f} % of the kernel), {} places", totals.instructions,
                   100 * ratio(summary.kernel_instructions, totals.instructions), totals.statics));
  line("references", fmt::format("{} ({} pages guessed), {} to devices' registers",
                                 totals.references, summary.guessed_pages, summary.io_references));
  line("interrupts", fmt::format("{}, {} executions faulted", summary.interrupts, summary.faulted));
  if (summary.unknown_code != 0)
    line("unknown code", fmt::format("{} places", summary.unknown_code));
  for (unsigned kind = 0; kind < copy_kinds; ++kind) {
    const ConvertSummary::Copies& copies = summary.copies[kind];
    if (copies.calls != 0)
      line(name_of(static_cast<CopyKind>(kind)),
           fmt::format("{} calls, {:.0f} bytes on average", copies.calls,
                       ratio(copies.bytes, copies.calls)));
  }
  line("unmarked",
       fmt::format("{} calls ({} with gaps, {} with unequal sides, {} too long), {} of "
                   "0 bytes",
                   summary.unmarked.all(), summary.unmarked.scattered, summary.unmarked.unequal,
                   summary.unmarked.too_long, summary.empty_calls));
  line("devices", fmt::format("{} bytes read, {} bytes written", summary.device_read_bytes,
                              summary.device_written_bytes));
  line("file", fmt::format("{} bytes, {:.3f} MB a million instructions", summary.file_bytes,
                           ratio(summary.file_bytes, totals.instructions)));
  return text;
}

nlohmann::json to_json(const ConvertSummary& summary) {
  nlohmann::json copies = nlohmann::json::object();
  for (unsigned kind = 0; kind < copy_kinds; ++kind)
    copies[name_of(static_cast<CopyKind>(kind))] = {{"calls", summary.copies[kind].calls},
                                                    {"bytes", summary.copies[kind].bytes}};
  return {{"instructions", summary.totals.instructions},
          {"kernel_instructions", summary.kernel_instructions},
          {"static_instructions", summary.totals.statics},
          {"references", summary.totals.references},
          {"guessed_pages", summary.guessed_pages},
          {"io_references", summary.io_references},
          {"interrupts", summary.interrupts},
          {"faulted", summary.faulted},
          {"unknown_code", summary.unknown_code},
          {"copies", copies},
          {"unmarked",
           {{"scattered", summary.unmarked.scattered},
            {"unequal", summary.unmarked.unequal},
            {"too_long", summary.unmarked.too_long}}},
          {"empty_calls", summary.empty_calls},
          {"device_read_bytes", summary.device_read_bytes},
          {"device_written_bytes", summary.device_written_bytes},
          {"file_bytes", summary.file_bytes}};
}

}  // namespace bcisim
