#include "python/src/submit.hpp"

#include <algorithm>
#include <atomic>
#include <string>

#include "python/src/errors/failure.hpp"

namespace haul_python {
namespace {

constexpr std::size_t most_pieces = 1024;
constexpr std::size_t long_from_bytes = 256 << 10;

bool is_given(nb::handle word) {
  return word.is_valid() && !word.is_none();
}

std::string text_of(nb::handle word) {
  return nb::str(word).c_str();
}

haul_affinity affinity_of(nb::handle word) {
  if (!is_given(word)) return HAUL_CACHEABLE;
  const std::string text = text_of(word);
  if (text == "cacheable") return HAUL_CACHEABLE;
  if (text == "non-cacheable") return HAUL_NON_CACHEABLE;
  if (text == "neutral") return HAUL_NEUTRAL;
  raise(PyExc_ValueError,
        "'" + text + "' is no cache affinity; pass cacheable, non-cacheable or neutral");
}

std::uint32_t flag_of_mover(nb::handle word) {
  if (!is_given(word)) return 0;
  const std::string text = text_of(word);
  if (text == "auto") return 0;
  if (text == "caller") return HAUL_INLINE;
  if (text == "dedicated") return HAUL_DEDICATED;
  raise(PyExc_ValueError, "'" + text + "' is no mover; pass auto, caller or dedicated");
}

std::uint32_t flag_if(nb::handle word, std::uint32_t flag) {
  if (!is_given(word)) return 0;
  const int truth = PyObject_IsTrue(word.ptr());
  if (truth < 0) throw nb::python_error();
  return truth != 0 ? flag : 0;
}

// Pieces of one request, as they are gathered: all in one space, and a piece that continues the
// last one makes that longer.
struct Row {
  std::vector<haul_extent>& pieces;
  std::size_t first = pieces.size();

  bool takes(const haul_extent& piece) const {
    if (pieces.size() == first) return true;
    return pieces.back().space == piece.space &&
           (pieces.size() - first < most_pieces || continues(piece));
  }
  bool continues(const haul_extent& piece) const {
    return pieces.size() > first && pieces.back().space == piece.space &&
           static_cast<char*>(pieces.back().address) + pieces.back().length == piece.address;
  }
  void add(const haul_extent& piece) {
    if (continues(piece)) {
      pieces.back().length += piece.length;
    } else {
      pieces.push_back(piece);
    }
  }
};

// Walks a side's pieces, each of which may be taken in parts.
struct Walk {
  const std::vector<haul_extent>& pieces;
  std::size_t at = 0;
  std::size_t taken = 0;

