// A trace's bytes, one after another: of a file or of memory.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

namespace bcisim {

class InputBytes {
 public:
  // Throws TraceError when there is no such file.
  explicit InputBytes(const std::string& path);
  InputBytes(std::span<const std::uint8_t> memory, const std::string& name)
      : name_(name), memory_(memory) {}

  // Returns how many there were: fewer than asked for at the end alone. Throws TraceError.
  std::size_t read(std::span<std::uint8_t> to);

  const std::string& name() const { return name_; }
  std::uint64_t offset() const { return offset_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;
  std::span<const std::uint8_t> memory_;
  std::uint64_t offset_ = 0;
};

}  // namespace bcisim
