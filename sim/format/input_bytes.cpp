#include "format/input_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "format/error.hpp"

namespace bcisim {

namespace {

[[noreturn]] void fail(const std::string& name, int error) {
  throw TraceError(
      fmt::format("{}: cannot be read ({}); name a trace that is there and may be read", name,
                  std::generic_category().message(error)));
}

}  // namespace

InputBytes::InputBytes(const std::string& path)
    : name_(path), file_(std::fopen(path.c_str(), "rbe")) {
  if (!file_) fail(path, errno);
}

std::size_t InputBytes::read(std::span<std::uint8_t> to) {
  std::size_t got = 0;
  if (file_) {
    errno = 0;
    got = std::fread(to.data(), 1, to.size(), file_.get());
    if (got != to.size() && std::ferror(file_.get()) != 0) fail(name_, errno);
  } else {
    got = std::min<std::size_t>(to.size(), memory_.size() - static_cast<std::size_t>(offset_));
    if (got != 0) std::memcpy(to.data(), memory_.data() + offset_, got);
  }
  offset_ += got;
  return got;
}

}  // namespace bcisim
