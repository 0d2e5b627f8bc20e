#include "format/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <vector>

#include "format/error.hpp"

namespace bcisim {

OutputFile::OutputFile(const std::string& path) : path_(path) {
  // The file is made by renaming, which would take the place of a device or a pipe.
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    throw TraceError(path + ": cannot be written (it is there and no regular file); name another");
  }
  static std::atomic<unsigned> number{0};
  temporary_ = fmt::format("{}.{}-{}.part", path, getpid(), number.fetch_add(1));
  descriptor_ = open(temporary_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
}

void OutputFile::fail(int error) const {
  throw TraceError(
      fmt::format("{}: cannot be written ({}); name a folder that is there, may be "
                  "written and has room",
                  path_, std::generic_category().message(error)));
}

// All of the bytes by pwrite() or pread(); at_nothing: the error where a call moves none.
template <class Call, class Byte>
void OutputFile::transfer(Call call, std::span<Byte> bytes, std::uint64_t offset, int at_nothing) {
  while (!bytes.empty()) {
    const ssize_t got = call(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(got < 0 ? errno : at_nothing);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void OutputFile::write_at(std::span<const std::uint8_t> bytes, std::uint64_t offset) {
  transfer(pwrite, bytes, offset, ENOSPC);
}

void OutputFile::append(std::span<const std::uint8_t> bytes) {
  write_at(bytes, size_);
  size_ += bytes.size();
}

void OutputFile::prepend(std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t> part(std::size_t{1} << 20);
  for (std::uint64_t left = size_; left != 0;) {
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(left, part.size()));
    left -= count;
    transfer(pread, std::span(part).first(count), left, EIO);
    write_at(std::span(part).first(count), left + bytes.size());
  }
  write_at(bytes, 0);
  size_ += bytes.size();
}

void OutputFile::publish() {
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (close(descriptor) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    unlink(temporary_.c_str());
    fail(error);
  }
}

}  // namespace bcisim
