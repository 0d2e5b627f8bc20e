// Made by mkdtemp().
#include "tools/directory.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "tools/failure.hpp"

namespace haul::tools {

TemporaryDirectory::TemporaryDirectory() {
  const char* base = std::getenv("TMPDIR");
  std::string name =
      fmt::format("{}/haul-bench-XXXXXX", base != nullptr && *base != 0 ? base : "/tmp");
  if (mkdtemp(name.data()) == nullptr)
    throw CommandFailure(
        fmt::format("cannot make the directory {}; set TMPDIR to a place that is writable and "
                    "has room",
                    name));
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace haul::tools
