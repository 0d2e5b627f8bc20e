#include "fabric/protocol/matching/index/tag_table.hpp"

#include <bit>
#include <new>

namespace haul::fabric {

std::unique_ptr<TagTable::Place[]> TagTable::new_places(std::size_t count) noexcept {
  return std::unique_ptr<Place[]>(new (std::nothrow) Place[count]());
}

bool TagTable::make(std::size_t entries) noexcept {
  const std::size_t count = std::bit_ceil(entries + 1);
  places_ = new_places(count);
  mask_ = count - 1;
  return made();
}

}  // namespace haul::fabric
