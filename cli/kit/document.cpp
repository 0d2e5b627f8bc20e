// JSON documents.
#include "cli/kit/document.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/failure.hpp"

namespace haul::cli {

void write_document(const std::string& path, const nlohmann::ordered_json& document) {
  using Json = nlohmann::ordered_json;
  std::string text = document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  std::FILE* file = std::fopen(path.c_str(), "w");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int error = errno;
  if (file != nullptr && std::fclose(file) != 0) {
    written = false;
    error = errno;
  }
  if (!written) {
    throw tools::CommandFailure(
        fmt::format("cannot write {} ({}); give --json another path", path, std::strerror(error)));
  }
}

void replace_text(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  // A name that no reader takes for a finished file.
  const std::string fresh = fmt::format("{}.{}.tmp", path, getpid());
  std::FILE* file = std::fopen(fresh.c_str(), "wx");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int error = errno;
  if (file != nullptr && std::fclose(file) != 0) {
    written = false;
    error = errno;
  }
  if (written && std::rename(fresh.c_str(), path.c_str()) == 0) return;
  if (written) error = errno;
  if (file != nullptr) std::remove(fresh.c_str());
  throw tools::CommandFailure(
      fmt::format("cannot write {} ({}); give another path", path, std::strerror(error)));
}

void check_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  std::FILE* file = std::fopen(path.c_str(), "a");
  if (file == nullptr) {
    throw tools::CommandFailure(
        fmt::format("cannot write {} ({}); give --json another path", path, std::strerror(errno)));
  }
  std::fclose(file);
}

}  // namespace haul::cli
