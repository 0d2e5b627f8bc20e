// What a test may watch: the things whose order the paper promises.
#pragma once

#include <cstdint>
#include <functional>

#include "model/parameters.hpp"

namespace bcisim {

struct Happening {
  enum class Kind {
    validated,  // a copy: all its pages
    begun,      // a copy: a destination block, or its part of one, [physical, physical + bytes)
    copied,     // the same
    done,       // a copy
    accessed,   // a reference of an instruction goes on: nothing that it depends on is to come
    retired     // an instruction or a copy
  };
  Kind kind = Kind::retired;
  Cycle at = 0;
  std::uint64_t number = 0;  // of the instruction or copy, in their order, from 0
  std::uint64_t physical = 0;
  unsigned bytes = 0;
  bool is_store = false;
};

using Observer = std::function<void(const Happening&)>;

}  // namespace bcisim
