#include "convert/places.hpp"

#include <algorithm>
#include <cstring>

#include "format/layout.hpp"

namespace bcisim {

std::size_t Places::Hash::operator()(const Key& key) const {
  std::uint64_t hash = key.address * 0x9e3779b97f4a7c15u;
  std::uint64_t halves[2];
  std::memcpy(halves, key.code.data(), sizeof halves);
  for (const std::uint64_t word : {key.physical_page, halves[0], halves[1]})
    hash = ((hash ^ (hash >> 31)) + word) * 0xbf58476d1ce4e5b9u;
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

void Places::add(const StreamRecord& record) {
  Key key;
  key.address = record.address;
  key.physical_page = record.physical >> layout::page_shift;
  std::copy(record.code.begin(), record.code.end(), key.code.begin());
  key.code.back() = static_cast<std::uint8_t>(record.code.size());
  const auto [found, is_new] = known_.try_emplace(key, static_cast<std::uint32_t>(places_.size()));
  numbers_.push_back(found->second);
  if (!is_new) return;
  Place& place = places_.emplace_back();
  place.code = decode_machine_code(record.address, record.code);
  place.code.instruction.physical_page = key.physical_page;
  place.routine = routines_.at(record.address);
}

}  // namespace bcisim
