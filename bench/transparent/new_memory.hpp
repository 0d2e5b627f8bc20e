// Memory as malloc() gives it out for large blocks.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include "base/os/os.hpp"
#include "bench/kit/buffer.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {

// A mapping of which no page is there but that of the header.
class NewMemory {
 public:
  NewMemory(std::size_t bytes, bool aligned)
      : mapped_bytes_(bytes + huge_bytes), at_(os::map_anonymous(mapped_bytes_)) {
    if (at_ == nullptr)
      throw tools::CommandFailure(
          fmt::format("no memory for a buffer of {}; free some, or ask for smaller sizes",
                      tools::show_bytes(bytes)));
    data_ = static_cast<std::byte*>(at_);
    if (aligned) {
      const auto address = reinterpret_cast<std::uintptr_t>(data_);
      data_ += (huge_bytes - address % huge_bytes) % huge_bytes;
    } else {
      write_content(data_, header_bytes, 0);
      data_ += header_bytes;
    }
  }
  ~NewMemory() { os::unmap(at_, mapped_bytes_); }
  NewMemory(const NewMemory&) = delete;
  NewMemory& operator=(const NewMemory&) = delete;
  std::byte* data() { return data_; }

  static constexpr std::size_t header_bytes = 16;

 private:
  static constexpr std::size_t huge_bytes = std::size_t{2} << 20;
  std::size_t mapped_bytes_;
  void* at_;
  std::byte* data_ = nullptr;
};

}  // namespace haul::bench
