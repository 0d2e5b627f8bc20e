// Kept messages by what receives ask for, for lists that have become long: a table for each set of
// bits that receives ignore, once with the messages' sources and once without. Tables are made when
// a search has taken long, hold all tagged messages from then on, and are given up together when
// few are left. A receive that ignores less than a table does can use it as well; beyond
// `kept_tables` of them such a table or the list is walked.
#pragma once

#include <cstdint>

#include "fabric/protocol/matching/index/tag_table.hpp"
#include "fabric/protocol/operation.hpp"

namespace haul::fabric {

class KeptIndex {
 public:
  struct Search {
    const Peer* source;  // nullptr: any
    std::uint64_t tag, ignore;
  };

  bool in_use() const noexcept { return in_use_ != 0; }
  // The youngest message.
  void add(Unexpected& message, const TagHash& hash) noexcept;
  // A message that is in the tables, or is not.
  void remove(Unexpected& message, const TagHash& hash) noexcept;
  // True: *found is the oldest message that is searched for, or nullptr. False: there is no table
  // for that.
  bool first(const Search& search, const TagHash& hash, Unexpected** found,
             std::uint64_t* passed) noexcept;
  // Such a search has taken long. Without memory nothing changes.
  void cover(const Search& search, List<Unexpected, OfAll>& messages, const TagHash& hash) noexcept;

 private:
  struct Table {
    TagTable table;
    bool directed = false;
    std::uint64_t ignore = 0;
    std::uint64_t place_of(const Unexpected& message, const TagHash& hash) const noexcept {
      return hash(directed ? message.source : nullptr, ignore, message.tag);
    }
  };

  void add(unsigned table, Unexpected& message, const TagHash& hash) noexcept;

  Table tables_[kept_tables];
  unsigned in_use_ = 0;  // the first ones
};

}  // namespace haul::fabric
