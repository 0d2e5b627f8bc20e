// Entries by a hash of what they match, for lists that are too long to be walked. A table has
// memory only while it is in use; where memory is refused it stays as it is, and its owner walks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "fabric/protocol/list.hpp"
#include "fabric/protocol/matcher.hpp"

namespace haul::fabric {

// A search that passes over more entries than this makes a table, and a table that holds no more
// than `table_worth` entries is given up: in between nothing is made and unmade all the time.
inline constexpr std::uint64_t long_walk = 16;
inline constexpr std::size_t table_worth = 4;

// Places in tables are secret: peers choose tags, and could else choose those that meet in one
// place. Two folded multiplications by random numbers leave no pair of tags that meet more often
// than by chance, whatever the tags have in common.
class TagHash {
 public:
  explicit TagHash(const TagSalt& salt) noexcept : salt_(salt) {}
  std::uint64_t operator()(const Peer* source, std::uint64_t ignore,
                           std::uint64_t tag) const noexcept {
    const std::uint64_t first = fold((tag & ~ignore) ^ salt_.words[0], salt_.words[1]);
    return fold(first ^ ignore ^ salt_.words[2],
                reinterpret_cast<std::uintptr_t>(source) ^ salt_.words[3]);
  }

 private:
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  TagSalt salt_;
};

// Asks for the lines of an entry's element that a match touches, all at once. Among ten thousand
// they are in no near cache.
template <std::size_t bytes, class Element>
void fetch_front(const Element& element) noexcept {
  constexpr std::size_t line = 64;
  const auto* lines = reinterpret_cast<const std::byte*>(&element);
  for (std::size_t at = 0; at < bytes; at += line) __builtin_prefetch(lines + at, 1);
}

// Chains keep the order in which entries were added, also when the table grows. A place is one
// word, its chain's first entry, so that the places of ten thousand fit in a core's own cache; that
// entry's `previous` is the chain's last one, whose `next` is nullptr.
class TagTable {
 public:
  bool made() const noexcept { return places_ != nullptr; }
  std::size_t entries() const noexcept { return entries_; }
  // Whether an entry of an owner's that has one table is there.
  static bool holds(const TableEntry& entry) noexcept { return entry.previous != nullptr; }
  // Room for so many entries. False: there is no memory, and nothing has changed.
  bool make(std::size_t entries) noexcept;
  // `last(TableEntry&)`: what becomes of those that are still there.
  template <class Last>
  void unmake(Last&& last) noexcept {
    for (std::size_t i = 0; entries_ != 0; ++i) {
      while (TableEntry* entry = places_[i]) {
        remove(*entry, i);
        last(*entry);
      }
    }
    places_.reset();
  }

  // The first entry of this hash, and of others that meet in its place; nullptr: none.
  TableEntry* front(std::uint64_t hash) const noexcept { return places_[hash & mask_]; }
  static TableEntry* after(const TableEntry& entry) noexcept {
    return static_cast<TableEntry*>(entry.next);
  }
  // `hash_of(TableEntry&)`: of an entry that is in the table, which may have to grow.
  template <class HashOf>
  void add(TableEntry& entry, std::uint64_t hash, HashOf&& hash_of) noexcept {
    if (entries_ > mask_) grow(hash_of);
    append(places_[hash & mask_], entry);
    ++entries_;
  }
  void remove(TableEntry& entry, std::uint64_t hash) noexcept {
    unlink(places_[hash & mask_], entry);
    --entries_;
  }

 private:
  using Place = TableEntry*;
  static std::unique_ptr<Place[]> new_places(std::size_t count) noexcept;

  static void append(Place& place, TableEntry& entry) noexcept {
    entry.next = nullptr;
    entry.previous = place != nullptr ? place->previous : &entry;
    if (place != nullptr) {
      place->previous->next = &entry;
      place->previous = &entry;
    } else {
      place = &entry;
    }
  }
  static void unlink(Place& place, TableEntry& entry) noexcept {
    TableEntry* const next = after(entry);
    if (place == &entry) {
      place = next;
    } else {
      entry.previous->next = next;
    }
    if (TableEntry* const behind = next != nullptr ? next : place) {
      behind->previous = entry.previous;
    }
    entry.previous = entry.next = nullptr;
  }

  // The entries of one old chain are the only ones of two new chains, so they stay in order.
  template <class HashOf>
  void grow(HashOf& hash_of) noexcept {
    const std::size_t count = 2 * (mask_ + 1);
    std::unique_ptr<Place[]> larger = new_places(count);
    if (larger == nullptr) return;
    for (std::size_t i = 0; i <= mask_; ++i) {
      while (TableEntry* entry = places_[i]) {
        unlink(places_[i], *entry);
        append(larger[hash_of(*entry) & (count - 1)], *entry);
      }
    }
    places_ = std::move(larger);
    mask_ = count - 1;
  }

  std::unique_ptr<Place[]> places_;
  std::size_t mask_ = 0;  // one less than there are places
  std::size_t entries_ = 0;
};

}  // namespace haul::fabric
