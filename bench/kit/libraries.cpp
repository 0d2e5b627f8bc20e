#include "bench/kit/libraries.hpp"

#include <dlfcn.h>
#include <haul/haul.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/os/plugin.hpp"

namespace haul::bench {
namespace {

std::string library_directory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&haul_version), &info) == 0 || info.dli_fname == nullptr)
    return "";
  std::error_code ignored;
  return std::filesystem::canonical(info.dli_fname, ignored).parent_path().string();
}

}  // namespace

std::string plugin_file(const std::string& name) {
  std::string beside = library_directory() + "/" + name;
  if (*os::plugin_directory() == '\0' || access(beside.c_str(), R_OK) == 0) return beside;
  std::string installed = std::string(os::plugin_directory()) + "/" + name;
  return access(installed.c_str(), R_OK) == 0 ? installed : beside;
}

}  // namespace haul::bench
