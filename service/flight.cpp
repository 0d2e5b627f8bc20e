// Pieces of a chunk, and what happens when the last one is done. (src/execution/chunk_run.cpp does
// the same within a process.)
#include "service/flight.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "engine/registry.hpp"
#include "request/request.hpp"
#include "service/place.hpp"
#include "service/ring_view.hpp"

namespace haul::service {
namespace {

constexpr std::size_t page_bytes = 4096;
// What a piece costs beside its bytes, in bytes of about the same time.
constexpr std::int64_t mapped_piece_cost = 2048, kernel_piece_cost = 8192, map_cost = 16384,
                       eviction_cost = 262144;
constexpr unsigned most_waits = 4;
constexpr std::size_t longest_piece_bytes = std::size_t{1} << 20;

// Nothing stays pinned beyond a piece.
class Pins {
 public:
  explicit Pins(Views& views) : views_(views) {}
  ~Pins() { views_.unpin(); }
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

 private:
  Views& views_;
};

Place place_of(Node& node, Client& client, Space space, std::uint64_t address, std::uint32_t right,
               std::size_t* length) {
  const Reach found = reach(node, client, space, address, *length, right);
  if (found.code != Code::ok) return Place{.code = found.code};
  return locate(node, *found.owner, found.address, length);
}

// Fills in where the next piece lies, at most `piece->length` long. Code::ok if it can be moved.
Code find_places(Node& node, Client& client, const Job& job, const Stretch& stretch, Piece* piece) {
  const Place dst =
      place_of(node, client, job.dst_space, stretch.dst, wire::may_write, &piece->length);
  if (dst.code != Code::ok) return dst.code;
  piece->dst_space = dst.space;
  piece->dst = dst.address;
  if (job.operation == Operation::fill) return Code::ok;
  const Place src =
      place_of(node, client, job.src_space, stretch.src, wire::may_read, &piece->length);
  piece->src_space = src.space;
  piece->src = src.address;
  return src.code;
}

// One piece; what it cost.
std::int64_t move_piece(Node& node, Client& client, Ring& ring, Flight& flight,
                        std::int64_t limit) {
  const Job& job = flight.job;
  Stretch stretch;
  if (!stretch_at(ring, job, flight.at, &stretch)) {
    client.condemn(Code::invalid, "a request's segments are no cover of it");
    return mapped_piece_cost;
  }
  const Pins pins(node.views);
  const std::uint64_t maps = node.views.maps(), evictions = node.views.evictions();
  const Tenancy tenancy = ring.tenancy(job.seq);
  Piece piece;
  piece.operation = job.operation;
  piece.dst_affinity = job.dst_affinity;
  piece.src_affinity = job.src_affinity;
  piece.pattern_bytes = job.pattern_bytes;
  piece.whole_bytes = job.chunks.length;
  piece.watermark =
      Watermark{&tenancy.watermarks->word[flight.chunk], std::uint64_t{tenancy.generation} << 32,
                flight.at - flight.begin, job.chunks.block_log2};
  piece.length = std::min({flight.end - flight.at, stretch.length, longest_piece_bytes,
                           std::max(static_cast<std::size_t>(limit), page_bytes)});
  if (job.operation == Operation::fill) piece.pattern = pattern_at(job.src_or_pattern, flight.at);
  flight.code = find_places(node, client, job, stretch, &piece);
  std::int64_t cost = static_cast<std::int64_t>(node.views.maps() - maps) * map_cost +
                      static_cast<std::int64_t>(node.views.evictions() - evictions) * eviction_cost;
  if (flight.code == Code::permission && !client.arena.open() && flight.waited < most_waits) {
    // The arena is told by a message, and its memory used at once: that may be unread.
    ++flight.waited;
    flight.code = Code::ok;
    node.attend_now = true;
    return limit;
  }
  if (flight.code != Code::ok) return cost + mapped_piece_cost;
  const bool mapped = piece.dst_space == self_space && piece.src_space == self_space;
  // Mapped memory is sealed, so that no byte of it is inaccessible: a checked request is safe
  // there.
  piece.checked = job.checked && !mapped;
  Outcome outcome;
  (mapped ? cpu_engine() : cma_engine()).submit(piece, 0, outcome);
  flight.at += outcome.good_bytes;
  flight.code = outcome.code;
  (mapped ? client.tally.mapped_copy_bytes : client.tally.kernel_copy_bytes) += outcome.good_bytes;
  return cost + std::max(static_cast<std::int64_t>(outcome.good_bytes),
                         mapped ? mapped_piece_cost : kernel_piece_cost);
}

// The last finisher's duties, in the order of src/execution/chunk_run.cpp: the notification word,
// the queue, then the state.
void complete(Node& node, Client& client, std::uint32_t ring_index, const Job& job, bool failed) {
  Ring& ring = client.ring(ring_index);
  const Tenancy tenancy = tenancy_of(ring, job.seq);
  Code code = Code::ok;
  std::uint64_t good = job.chunks.length;
  if (failed) read_failure(tenancy, &code, &good);
  bool armed = false;
  if (job.extras) {
    const ExtrasCopy extras = read_extras(ring, job.seq);
    if (extras.notify != 0 && !failed) {
      const Pins pins(node.views);
      bool flaw = false;
      std::uint64_t* word = arena_word(node, client, extras.notify, &flaw);
      if (flaw) {
        client.condemn(Code::invalid, "a notification word outside its arena");
        return;
      }
      if (word != nullptr) {
        // Release: whoever sees the value sees the data.
        __atomic_store_n(word, extras.notify_value, __ATOMIC_RELEASE);
      } else {
        failed = true;
        code = Code::no_memory;
        leave_failure(tenancy, code, good);
      }
    }
    if (extras.post) {
      armed = ring.completions.post(
          Completion{Ticket::pending(read_once(ring.cookie), ring_index, job.seq), extras.user_data,
                     good, code, reinterpret_cast<CompletionCallback>(extras.callback),
                     reinterpret_cast<void*>(extras.context)});
    }
  }
  ++client.tally.requests;
  if (failed) ++client.tally.failed;
  // Release: everything this tenancy wrote; pairs with test and wait. And a full barrier before the
  // look at the sleepers: no membarrier of the client's comes here (pairs with Tenancy::sleep).
  tenancy.state->word.exchange(State::make(job.seq, code), std::memory_order_seq_cst);
  if (tenancy.claims->sleepers.load(std::memory_order_seq_cst) != 0) tenancy.wake();
  if (armed) {
    wire::Reap reap;
    reap.ring = ring_index;
    node.tell(client, reap);
  }
}

// What lies within the client it can finish itself, as it would without a service.
bool give_back(Node& node, Client& client, std::uint32_t ring_index, const Flight& flight) {
  const Job& job = flight.job;
  if (flight.code == Code::ok || job.checked || job.dst_space != self_space ||
      (job.operation == Operation::copy && job.src_space != self_space))
    return false;
  wire::Yours yours;
  yours.ring = ring_index;
  yours.seq = job.seq;
  yours.chunk = flight.chunk;
  yours.code = static_cast<std::int32_t>(flight.code);
  node.tell(client, yours);
  return true;
}

void report(Node& node, Client& client, std::uint32_t ring_index, Flight& flight) {
  flight.active = false;
  if (give_back(node, client, ring_index, flight)) return;
  ++client.tally.chunks;
  // Relaxed: a statistic, written here alone.
  client.board().chunks.store(client.tally.chunks, std::memory_order_relaxed);
  const Job& job = flight.job;
  const Tenancy tenancy = tenancy_of(client.ring(ring_index), job.seq);
  const bool failed = flight.code != Code::ok;
  if (failed) leave_failure(tenancy, flight.code, flight.at);
  const Tenancy::Finish finish = tenancy.finish(flight.chunk, failed, job.chunks);
  if (finish.gave_up) {
    client.condemn(Code::invalid, "a ring whose words never stand still");
  } else if (finish.last) {
    complete(node, client, ring_index, job, finish.failed);
  }
}

}  // namespace

Flight take_off(const Job& job, unsigned chunk) {
  Flight flight;
  flight.active = true;
  flight.job = job;
  flight.chunk = chunk;
  flight.begin = flight.at = job.chunks.begin(chunk);
  flight.end = job.chunks.end(chunk);
  return flight;
}

std::int64_t advance(Node& node, Client& client, std::uint32_t ring_index, Flight& flight,
                     std::int64_t limit) {
  const std::uint64_t began = ticks();
  std::int64_t cost = 0;
  Ring& ring = client.ring(ring_index);
  while (flight.at < flight.end && flight.code == Code::ok && !client.doomed && cost < limit)
    cost += move_piece(node, client, ring, flight, limit - cost);
  if (client.doomed) {
    flight.active = false;
  } else if (flight.at >= flight.end || flight.code != Code::ok) {
    report(node, client, ring_index, flight);
    cost += mapped_piece_cost / 2;
  }
  client.tally.busy_ticks += ticks() - began;
  return cost;
}

}  // namespace haul::service
