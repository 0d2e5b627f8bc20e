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

// Asks for all lines of an entry's element at once. Among ten thousand they are in no near cache,
// and one that matches is read, written and unlinked whole.
template <class Element>
void fetch_whole(const Element& element) noexcept {
  constexpr std::size_t line = 64;
  const auto* bytes = reinterpret_cast<const std::byte*>(&element);
  for (std::size_t at = 0; at < sizeof element; at += line) __builtin_prefetch(bytes + at, 1);
}

// Chains keep the order in which entries were added, also when the table grows.
class TagTable {
 public:
  using Chain = List<TableEntry, InTable>;

  bool made() const noexcept { return chains_ != nullptr; }
  std::size_t entries() const noexcept { return entries_; }
  // Room for so many entries. False: there is no memory, and nothing has changed.
  bool make(std::size_t entries) noexcept;
  // `last(TableEntry&)`: what becomes of those that are still there.
  template <class Last>
  void unmake(Last&& last) noexcept {
    for (std::size_t i = 0; entries_ != 0; ++i) {
      while (TableEntry* entry = chains_[i].front()) {
        remove(*entry);
        last(*entry);
      }
    }
    chains_.reset();
  }

  Chain& chain(std::uint64_t hash) noexcept { return chains_[hash & mask_]; }
  // `hash_of(TableEntry&)`: of an entry that is in the table, which may have to grow.
  template <class HashOf>
  void add(TableEntry& entry, std::uint64_t hash, HashOf&& hash_of) noexcept {
    if (entries_ > mask_) grow(hash_of);
    chain(hash).push_back(entry);
    ++entries_;
  }
  void remove(TableEntry& entry) noexcept {
    entry.unlink();
    --entries_;
  }

 private:
  static std::unique_ptr<Chain[]> new_chains(std::size_t count) noexcept;

  // The entries of one old chain are the only ones of two new chains, so they stay in order.
  template <class HashOf>
  void grow(HashOf& hash_of) noexcept {
    const std::size_t count = 2 * (mask_ + 1);
    std::unique_ptr<Chain[]> larger = new_chains(count);
    if (larger == nullptr) return;
    for (std::size_t i = 0; i <= mask_; ++i) {
      while (TableEntry* entry = chains_[i].front()) {
        entry->unlink();
        larger[hash_of(*entry) & (count - 1)].push_back(*entry);
      }
    }
    chains_ = std::move(larger);
    mask_ = count - 1;
  }

  std::unique_ptr<Chain[]> chains_;
  std::size_t mask_ = 0;  // one less than there are chains
  std::size_t entries_ = 0;
};

}  // namespace haul::fabric
