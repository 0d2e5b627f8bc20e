// Buffers whose content is known: written anew before each run, checked byte for byte after it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::bench {

// Whose memory buffers are from now on: this process's alone, or of haul_alloc(), which the node's
// service reaches by mapping.
enum class Memory { private_, shared };
void use_memory(Memory memory);

// Mapped and touched memory. The data begin `shift` bytes into a page, so that a source and a
// destination can be kept from sharing their low 12 address bits (4 KiB aliasing).
class Buffer {
 public:
  explicit Buffer(std::size_t bytes, std::size_t shift = 0);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  void* mapping_ = nullptr;
  Memory memory_;
  std::size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Word i of the content of `seed`; no two seeds share a word at the same place.
void write_content(std::byte* data, std::size_t bytes, std::uint64_t seed);

// Throws Failure naming the first wrong byte.
void check_content(const std::byte* data, std::size_t bytes, std::uint64_t seed);

}  // namespace haul::bench
