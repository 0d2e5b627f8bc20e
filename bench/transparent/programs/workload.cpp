#include "bench/transparent/programs/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "bench/kit/command.hpp"
#include "bench/transparent/programs/generated.hpp"
#include "bench/transparent/programs/python_scripts.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

using Note = std::function<void(const std::string&)>;

using tools::mib;
constexpr unsigned ask_limit_s = 20;

// Every `name` in PATH, since the first python3 need not be the one that has numpy.
std::vector<std::string> every_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "/usr/bin:/bin" : path;
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    std::string file = tools::find_program(name, folders.substr(at, end - at));
    if (!file.empty() && std::find(all.begin(), all.end(), file) == all.end()) all.push_back(file);
    at = end + 1;
  }
  return all;
}

// The interpreter itself that runs `statement` without an error, past any script of that name that
// chooses among several. "" if there is none.
std::string python_that(const std::string& statement) {
  for (const std::string& file : every_program("python3")) {
    const CommandOutcome outcome = run_command(
        {file, "-c", statement + "; import sys; print(sys.executable)"}, {}, ask_limit_s);
    if (outcome.good() && outcome.out.size() > 1)
      return outcome.out.substr(0, outcome.out.find('\n'));
  }
  return "";
}

void add_python(std::vector<Workload>& all, const Note& note) {
  const std::string plain = python_that("import sqlite3");
  if (plain.empty()) return note("no python3 that has sqlite3 in PATH; install python3");
  const std::string numeric = python_that("import numpy");
  if (numeric.empty()) note("no python3 in PATH has numpy; install python3-numpy");
  for (const PythonScript& script : python_scripts) {
    const std::string& python = script.needs_numpy ? numeric : plain;
    if (!python.empty()) all.push_back({script.name, {python, "-c", script.text}});
  }
}

// A program that reads a generated file and writes another.
struct FileProgram {
  const char* name;
  std::size_t input_bytes;
  std::vector<std::string> words;  // @: the input
  const char* suffix;              // of the output, after the input's name
};

void add_file_programs(std::vector<Workload>& all, const std::string& directory, const Note& note) {
  const FileProgram programs[] = {
      {"zstd -3", 24 * mib, {"zstd", "-q", "-3", "-f", "-k", "@"}, ".zst"},
      {"xz -1", 3 * mib, {"xz", "-q", "-1", "-T1", "-f", "-k", "@"}, ".xz"},
      {"gzip -1", 12 * mib, {"gzip", "-n", "-1", "-f", "-k", "@"}, ".gz"},
      {"sort", 12 * mib, {"sort", "@", "-o", "@.sorted"}, ".sorted"}};
  for (const FileProgram& program : programs) {
    if (tools::find_program(program.words.front()).empty()) {
      note(fmt::format("there is no {}; install it", program.words.front()));
      continue;
    }
    const std::string input = fmt::format("{}/{}.txt", directory, program.words.front());
    write_text(input, program.input_bytes);
    std::vector<std::string> command = program.words;
    for (std::string& word : command) {
      if (word.starts_with('@')) word.replace(0, 1, input);
    }
    all.push_back({program.name, command, input + program.suffix, {{"LC_ALL", "C"}}});
  }
}

// Programs that make pictures of nothing but their options, each the same at every run.
void add_media(std::vector<Workload>& all, const std::string& directory, const Note& note) {
  struct MediaProgram {
    const char *name, *package;
    std::vector<std::string> words;  // the output's path comes last
    const char* output;
  };
  const MediaProgram programs[] = {
      // (`convert` by the name that Debian gives it, as others are called so, too.)
      {"ImageMagick",
       "imagemagick",
       {"convert-im6.q16", "-limit", "thread", "1", "-size", "3000x2000", "gradient:red-blue",
        "-rotate", "37", "-resize", "50%"},
       "rotated.ppm"},
      {"ffmpeg",
       "ffmpeg",
       {"ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i",
        "testsrc2=duration=2:size=1920x1080:rate=25", "-threads", "1", "-c:v", "mpeg4", "-fflags",
        "+bitexact", "-flags:v", "+bitexact", "-y"},
       "film.avi"}};
  for (const MediaProgram& program : programs) {
    if (tools::find_program(program.words.front()).empty()) {
      note(fmt::format("there is no {}; install {}", program.words.front(), program.package));
      continue;
    }
    const std::string output = fmt::format("{}/{}", directory, program.output);
    std::vector<std::string> command = program.words;
    command.push_back(output);
    all.push_back({program.name, command, output});
  }
}

void add_git(std::vector<Workload>& all, const std::string& directory, const Note& note) {
  if (tools::find_program("git").empty() || tools::find_program("sh").empty())
    return note("there is no git; install it");
  constexpr unsigned commits = 4;
  const std::string path = directory + "/repository";
  if (const std::string why = make_repository(path, commits); !why.empty())
    return note(fmt::format("git makes no repository ({}); see whether it runs by hand", why));
  // A pack is named by its content's hash. One thread, so that it is always the same.
  const std::string script = fmt::format(
      "cd '{}' && git -c pack.threads=1 gc --aggressive --prune=now --quiet && ls "
      ".git/objects/pack | grep 'pack$'",
      path);
  all.push_back({"git gc",
                 {"sh", "-c", script},
                 "",
                 {{"GIT_CONFIG_NOSYSTEM", "1"}, {"GIT_CONFIG_GLOBAL", "/dev/null"}}});
}

}  // namespace

std::vector<Workload> workloads(const std::string& directory, const Note& note) {
  std::vector<Workload> all;
  if (!tools::find_program("true").empty()) all.push_back({"true", {"true"}});
  add_python(all, note);
  add_file_programs(all, directory, note);
  add_media(all, directory, note);
  add_git(all, directory, note);
  return all;
}

}  // namespace haul::bench
