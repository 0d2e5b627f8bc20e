// The program's latest large requests, by their tokens: whether bytes may come or go while the
// program calls nothing. Only those that are asked about are looked for, so that a request pays for
// one comparison and, if it is large, for two stores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/protocol/matching/matcher_part.hpp"

namespace haul::fabric {

class BulkRequests : public MatcherPart<BulkRequests> {
 public:
  static bool is_bulk(std::size_t bytes) noexcept { return bytes > in_parts_bytes; }
  // An operation of the pools of Sending and of Receiving.
  void note_bulk_sent(std::uint64_t token) noexcept { note(sent_, token); }
  void note_bulk_awaited(std::uint64_t token) noexcept { note(awaited_, token); }
  // Forgets those that are over.
  bool any_bulk_left() noexcept;

  std::uint64_t noted = 0;  // so far

 private:
  // Where more are under way, the older ones are not watched; they go on with the others.
  static constexpr std::size_t kept = 16;
  void note(std::uint64_t (&tokens)[kept], std::uint64_t token) noexcept {
    tokens[noted++ % kept] = token;
  }

  std::uint64_t sent_[kept] = {}, awaited_[kept] = {};
};

}  // namespace haul::fabric
