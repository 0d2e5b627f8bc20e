// What a trace brings, in its order: the front end's input.
#pragma once

#include <array>
#include <cstdint>
#include <variant>

#include "format/event.hpp"
#include "format/instruction.hpp"
#include "model/bulk_copy.hpp"

namespace bcisim {

struct ExecutedInstruction {
  StaticInstruction what;
  bool taken = false;
  std::uint8_t references = 0;
  std::array<Reference, most_references> reference{};
};

struct Interrupt {};

using Item = std::variant<ExecutedInstruction, BulkCopy, DeviceAccess, Interrupt>;

}  // namespace bcisim
