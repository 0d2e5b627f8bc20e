#include "convert/symbols.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <system_error>

#include "format/error.hpp"

namespace bcisim {

namespace {

// The last symbol of a kernel has no next; no function is longer.
constexpr std::uint64_t most_function_bytes = std::uint64_t{1} << 20;

}  // namespace

Symbols Symbols::read(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw TraceError(fmt::format("{}: cannot be read ({}); name a copy of /proc/kallsyms", path,
                                 std::generic_category().message(errno)));
  Symbols read;
  std::string line;
  bool any_address = false;
  for (unsigned number = 1; std::getline(file, line); ++number) {
    Symbol symbol;
    const char *at = line.data(), *end = at + line.size();
    const auto [behind, error] = std::from_chars(at, end, symbol.address, 16);
    if (error != std::errc{} || end - behind < 4 || behind[0] != ' ' || behind[2] != ' ')
      throw TraceError(fmt::format(
          "{}, line {}: is not of the form ADDRESS TYPE NAME; name a copy of /proc/kallsyms", path,
          number));
    any_address = any_address || symbol.address != 0;
    if (std::string_view("tTwW").find(behind[1]) == std::string_view::npos) continue;
    symbol.name.assign(behind + 3, std::find(behind + 3, end, '\t'));
    read.symbols_.push_back(std::move(symbol));
  }
  if (!any_address)
    throw TraceError(fmt::format(
        "{}: holds no address but 0; copy /proc/kallsyms as root of the traced machine", path));
  std::vector<Symbol>& all = read.symbols_;
  std::stable_sort(all.begin(), all.end(),
                   [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
  std::uint64_t next = all.empty() ? 0 : all.back().address + most_function_bytes;
  for (std::size_t i = all.size(); i-- != 0;) {
    const bool last_of_address = i + 1 == all.size() || all[i + 1].address != all[i].address;
    if (last_of_address && i + 1 != all.size()) next = all[i + 1].address;
    all[i].end = next;
  }
  return read;
}

std::optional<std::string> Symbols::name_of(std::uint64_t address) const {
  auto behind = std::upper_bound(
      symbols_.begin(), symbols_.end(), address,
      [](std::uint64_t value, const Symbol& symbol) { return value < symbol.address; });
  if (behind == symbols_.begin()) return std::nullopt;
  --behind;
  if (address >= behind->end) return std::nullopt;
  return fmt::format("{}+{:#x}", behind->name, address - behind->address);
}

}  // namespace bcisim
