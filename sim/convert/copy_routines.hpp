// Where the kernel's copy routines lie: the one table that says which functions are such.
#pragma once

#include <cstdint>
#include <vector>

#include "convert/symbols.hpp"

namespace bcisim {

enum class Routine : std::uint8_t {
  none,
  copy,      // kernel to kernel
  by_sides,  // from or to the user: the addresses say
  with_checksum,
  fill,
  passage,         // a thunk by which routines return: belongs to the routine that goes there
  interrupt_entry  // the first instruction of an interrupt's or a fault's handler
};

class CopyRoutines {
 public:
  CopyRoutines() = default;  // none are known
  explicit CopyRoutines(const Symbols& symbols);

  Routine at(std::uint64_t address) const;

 private:
  struct Range {
    std::uint64_t begin, end;
    Routine routine;
  };
  std::vector<Range> ranges_;  // by address, apart from each other
};

}  // namespace bcisim
