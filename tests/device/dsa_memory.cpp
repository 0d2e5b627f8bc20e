#include "device/dsa_memory.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace haul_model {

// (By number: a device is no thread of the program, and ThreadSanitizer would compare libc's
// function with its threads.)
std::size_t copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  const iovec local{pointer(to), bytes}, remote{pointer(from), bytes};
  const long copied = syscall(SYS_process_vm_readv, getpid(), &local, 1ul, &remote, 1ul, 0ul);
  return copied > 0 ? static_cast<std::size_t>(copied) : 0;
}

std::size_t fill(std::uint64_t to, std::uint64_t pattern, std::size_t bytes) {
  std::uint64_t words[512];
  std::fill(std::begin(words), std::end(words), pattern);
  std::size_t done = 0;
  while (done < bytes) {
    const std::size_t step = std::min(bytes - done, sizeof words);
    const std::size_t good = copy(to + done, reinterpret_cast<std::uintptr_t>(words), step);
    done += good;
    if (good < step) break;
  }
  return done;
}

Likeness compare(std::uint64_t first, std::uint64_t second, std::size_t bytes) {
  unsigned char one[4096], other[4096];
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t step = std::min(bytes - done, sizeof one);
    const std::size_t of_one = copy(reinterpret_cast<std::uintptr_t>(one), first + done, step);
    const std::size_t of_other = copy(reinterpret_cast<std::uintptr_t>(other), second + done, step);
    const std::size_t both = std::min(of_one, of_other);
    const auto same = static_cast<std::size_t>(std::mismatch(one, one + both, other).first - one);
    done += same;
    if (same < both) return {done, Sameness::different, 0};
    if (both < step)
      return {done, Sameness::not_mapped, (of_one <= of_other ? first : second) + done};
  }
  return {bytes, Sameness::same, 0};
}

Likeness compare_with_pattern(std::uint64_t first, std::uint64_t pattern, std::size_t bytes) {
  std::uint64_t words[512];
  std::fill(std::begin(words), std::end(words), pattern);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t step = std::min(bytes - done, sizeof words);
    Likeness of_step = compare(first + done, reinterpret_cast<std::uintptr_t>(words), step);
    done += of_step.bytes;
    if (of_step.sameness != Sameness::same) return {done, of_step.sameness, of_step.at};
  }
  return {bytes, Sameness::same, 0};
}

std::uint32_t bytes_there(std::uint64_t address, std::uint32_t bytes) {
  for (std::uint64_t page = address & ~(page_bytes - 1); page < address + bytes;
       page += page_bytes) {
    unsigned char there = 0;
    if (mincore(pointer(page), page_bytes, &there) == 0 && (there & 1) == 0)
      return page <= address ? 0 : static_cast<std::uint32_t>(page - address);
  }
  return bytes;
}

}  // namespace haul_model
