#include "bench/transparent/preload.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "bench/kit/libraries.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr const char* preloaded_name = "libhaul-mem.so";

std::string preloaded_file() {
  std::string file = plugin_file(preloaded_name);
  // There is no way to quote one.
  if (file.find_first_of(" :") != std::string::npos)
    throw tools::CommandFailure(fmt::format(
        "LD_PRELOAD cannot name {}, whose path has a blank or a colon; install haul elsewhere",
        file));
  if (access(file.c_str(), R_OK) == 0) return file;
  throw tools::CommandFailure(fmt::format(
      "{} is not beside libhaul.so.0; build or install all of haul (`make`)", preloaded_name));
}

// A mover that spins between two copies takes a core from the program, which does not know of it.
constexpr const char* short_spin_us = "50";

}  // namespace

tools::Environment transparent_environment(const std::string& directory) {
  const char* before = std::getenv("LD_PRELOAD");
  std::string preload = preloaded_file();
  if (before != nullptr && *before != '\0') preload += fmt::format(":{}", before);
  tools::Environment environment = {{"LD_PRELOAD", preload}};
  if (std::getenv("HAUL_MOVER_SPIN_US") == nullptr)
    environment.emplace_back("HAUL_MOVER_SPIN_US", short_spin_us);
  if (!directory.empty()) environment.emplace_back("HAUL_TRANSPARENT_REPORT", directory);
  return environment;
}

std::string why_no_preload() {
  try {
    transparent_environment("");
    return "";
  } catch (const tools::CommandFailure& failure) {
    return failure.what();
  }
}

}  // namespace haul::bench
