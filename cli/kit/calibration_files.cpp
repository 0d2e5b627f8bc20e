// Finding calibration files.
#include "cli/kit/calibration_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "base/knobs.hpp"
#include "base/os/os.hpp"
#include "cli/kit/environment.hpp"

namespace haul::cli {
namespace {

namespace fs = std::filesystem;

// base/'s write_file() names its temporaries <file>.<thread>.tmp.
bool is_temporary(const std::string& name, const std::string& base) {
  if (!name.ends_with(".tmp") || !name.starts_with(base)) return false;
  std::string middle = name.substr(base.size(), name.size() - base.size() - 4);
  auto dot = middle.rfind('.');
  return dot != std::string::npos && dot + 1 < middle.size() &&
         middle.find_first_not_of("0123456789", dot + 1) == std::string::npos;
}

// The number after "\nkey=", if there is one.
std::optional<double> figure_of(const std::string& text, const std::string& key) {
  const auto at = text.find("\n" + key + "=");
  if (at == std::string::npos) return std::nullopt;
  const char* begin = text.c_str() + at + key.size() + 2;
  char* end = nullptr;
  const double value = std::strtod(begin, &end);
  if (end == begin) return std::nullopt;
  return value;
}

}  // namespace

std::optional<CalibrationQuality> calibration_quality(const fs::path& file) {
  char text[2048];
  if (os::read_file(file.c_str(), text, sizeof text) <= 0) return std::nullopt;
  const auto at = figure_of(text, "measured_at"), ran = figure_of(text, "ran_share"),
             stolen = figure_of(text, "stolen_share"), spread = figure_of(text, "spread");
  if (!at || !ran || !stolen || !spread || *at < 0 || *at > 1e12) return std::nullopt;
  return CalibrationQuality{static_cast<std::uint64_t>(*at), *ran, *stolen, *spread};
}

std::string describe(const CalibrationQuality& quality) {
  const auto at = static_cast<std::time_t>(quality.measured_at_s);
  std::tm date{};
  char text[32] = "at an unknown time";
  if (gmtime_r(&at, &date) != nullptr) std::strftime(text, sizeof text, "%F %R UTC", &date);
  return fmt::format(
      "{}: the measuring thread ran for {:.0f} % of the time it wanted to, {:.0f} % of the CPUs' "
      "time was stolen by a host, repeats differed by {:.0f} %",
      text, 100 * quality.ran_share, 100 * quality.stolen_share, 100 * quality.spread);
}

fs::path calibration_place() {
  if (std::string asked = variable("HAUL_TUNE_CACHE"); !asked.empty()) return asked;
  // The XDG specification says to ignore a relative path.
  if (fs::path cache = variable("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "haul";
  if (fs::path home = variable("HOME"); home.is_absolute()) return home / ".cache" / "haul";
  return {};
}

std::vector<CalibrationFile> calibration_files() {
  fs::path place = calibration_place();
  if (place.empty()) return {};
  // A file that the user chose may lie among other files; the directory in the cache is haul's
  // alone.
  bool one_file = !variable("HAUL_TUNE_CACHE").empty();
  fs::path directory = one_file ? place.parent_path() : place;
  if (directory.empty()) directory = ".";
  std::vector<CalibrationFile> files;
  std::error_code failed;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::error_code ignored;
    if (fs::symlink_status(at->path(), ignored).type() != fs::file_type::regular) continue;
    std::string name = at->path().filename();
    // Each machine that shares the home has a file of its own in haul's directory.
    std::string base = one_file ? place.filename().string() : "calibration";
    bool temporary = is_temporary(name, base);
    bool wanted = one_file ? name == base : name.starts_with(base);
    if (!temporary && !wanted) continue;
    files.push_back({at->path(), temporary});
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

}  // namespace haul::cli
