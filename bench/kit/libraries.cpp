#include "bench/kit/libraries.hpp"

#include <dlfcn.h>
#include <haul/haul.h>

#include <filesystem>
#include <system_error>

namespace haul::bench {

std::string library_directory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&haul_version), &info) == 0 || info.dli_fname == nullptr)
    return "";
  std::error_code ignored;
  return std::filesystem::canonical(info.dli_fname, ignored).parent_path().string();
}

}  // namespace haul::bench
