#include "atomic/lock/directory.hpp"

#include <algorithm>
#include <cstring>

#include "atomic/lock/places.hpp"

namespace haul::atomics::lock::directory {

namespace {

haul_atomic_operation operation_at(std::uint64_t offset, haul_atomic_code code,
                                   std::uint64_t operand = 0, std::uint64_t compare = 0) noexcept {
  haul_atomic_operation operation{};
  operation.code = static_cast<std::uint8_t>(code);
  operation.width = 8;
  operation.address = offset;
  operation.operand = operand;
  operation.compare = compare;
  return operation;
}

// again: the entry has another id.
Code take(Places& places, unsigned rank, std::uint64_t from, std::uint64_t to) noexcept {
  haul_atomic_operation swap = operation_at(entry_of(rank), HAUL_ATOMIC_CAS, to, from);
  const Code code = places.run(Courier::home, &swap, 1);
  return code != Code::ok || swap.old == from ? code : Code::again;
}

Code write_entry(Places& places, unsigned rank, const haul_atomic_lock_place& own) noexcept {
  std::uint64_t name[words - 2];
  std::memcpy(name, &own.window, sizeof name);
  haul_atomic_operation writes[words - 1];
  writes[0] = operation_at(entry_of(rank) + 8, HAUL_ATOMIC_WRITE, own.offset);
  for (unsigned i = 0; i < words - 2; ++i) {
    writes[i + 1] = operation_at(entry_of(rank) + 16 + 8 * i, HAUL_ATOMIC_WRITE, name[i]);
  }
  return places.run(Courier::home, writes, words - 1);
}

// Reads the ids of ranks [first, first + count), up to 16.
Code read_ids(Places& places, unsigned first, unsigned count, std::uint64_t* ids) noexcept {
  haul_atomic_operation reads[HAUL_ATOMIC_MAX_BATCH];
  for (unsigned i = 0; i < count; ++i) {
    reads[i] = operation_at(entry_of(first + i), HAUL_ATOMIC_READ);
  }
  const Code code = places.run(Courier::home, reads, count);
  for (unsigned i = 0; i < count; ++i) ids[i] = reads[i].old;
  return code;
}

// Takes the first entry of [from, to) that is free, or, if `gone`, whose member does not answer.
Code take_any(Places& places, unsigned from, unsigned to, std::uint64_t id, bool gone,
              std::uint32_t* rank) noexcept {
  for (unsigned first = from; first < to; first += HAUL_ATOMIC_MAX_BATCH) {
    const unsigned count = std::min<unsigned>(HAUL_ATOMIC_MAX_BATCH, to - first);
    std::uint64_t ids[HAUL_ATOMIC_MAX_BATCH];
    Code code = read_ids(places, first, count, ids);
    if (code != Code::ok) return code;
    for (unsigned i = 0; i < count; ++i) {
      if (ids[i] != 0 && (!gone || places.is_there(first + i))) continue;
      code = take(places, first + i, ids[i], id);
      if (code == Code::again) continue;  // another member was faster
      *rank = first + i;
      return code;
    }
  }
  return Code::again;
}

}  // namespace

bool parse(const std::uint64_t (&entry)[words], haul_atomic_lock_place* place) noexcept {
  if (entry[0] == 0) return false;
  place->offset = entry[1];
  std::memcpy(&place->window, &entry[2], sizeof place->window);
  return true;
}

Code join(Places& places, unsigned count, std::uint64_t id, const haul_atomic_lock_place& own,
          std::uint32_t* rank) noexcept {
  const bool any = *rank == HAUL_ATOMIC_LOCK_ANY_RANK;
  const unsigned from = any ? 0 : *rank, to = any ? count : *rank + 1;
  Code code = take_any(places, from, to, id, false, rank);
  if (code == Code::again) code = take_any(places, from, to, id, true, rank);
  return code == Code::ok ? write_entry(places, *rank, own) : code;
}

void leave(Places& places, std::uint64_t id, std::uint32_t rank) noexcept {
  // If another member has taken it over, that one keeps it.
  static_cast<void>(take(places, rank, id, 0));
}

}  // namespace haul::atomics::lock::directory
