#include "fabric/protocol/matching/bulk_requests.hpp"

#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

namespace {

template <class Operation, std::size_t size>
bool finds_one_of(std::uint64_t (&tokens)[size], Pool<Operation>& pool) noexcept {
  bool found = false;
  for (std::uint64_t& token : tokens) {
    if (token == 0) continue;
    if (pool.find(token) != nullptr) {
      found = true;
    } else {
      token = 0;
    }
  }
  return found;
}

}  // namespace

bool BulkRequests::any_bulk_left() noexcept {
  const bool sent = finds_one_of(sent_, the<Sending>().outgoing);
  const bool awaited = finds_one_of(awaited_, the<Receiving>().incoming);
  return sent || awaited;
}

}  // namespace haul::fabric
