// Buffers whose content is known: rewritten before each run and checked byte for byte after it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::bench {

// What the kernel believes is still available; no limit if that is unknown. Asking for more would
// not fail; the kernel would kill processes instead.
std::size_t available_bytes();

// Where buffers lie from now on: in private memory of this process, or in memory of haul_alloc(),
// which the node's service can map.
enum class Memory { private_, shared };
void use_memory(Memory memory);
Memory memory_in_use();

// Mapped memory, every page touched. The data begin `shift` bytes into a page, so that a source and
// a destination can avoid having the same low 12 address bits (4 KiB aliasing).
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

// Word i is a function of i and `seed`; the contents of two seeds share no word at the same place.
void write_content(std::byte* data, std::size_t bytes, std::uint64_t seed);

// Throws a CommandFailure that names the first wrong byte.
void check_content(const std::byte* data, std::size_t bytes, std::uint64_t seed);

}  // namespace haul::bench
