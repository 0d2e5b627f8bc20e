#include "cli/kit/exposition.hpp"

#include <fmt/format.h>

namespace haul::cli {
namespace {

// A label's value between its quotation marks.
std::string escaped_value(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\n') {
      safe += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') safe += '\\';
    safe += c;
  }
  return safe;
}

}  // namespace

void Exposition::counter(const std::string& name, const std::string& help) {
  family(name, "counter", help);
}

void Exposition::gauge(const std::string& name, const std::string& help) {
  family(name, "gauge", help);
}

void Exposition::family(const std::string& name, const char* type, const std::string& help) {
  name_ = name;
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

void Exposition::sample(std::uint64_t value, const Labels& labels) {
  add(fmt::format("{}", value), labels);
}

void Exposition::sample_signed(std::int64_t value, const Labels& labels) {
  add(fmt::format("{}", value), labels);
}

void Exposition::sample_seconds(std::uint64_t ns, const Labels& labels) {
  add(fmt::format("{}.{:09}", ns / 1'000'000'000, ns % 1'000'000'000), labels);
}

void Exposition::add(const std::string& value, const Labels& labels) {
  text_ += name_;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first,
                         escaped_value(labels[i].second));
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
}

}  // namespace haul::cli
