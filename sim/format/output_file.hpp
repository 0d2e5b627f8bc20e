// A file that comes into being whole or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace bcisim {

// Written under a temporary name beside `path`; the destructor removes it unless publish() has
// given it its name. (A program that is killed leaves it: PATH.PID-NUMBER.part.) Every function may
// throw TraceError.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void append(std::span<const std::uint8_t> bytes);
  // Moves all that was written back and puts `bytes` before it.
  void prepend(std::span<const std::uint8_t> bytes);
  // An existing file of that name is replaced.
  void publish();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }

 private:
  [[noreturn]] void fail(int error) const;
  template <class Call, class Byte>
  void transfer(Call call, std::span<Byte> bytes, std::uint64_t offset, int at_nothing);
  void write_at(std::span<const std::uint8_t> bytes, std::uint64_t offset);

  std::string path_, temporary_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace bcisim
