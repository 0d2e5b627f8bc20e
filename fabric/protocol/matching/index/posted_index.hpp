// Posted receives by what they match, for lists that have become long. A receive with ignored bits
// cannot be found by a message's tag, but by the tag without these bits; since programs ignore the
// same few sets of bits again and again (an MPI: those of its protocol, and these with the tag for
// MPI_ANY_TAG), a message is looked up once for every set in use. Receives with still other sets
// are walked.
#pragma once

#include <cstdint>

#include "fabric/protocol/matching/index/tag_table.hpp"
#include "fabric/protocol/operation.hpp"

namespace haul::fabric {

class PostedIndex {
 public:
  // Whether all receives of the list are found here.
  bool covers(const PostedList& list) const noexcept { return list.indexed == age_; }
  // A search of this list of tagged receives of one source has taken long. Without memory nothing
  // changes.
  void cover(PostedList& list, const TagHash& hash) noexcept;
  // The last one of a list that is, or was, covered.
  void posted(PostedList& list, Incoming& receive, const TagHash& hash) noexcept;
  void remove(Incoming& receive, const TagHash& hash) noexcept;
  // The oldest receive of a covered list that a message matches. *passed: how many were looked at
  // in vain.
  Incoming* first(const Peer* source, std::uint64_t tag, const TagHash& hash,
                  std::uint64_t* passed) noexcept;

 private:
  // Receives in the table that ignore the same bits.
  struct Kind {
    std::uint64_t ignore = 0;
    std::size_t receives[2] = {};  // [from one peer alone]
  };
  static constexpr std::uint8_t kind_count = 8;
  static constexpr std::uint8_t walked = kind_count + 1;  // Incoming::filed: in walked_

  void add(Incoming& receive, const TagHash& hash) noexcept;
  std::uint8_t kind_of(std::uint64_t ignore) noexcept;  // kind_count: there is no room for it

  TagTable table_;
  Kind kinds_[kind_count];
  List<TableEntry, InTable> walked_;
  std::size_t entries_ = 0;
  std::uint64_t age_ = 1;  // a list that names an older one is not covered
};

}  // namespace haul::fabric
