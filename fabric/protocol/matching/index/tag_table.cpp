#include "fabric/protocol/matching/index/tag_table.hpp"

#include <bit>
#include <new>

namespace haul::fabric {

std::unique_ptr<TagTable::Chain[]> TagTable::new_chains(std::size_t count) noexcept {
  return std::unique_ptr<Chain[]>(new (std::nothrow) Chain[count]);
}

bool TagTable::make(std::size_t entries) noexcept {
  const std::size_t count = std::bit_ceil(entries + 1);
  chains_ = new_chains(count);
  mask_ = count - 1;
  return made();
}

}  // namespace haul::fabric
