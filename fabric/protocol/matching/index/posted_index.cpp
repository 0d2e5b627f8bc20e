#include "fabric/protocol/matching/index/posted_index.hpp"

#include "fabric/protocol/matching/receiving.hpp"

namespace haul::fabric {

namespace {

Incoming& receive_of(TableEntry& entry) noexcept {
  return static_cast<Incoming&>(entry);
}

std::uint64_t place_of(const Incoming& receive, const TagHash& hash) noexcept {
  return hash(receive.source, receive.ignore, receive.tag);
}

}  // namespace

void PostedIndex::cover(PostedList& list, const TagHash& hash) noexcept {
  std::size_t receives = 0;
  for (Incoming* at = list.front(); at != nullptr; at = list.after(*at)) ++receives;
  if (!table_.made() && !table_.make(receives)) return;
  list.indexed = age_;
  for (Incoming* at = list.front(); at != nullptr; at = list.after(*at)) add(*at, hash);
}

// A list that has been empty begins anew, to be walked while it is short.
void PostedIndex::posted(PostedList& list, Incoming& receive, const TagHash& hash) noexcept {
  if (!covers(list) || list.front() == &receive) {
    list.indexed = 0;
  } else {
    add(receive, hash);
  }
}

std::uint8_t PostedIndex::kind_of(std::uint64_t ignore) noexcept {
  std::uint8_t free = kind_count;
  for (std::uint8_t i = 0; i < kind_count; ++i) {
    const Kind& kind = kinds_[i];
    if (kind.receives[0] + kind.receives[1] == 0) {
      free = i;
    } else if (kind.ignore == ignore) {
      return i;
    }
  }
  if (free != kind_count) kinds_[free].ignore = ignore;
  return free;
}

void PostedIndex::add(Incoming& receive, const TagHash& hash) noexcept {
  ++entries_;
  const std::uint8_t kind = kind_of(receive.ignore);
  receive.filed = static_cast<std::uint8_t>(kind + 1);
  if (kind == kind_count) return walked_.push_back(receive);
  ++kinds_[kind].receives[receive.source != nullptr];
  const auto place = [&hash](TableEntry& entry) noexcept {
    return place_of(receive_of(entry), hash);
  };
  table_.add(receive, place(receive), place);
}

void PostedIndex::remove(Incoming& receive, const TagHash& hash) noexcept {
  if (receive.filed == walked) {
    static_cast<TableEntry&>(receive).unlink();
  } else {
    --kinds_[receive.filed - 1].receives[receive.source != nullptr];
    table_.remove(receive, place_of(receive, hash));
  }
  receive.filed = 0;
  if (--entries_ > table_worth) return;
  while (TableEntry* entry = walked_.front()) {
    receive_of(*entry).filed = 0;
    entry->unlink();
  }
  table_.unmake([](TableEntry& entry) noexcept { receive_of(entry).filed = 0; });
  for (Kind& kind : kinds_) kind = Kind();
  entries_ = 0;
  ++age_;
}

Incoming* PostedIndex::first(const Peer* source, std::uint64_t tag, const TagHash& hash,
                             std::uint64_t* passed) noexcept {
  Incoming* oldest = nullptr;
  // Of one source all chains are in the order of posting. False: no later entry can be the one.
  const auto goes_on = [&](TableEntry& entry) noexcept {
    Incoming& at = receive_of(entry);
    if (at.source == source) {
      if (oldest != nullptr && oldest->order < at.order) return false;
      if (tags_match(at.tag, at.ignore, tag)) {
        oldest = &at;
        return false;
      }
    }
    ++*passed;
    return true;
  };
  for (const Kind& kind : kinds_) {
    if (kind.receives[source != nullptr] == 0) continue;
    TableEntry* entry = table_.front(hash(source, kind.ignore, tag));
    if (entry != nullptr) fetch_front<posting_lines_bytes>(receive_of(*entry));
    while (entry != nullptr && goes_on(*entry)) entry = TagTable::after(*entry);
  }
  TableEntry* entry = walked_.front();
  while (entry != nullptr && goes_on(*entry)) entry = walked_.after(*entry);
  return oldest;
}

}  // namespace haul::fabric
