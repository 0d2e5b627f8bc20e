#include "bench/transparent/programs/generated.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include "bench/kit/command.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr unsigned git_limit_s = 60;

std::vector<std::string> vocabulary(std::mt19937_64& random) {
  constexpr std::size_t words = 4096;
  std::vector<std::string> all;
  for (std::size_t i = 0; i < words; ++i) {
    std::string word;
    for (std::uint64_t rest = random() % 100'000'000 + 1; rest != 0; rest /= 20)
      word += static_cast<char>('a' + rest % 20);
    all.push_back(word);
  }
  return all;
}

std::string text_of(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  static const std::vector<std::string> words = vocabulary(random);
  constexpr unsigned words_a_line = 10;
  std::string text;
  text.reserve(bytes + 16);
  for (unsigned i = 1; text.size() < bytes; ++i) {
    // Some words come often, most seldom.
    const std::uint64_t draw = random();
    text += words[(draw % words.size()) * ((draw >> 32) % words.size()) / words.size()];
    text += i % words_a_line == 0 ? '\n' : ' ';
  }
  text.resize(bytes);
  text.back() = '\n';
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "we"),
                                                             std::fclose);
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0)
    throw tools::CommandFailure(
        fmt::format("{} cannot be written; set TMPDIR to a place that has room", path));
}

}  // namespace

void write_text(const std::string& path, std::size_t bytes) {
  write_file(path, text_of(bytes, 1));
}

std::string make_repository(const std::string& path, unsigned commits) {
  constexpr std::size_t large_bytes = std::size_t{6} << 20, small_bytes = std::size_t{16} << 10;
  constexpr unsigned files = 24;
  std::filesystem::create_directories(path);
  const auto git = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"git", "-C", path, "-c", "gc.auto=0", "-c", "user.name=haul", "-c",
                                 "user.email=haul@localhost"});
    const CommandOutcome outcome = run_command(
        words, {{"GIT_CONFIG_NOSYSTEM", "1"}, {"GIT_CONFIG_GLOBAL", "/dev/null"}}, git_limit_s);
    return outcome.good() ? std::string() : reason_of(outcome);
  };
  if (std::string why = git({"init", "--quiet"}); !why.empty()) return why;
  std::string large = text_of(large_bytes, 2);
  for (unsigned commit = 0; commit < commits; ++commit) {
    large.replace(commit * small_bytes, small_bytes, text_of(small_bytes, 100 + commit));
    write_file(path + "/large", large);
    for (unsigned file = 0; file < files; ++file)
      write_file(fmt::format("{}/file{}", path, file),
                 text_of(small_bytes, 1000 + commit * (file % 3) + file));
    if (std::string why = git({"add", "--all"}); !why.empty()) return why;
    if (std::string why = git({"commit", "--quiet", "-m", std::to_string(commit)}); !why.empty())
      return why;
  }
  return "";
}

}  // namespace haul::bench