  bool ended() const { return at == pieces.size(); }
  std::size_t left() const { return pieces[at].length - taken; }
  haul_extent part(std::size_t bytes) const {
    haul_extent extent = pieces[at];
    extent.address = static_cast<char*>(extent.address) + taken;
    extent.length = bytes;
    return extent;
  }
  void take(std::size_t bytes) {
    taken += bytes;
    if (taken < pieces[at].length) return;
    ++at;
    taken = 0;
  }
};

std::atomic<bool> long_ones_run_inline{true};

haul_request request_of(const CopyOptions& options) {
  haul_request request = haul_request_copy(nullptr, nullptr, 0);
  request.dst_affinity = static_cast<std::uint8_t>(options.dst_affinity);
  request.src_affinity = static_cast<std::uint8_t>(options.src_affinity);
  request.flags = options.flags;
  return request;
}

}  // namespace

bool Keywords::none() const {
  return dst_affinity.is_none() && src_affinity.is_none() && mover.is_none() && fence.is_none() &&
         checked.is_none() && nonblock.is_none();
}

CopyOptions read_options(const Keywords& words) {
  CopyOptions options;
  options.dst_affinity = affinity_of(words.dst_affinity);
  options.src_affinity = affinity_of(words.src_affinity);
  options.flags = flag_of_mover(words.mover) | flag_if(words.fence, HAUL_FENCE) |
                  flag_if(words.checked, HAUL_CHECKED) | flag_if(words.nonblock, HAUL_NONBLOCK);
  return options;
}

Requests::Requests(const CopySide& dst, const CopySide* src, const CopyOptions& options) {
  Walk to{dst.pieces};
  Walk from{src != nullptr ? src->pieces : dst.pieces};
  do {
    haul_request request = request_of(options);
    Row dst_row{dst_};
    Row src_row{src_};
    while (!to.ended()) {
      const std::size_t bytes = std::min(to.left(), from.left());
      const haul_extent dst_part = to.part(bytes);
      const haul_extent src_part = from.part(bytes);
      if (!dst_row.takes(dst_part) || !src_row.takes(src_part)) break;
      dst_row.add(dst_part);
      src_row.add(src_part);
      to.take(bytes);
      from.take(bytes);
    }
    request.dst_count = static_cast<std::uint32_t>(dst_.size() - dst_row.first);
    request.src_count = static_cast<std::uint32_t>(src_.size() - src_row.first);
    all_.push_back(request);
  } while (!to.ended());
  place_pieces();
}

// The rows stay where they are from now on. A single piece needs no vector.
void Requests::place_pieces() {
  const haul_extent* dst = dst_.data();
  const haul_extent* src = src_.data();
  for (haul_request& request : all_) {
    if (request.dst_count == 1 && request.src_count == 1) {
      request.dst = *dst;
      request.src = *src;
    } else if (request.dst_count > 0) {
      request.dst_vector = dst;
      request.src_vector = src;
    }
    dst += request.dst_count;
    src += request.src_count;
    if (request.dst_vector == nullptr) request.dst_count = request.src_count = 0;
  }
}

void Requests::fill_with(std::uint64_t pattern, std::uint8_t pattern_bytes) {
  for (haul_request& request : all_) {
    request.operation = HAUL_OP_FILL;
    request.pattern = pattern;
    request.pattern_bytes = pattern_bytes;
    request.src_vector = nullptr;
    request.src_count = 0;
    request.src = haul_extent{};
  }
}

RequestsInFlight Requests::submit(std::size_t bytes, std::uint64_t completion,
                                  std::vector<Export> memory) {
  if (completion != 0) {
    all_.front().flags |= HAUL_COMPLETE;
    all_.front().user_data = completion;
  }
  std::vector<haul_ticket> tickets(all_.size());
  std::size_t taken = 0;
  int result = 0;
  {
    LongSubmit submit(bytes, all_.front().flags);
    // Where a part was taken, submitting the rest again takes it, or says why not.
    while (taken < all_.size()) {
      result = haul_submit(all_.data() + taken, all_.size() - taken, tickets.data() + taken);
      if (result < 0) break;
      taken += static_cast<std::size_t>(result);
    }
    submit.ran_inline(taken > 0 && haul_test(tickets[taken - 1]) != 0);
  }
  if (result < 0) {
    // Nobody gets a ticket for what was taken, so it ends before anybody hears of the rest.
    const haul::error refused(result);
    without_gil([&] {
      for (std::size_t i = 0; i < taken; ++i) haul_wait(tickets[i]);
    });
    throw refused;
  }
  RequestsInFlight requests;
  requests.first = tickets[0];
  requests.others.assign(tickets.begin() + 1, tickets.end());
  requests.memory = std::move(memory);
  return requests;
}

namespace {

template <class... Arguments>
nb::object make_ticket(Arguments&&... arguments) {
  static PyObject* const type = nb::type<TicketObject>().ptr();
  nb::object ticket = nb::inst_alloc(type);
  new (nb::inst_ptr<TicketObject>(ticket)) TicketObject(std::forward<Arguments>(arguments)...);
  nb::inst_mark_ready(ticket);
  return ticket;
}

}  // namespace

nb::object new_ticket(RequestsInFlight requests, std::size_t bytes, std::uint64_t completion) {
  return make_ticket(std::move(requests), bytes, completion);
}

nb::object new_ended_ticket(std::size_t bytes) {
  return make_ticket(bytes);
}

LongSubmit::LongSubmit(std::size_t bytes, std::uint32_t flags)
    : tells_(bytes >= long_from_bytes && (flags & (HAUL_INLINE | HAUL_FENCE)) == 0),
      released_(
          (flags & HAUL_FENCE) != 0 ||
          (bytes >= long_from_bytes &&
           ((flags & HAUL_INLINE) != 0 || long_ones_run_inline.load(std::memory_order_relaxed)))) {}

void LongSubmit::ran_inline(bool inline_now) {
  if (tells_) long_ones_run_inline.store(inline_now, std::memory_order_relaxed);
}

}  // namespace haul_python
