// The page validation status registers (PVSRs; paper 003, IV): of each side, the addresses whose
// page is not validated yet. The source's pages come first.
#pragma once

#include "model/bcie/region.hpp"

namespace bcisim {

class ValidationRegisters : public CopySides {
 public:
  bool empty() const { return source_.empty() && destination_.empty(); }

  struct Page {
    std::uint64_t address = 0, physical = 0;  // of the region's first byte on it
    bool is_written = false;                  // by the copy: needs the permission
  };
  // The page to validate; not empty().
  Page next() const {
    const Region& side = source_.empty() ? destination_ : source_;
    return {side.begin, side.physical(), source_.empty()};
  }
  // It is valid.
  void validated() {
    Region& side = source_.empty() ? destination_ : source_;
    side.drop(side.on_first_page());
  }
};

}  // namespace bcisim
