#include "fabric/protocol/matching/index/kept_index.hpp"

#include <bit>

#include "fabric/protocol/matching/receiving.hpp"

namespace haul::fabric {

namespace {

Unexpected& message_of(TableEntry& entry, unsigned table) noexcept {
  return static_cast<Unexpected&>(reinterpret_cast<KeptEntries&>(*(&entry - table)));
}

}  // namespace

void KeptIndex::add(unsigned table, Unexpected& message, const TagHash& hash) noexcept {
  Table& to = tables_[table];
  const auto place = [&to, &hash, table](TableEntry& entry) noexcept {
    return to.place_of(message_of(entry, table), hash);
  };
  TableEntry& entry = message.entries[table];
  to.table.add(entry, place(entry), place);
}

void KeptIndex::add(Unexpected& message, const TagHash& hash) noexcept {
  for (unsigned i = 0; i < in_use_; ++i) add(i, message, hash);
}

void KeptIndex::remove(Unexpected& message, const TagHash& hash) noexcept {
  if (!TagTable::holds(message.entries[0])) return;
  for (unsigned i = 0; i < in_use_; ++i) {
    tables_[i].table.remove(message.entries[i], tables_[i].place_of(message, hash));
  }
  if (tables_[0].table.entries() > table_worth) return;
  for (unsigned i = 0; i < in_use_; ++i) tables_[i].table.unmake([](TableEntry&) noexcept {});
  in_use_ = 0;
}

bool KeptIndex::first(const Search& search, const TagHash& hash, Unexpected** found,
                      std::uint64_t* passed) noexcept {
  const bool directed = search.source != nullptr;
  // The one that ignores fewest of the bits that matter here.
  unsigned best = in_use_;
  for (unsigned i = 0; i < in_use_; ++i) {
    const Table& at = tables_[i];
    if (at.directed != directed || (search.ignore & ~at.ignore) != 0) continue;
    if (best == in_use_ || std::popcount(at.ignore) < std::popcount(tables_[best].ignore)) best = i;
  }
  if (best == in_use_) return false;
  *found = nullptr;
  TableEntry* entry =
      tables_[best].table.front(hash(search.source, tables_[best].ignore, search.tag));
  if (entry != nullptr) fetch_front<kept_lines_bytes>(message_of(*entry, best));
  for (; entry != nullptr; entry = TagTable::after(*entry)) {
    Unexpected& at = message_of(*entry, best);
    if ((!directed || at.source == search.source) &&
        tags_match(search.tag, search.ignore, at.tag)) {
      *found = &at;
      break;
    }
    ++*passed;
  }
  return true;
}

void KeptIndex::cover(const Search& search, List<Unexpected, OfAll>& messages,
                      const TagHash& hash) noexcept {
  if (in_use_ == kept_tables) return;
  Table& fresh = tables_[in_use_];
  const bool directed = search.source != nullptr;
  for (unsigned i = 0; i < in_use_; ++i) {
    if (tables_[i].directed == directed && tables_[i].ignore == search.ignore) return;
  }
  std::size_t count = 0;
  for (Unexpected* at = messages.front(); at != nullptr; at = messages.after(*at)) ++count;
  if (!fresh.table.make(count)) return;
  fresh.directed = directed;
  fresh.ignore = search.ignore;
  for (Unexpected* at = messages.front(); at != nullptr; at = messages.after(*at)) {
    add(in_use_, *at, hash);
  }
  ++in_use_;
}

}  // namespace haul::fabric
