// How the DSA model reaches this process's memory: by process_vm_readv() alone, so that what is not
// mapped is found, and nothing is raised.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul_model {

inline constexpr std::size_t page_bytes = 4096;

inline void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);
}

// How many bytes from the front are there afterwards.
std::size_t copy(std::uint64_t to, std::uint64_t from, std::size_t bytes);
std::size_t fill(std::uint64_t to, std::uint64_t pattern, std::size_t bytes);

// How many bytes from the front are equal; and are all of these, or did it end at one that is not
// mapped, which lies at `at`?
enum class Sameness { same, different, not_mapped };
struct Likeness {
  std::size_t bytes;
  Sameness sameness;
  std::uint64_t at;
};
Likeness compare(std::uint64_t first, std::uint64_t second, std::size_t bytes);
Likeness compare_with_pattern(std::uint64_t first, std::uint64_t pattern, std::size_t bytes);

// The bytes before the first page that is not there (unmapped ones count as there: they fault by
// themselves).
std::uint32_t bytes_there(std::uint64_t address, std::uint32_t bytes);

}  // namespace haul_model
