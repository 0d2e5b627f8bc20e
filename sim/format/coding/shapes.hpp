// What recurs from instruction to instruction and is therefore written once: shapes and forms.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "format/instruction.hpp"

namespace bcisim {

// How many references an instruction makes, of how many bytes, which of them stores.
struct Shape {
  std::uint8_t references = 0;
  std::array<std::uint16_t, most_references> bytes{};  // as written: 2 * bytes, + 1 for a store

  bool operator==(const Shape&) const = default;
};

// What a static instruction is, its place apart; many share one.
struct Form {
  std::uint64_t reads = 0, writes = 0, steps = 0;
  std::uint8_t bytes = 0, kind = 0;

  bool operator==(const Form&) const = default;
};

inline std::size_t hash_of(const Shape& shape) {
  std::uint64_t hash = shape.references;
  for (const std::uint16_t bytes : shape.bytes) hash = (hash ^ bytes) * 0x9e3779b97f4a7c15u;
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}
inline std::size_t hash_of(const Form& form) {
  std::uint64_t hash = form.reads * 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 29) ^ form.writes ^ form.steps << 3) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 32) ^ form.bytes ^ std::uint64_t{form.kind} << 8) * 0x94d049bb133111ebu;
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

}  // namespace bcisim
