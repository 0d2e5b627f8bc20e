// Piece by piece through a synchronous engine, on the thread that asked.
#include "execution/caller.hpp"

#include "engine/registry.hpp"
#include "execution/counters.hpp"
#include "execution/help.hpp"

namespace haul {
namespace {

constexpr std::size_t cpu_index = 0;  // the registry's fixed order

// One piece by a synchronous engine, on this thread. What the engine leaves, the CPU does, where it
// can (as in chunk_run.cpp).
Outcome run_piece(Piece piece, std::size_t engine) noexcept {
  std::uint64_t good = 0;
  if (!engine_at(engine).facts().synchronous) engine = cpu_index;
  for (;;) {
    Outcome outcome;
    if (engine_at(engine).submit(piece, 0, outcome) != Submitted::finished) {
      outcome = Outcome{0, Code::io};
    }
    count_moved(engine, outcome.good_bytes);
    good += outcome.good_bytes;
    const bool cpu_can = engine != cpu_index && !piece.checked &&
                         cpu_engine().reaches(piece.operation, piece.dst_space, piece.src_space);
    if (outcome.code == Code::ok || !cpu_can) return Outcome{good, outcome.code};
    engine = cpu_index;
    piece.dst += outcome.good_bytes;
    if (piece.operation == Operation::copy) piece.src += outcome.good_bytes;
    piece.pattern = pattern_at(piece.pattern, outcome.good_bytes);
    piece.length -= outcome.good_bytes;
  }
}

}  // namespace

Ticket run_inline(const Request& request, std::size_t engine, Ring* ring) noexcept {
  if (request.fence && ring != nullptr) drain(*ring, ring->next_seq());
  SegmentWalk walk(request);
  Segment segment;
  Code code = Code::ok;
  std::uint64_t good = 0;
  for (std::size_t length = 0; code == Code::ok && walk.next(&segment, &length);) {
    Piece piece;
    piece.operation = request.operation;
    piece.dst_affinity = request.dst_affinity;
    piece.src_affinity = request.src_affinity;
    piece.checked = request.checked;
    piece.dst_space = request.dst_space;
    piece.src_space = request.src_space;
    piece.dst = segment.dst;
    piece.src = segment.src;
    piece.length = length;
    piece.whole_bytes = request.length;
    piece.pattern = pattern_at(request.pattern, segment.offset);
    const Outcome outcome = run_piece(piece, engine);
    good += outcome.good_bytes;
    code = outcome.code;
  }
  if (code != Code::ok) counters.failed.fetch_add(1, std::memory_order_relaxed);
  const Ticket ticket = Ticket::decided(code, good);
  if (request.notify != nullptr && code == Code::ok) {
    request.notify->store(request.notify_value, std::memory_order_release);
  }
  if (request.complete) {
    const Completion entry{ticket, request.user_data, good,
                           code,   request.callback,  request.context};
    if (ring->completions.post(entry)) ring->completions.signal();
  }
  return ticket;
}

}  // namespace haul
