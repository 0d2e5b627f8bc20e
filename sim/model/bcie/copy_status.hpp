// The copy status register (CSR; paper 003, IV): of each side, the addresses that are not in
// completed page pairs. It is bumped by page pairs, in their order.
#pragma once

#include "model/bcie/subcopy.hpp"

namespace bcisim {

class CopyStatus : public CopySides {
 public:
  // The next page pair is complete.
  void bump(const Subcopy& pair) {
    if (!pair.is_fill) source_.drop(pair.bytes);
    destination_.drop(pair.bytes);
  }
  // Length zero: the copy is done.
  bool done() const { return destination_.empty(); }
};

}  // namespace bcisim
