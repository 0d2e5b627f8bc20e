// What the kernel knows of a range of this process's addresses: whose memory it is, and which of
// its pages hold something.
#pragma once

#include <cstdint>

namespace haul::os {

// Does all of [begin, end) belong to private mappings of no file, which may be read and, where that
// is asked, written, and in none of which the calling thread's stack lies? False also where the
// kernel cannot tell (before Linux 6.11). Opens a file: about 3 us, and 0.3 us a mapping.
bool is_private_memory(std::uintptr_t begin, std::uintptr_t end, bool writable) noexcept;

// The same for memory that may be read and written and nothing else, and in which no thread's stack
// lies, as far as it is one that the C library knows, or the main thread's: the kernel must be able
// to write a signal's frame to a stack. About 2 us a thread besides.
bool is_plain_memory(std::uintptr_t begin, std::uintptr_t end) noexcept;

struct PageRun {
  std::uintptr_t begin = 0, end = 0;
};

// is_private_memory() for reading, and then, in *whole, all of the mappings that [begin, end) lies
// in. (Before Linux 6.11 by the next one.)
bool private_mappings(std::uintptr_t begin, std::uintptr_t end, PageRun* whole) noexcept;
// The same by the list of all mappings, on each kernel: the more there are, the longer it takes.
bool private_mappings_by_list(std::uintptr_t begin, std::uintptr_t end, PageRun* whole) noexcept;

// The first addresses of [begin, end) that one mapping has. 1; 0 if nothing is mapped there; -1 if
// it cannot be told now, or by this kernel. Opens a file, as above.
int first_mapped(std::uintptr_t begin, std::uintptr_t end, PageRun* run) noexcept;

// The first pages in a row of [begin, end) that hold something, in memory or swapped out. False if
// there are none. Where the kernel cannot tell (before Linux 6.7) it is the whole range. `page_map`
// comes from open_page_map().
bool first_present(int page_map, std::uintptr_t begin, std::uintptr_t end, PageRun* run) noexcept;

}  // namespace haul::os
