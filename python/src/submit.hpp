// From sides to a ticket: how a request of Python's is handed to haul.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <vector>

#include "python/src/errors/without_gil.hpp"
#include "python/src/sides/side.hpp"
#include "python/src/tickets/ticket.hpp"

namespace haul_python {

// The keyword arguments that copy(), fill() and explain() share.
struct CopyOptions {
  haul_affinity dst_affinity = HAUL_CACHEABLE;
  haul_affinity src_affinity = HAUL_CACHEABLE;
  std::uint32_t flags = 0;
};

// The same as Python gives them: None, or no object at all, where they were left out.
struct Keywords {
  nb::handle dst_affinity, src_affinity, mover, fence, checked, nonblock;
  bool none() const;
};
// Raises ValueError for an unknown word.
CopyOptions read_options(const Keywords& words);

// A copy as haul's requests, each of at most 1024 pieces a side; or a fill (`src` NULL), of as
// many.
class Requests {
 public:
  Requests(const CopySide& dst, const CopySide* src, const CopyOptions& options);
  void fill_with(std::uint64_t pattern, std::uint8_t pattern_bytes);
  // The first of them; one of no bytes where the sides are empty.
  const haul_request& front() const { return all_.front(); }
  bool several() const { return all_.size() > 1; }
  // Raises haul.Error where one is refused, once those before it have ended. `completion` as in
  // Ticket; 0 for several.
  RequestsInFlight submit(std::size_t bytes, std::uint64_t completion, std::vector<Export> memory);

 private:
  void place_pieces();

  std::vector<haul_extent> dst_;
  std::vector<haul_extent> src_;
  std::vector<haul_request> all_;
};

// A Python object: the ticket.
nb::object new_ticket(RequestsInFlight requests, std::size_t bytes, std::uint64_t completion);
nb::object new_ended_ticket(std::size_t bytes);

// Where haul copies on the calling thread, a long copy lets go of the GIL, and so does a fence,
// which may wait there. Whether a request without flags will is not known before, so the last one
// of such a length tells.
class LongSubmit {
 public:
  LongSubmit(std::size_t bytes, std::uint32_t flags);
  void ran_inline(bool inline_now);

 private:
  bool tells_;
  WithoutGil released_;
};

}  // namespace haul_python
