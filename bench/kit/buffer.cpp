// Buffers and their content.
#include "bench/kit/buffer.hpp"

#include <fmt/format.h>
#include <haul/haul.h>

#include <cstdlib>
#include <cstring>

#include "base/os/os.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr std::size_t page_bytes = 4096;
Memory chosen_memory = Memory::private_;
constexpr std::uint64_t odd_step = 0x9e3779b97f4a7c15u;

std::uint64_t first_word(std::uint64_t seed) {
  std::uint64_t x = (seed + 1) * 0xd1342543de82ef95u;
  return x ^ (x >> 29);
}

}  // namespace

std::size_t available_bytes() {
  char text[4096];
  if (os::read_file("/proc/meminfo", text, sizeof text) <= 0) return ~std::size_t{0};
  const char* row = std::strstr(text, "MemAvailable:");
  if (row == nullptr) return ~std::size_t{0};
  return std::strtoull(row + std::strlen("MemAvailable:"), nullptr, 10) * 1024;
}

void use_memory(Memory memory) {
  chosen_memory = memory;
}

Memory memory_in_use() {
  return chosen_memory;
}

Buffer::Buffer(std::size_t bytes, std::size_t shift)
    : memory_(chosen_memory),
      mapped_bytes_((bytes + shift + page_bytes - 1) / page_bytes * page_bytes),
      bytes_(bytes) {
  constexpr std::size_t always_fine_bytes = std::size_t{16} << 20;
  if (bytes <= always_fine_bytes || bytes <= available_bytes() / 2) {
    mapping_ =
        memory_ == Memory::shared ? haul_alloc(mapped_bytes_) : os::map_anonymous(mapped_bytes_);
  }
  if (mapping_ == nullptr) {
    throw tools::CommandFailure(
        fmt::format("no memory for a buffer of {}; free some, or ask for smaller sizes",
                    tools::show_bytes(bytes)));
  }
  data_ = static_cast<std::byte*>(mapping_) + shift;
  std::memset(mapping_, 1, mapped_bytes_);
}

Buffer::~Buffer() {
  if (memory_ == Memory::shared) {
    haul_free(mapping_);
  } else {
    os::unmap(mapping_, mapped_bytes_);
  }
}

void write_content(std::byte* data, std::size_t bytes, std::uint64_t seed) {
  std::uint64_t word = first_word(seed);
  std::size_t i = 0;
  for (; i + sizeof word <= bytes; i += sizeof word, word += odd_step) {
    std::memcpy(data + i, &word, sizeof word);
  }
  std::memcpy(data + i, &word, bytes - i);
}

void check_content(const std::byte* data, std::size_t bytes, std::uint64_t seed) {
  std::uint64_t word = first_word(seed);
  std::uint64_t wrong = 0;
  std::size_t i = 0;
  for (; i + sizeof word <= bytes; i += sizeof word, word += odd_step) {
    std::uint64_t found;
    std::memcpy(&found, data + i, sizeof found);
    wrong |= found ^ word;
  }
  if (wrong == 0 && std::memcmp(data + i, &word, bytes - i) == 0) return;

  word = first_word(seed);
  for (i = 0; i < bytes; ++i) {
    std::uint64_t expected = word + odd_step * (i / sizeof word);
    auto byte = static_cast<std::byte>(expected >> (8 * (i % sizeof word)));
    if (data[i] == byte) continue;
    throw tools::CommandFailure(
        fmt::format("byte {} of a copy of {} bytes is wrong (it is {:#04x}, {:#04x} was written); "
                    "haul is at fault, please report it with the output of `haul info`",
                    i, bytes, static_cast<unsigned>(data[i]), static_cast<unsigned>(byte)));
  }
}

}  // namespace haul::bench
