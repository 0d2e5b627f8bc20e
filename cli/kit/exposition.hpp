// Figures in Prometheus' text exposition format, version 0.0.4.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace haul::cli {

// Builds the text family by family: first what a family is, then its samples. A family is begun
// once, and no two of its samples have the same labels; that is the caller's to see to.
class Exposition {
 public:
  using Labels = std::vector<std::pair<const char*, std::string>>;
  static constexpr const char* content_type = "text/plain; version=0.0.4; charset=utf-8";

  // A counter's name ends in _total. `help` is one sentence.
  void counter(const std::string& name, const std::string& help);
  void gauge(const std::string& name, const std::string& help);
  void sample(std::uint64_t value, const Labels& labels = {});
  void sample_signed(std::int64_t value, const Labels& labels = {});
  // For nanoseconds: the format's unit of time is the second.
  void sample_seconds(std::uint64_t ns, const Labels& labels = {});

  const std::string& text() const { return text_; }

 private:
  void family(const std::string& name, const char* type, const std::string& help);
  void add(const std::string& value, const Labels& labels);

  std::string name_, text_;
};

}  // namespace haul::cli
