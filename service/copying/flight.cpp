// The executor (src/execution/execution.hpp) for rings of other processes, which may be hostile.
#include "service/copying/flight.hpp"

#include <algorithm>

#include "base/machine/clock.hpp"
#include "engine/registry.hpp"
#include "execution/execution.hpp"
#include "service/copying/place.hpp"
#include "service/copying/ring_view.hpp"

namespace haul::service {
namespace {

// What a piece costs beside its bytes, as the number of bytes that take about as long.
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

Location place_of(Hub& hub, Client& client, Space space, std::uint64_t address, std::uint32_t right,
                  std::size_t* length) {
  const OwnedAddress found = owner_of(hub, client, space, address, *length, right);
  if (found.code != Code::ok) return Location{.code = found.code};
  return locate(hub, *found.owner, found.address, length);
}

// Fills in where the next piece lies, at most `piece->length` long. Code::ok if it can be moved.
Code find_places(Hub& hub, Client& client, const Job& job, Piece* piece) {
  const Location dst =
      place_of(hub, client, job.dst_space, piece->dst, wire::may_write, &piece->length);
  if (dst.code != Code::ok) return dst.code;
  piece->dst_space = dst.space;
  piece->dst = dst.address;
  piece->src_space = self_space;
  if (job.operation == Operation::fill) return Code::ok;
  const Location src =
      place_of(hub, client, job.src_space, piece->src, wire::may_read, &piece->length);
  piece->src_space = src.space;
  piece->src = src.address;
  return src.code;
}

// A client's ring as an Origin of the executor. Its words are read once, and checked; a client that
// breaks the rules is condemned, and its request never ends. Failures are left in the ring, where
// the client's process finds them.
class ClientRing {
 public:
  ClientRing(Hub& hub, Client& client, std::uint32_t index)
      : hub_(hub), client_(client), ring_(client.ring(index)), index_(index) {}

  Tenancy tenancy(const Job& job) const { return tenancy_of(ring_, job.seq); }
  Watermark watermark(const ChunkRun& run) const { return run.watermark(tenancy(run.job)); }

  bool stretch(const Job& job, std::size_t at, Stretch* stretch) {
    const auto once = [](const auto& shared) { return read_once(shared); };
    if (stretch_at(ring_, job, at, once, stretch)) return true;
    client_.condemn(Code::invalid, "a request's segments are no cover of it");
    return false;
  }

  void note_failure(const ChunkRun& run) { leave_failure(tenancy(run.job), run.code, run.at); }
  void give_up() { client_.condemn(Code::invalid, "a ring whose words never stand still"); }

  Failure failure_of(const Job& job) const { return read_failure(tenancy(job)); }
  Extras extras(const Job& job) const { return read_extras(ring_, job.seq); }

  bool notify(const Job& job, const Extras& extras, Failure* failure) {
    const Pins pins(hub_.views);
    bool flaw = false;
    std::uint64_t* word =
        arena_word(hub_, client_, reinterpret_cast<std::uintptr_t>(extras.notify), &flaw);
    if (flaw) {
      client_.condemn(Code::invalid, "a notification word outside its arena");
      return false;
    }
    if (word != nullptr) {
      __atomic_store_n(word, extras.notify_value, __ATOMIC_RELEASE);
    } else {
      failure->code = Code::no_memory;
      leave_failure(tenancy(job), failure->code, failure->good_bytes);
    }
    return true;
  }

  Ticket ticket(const Job& job, const Failure&) const {
    return Ticket::pending(read_once(ring_.cookie), index_, job.seq);
  }
  void post(const Job&, const Completion& entry) { armed_ = ring_.completions.post(entry); }

  void end(const Job& job, const Failure& failure) {
    ++client_.tally.requests;
    if (failure.code != Code::ok) ++client_.tally.failed;
    // Release: everything this tenancy wrote; pairs with test and wait. And a full barrier before
    // the look at the sleepers: no membarrier of the client's comes here (pairs with
    // Tenancy::sleep).
    const Tenancy over = tenancy(job);
    over.state->word.exchange(State::make(job.seq, failure.code), std::memory_order_seq_cst);
    if (over.claims->sleepers.load(std::memory_order_seq_cst) != 0) over.wake();
    if (!armed_) return;
    wire::Reap reap;
    reap.ring = index_;
    hub_.tell(client_, reap);
  }

 private:
  Hub& hub_;
  Client& client_;
  Ring& ring_;
  std::uint32_t index_;
  bool armed_ = false;  // its completion queue's event is wanted
};

// One piece; what it cost.
std::int64_t move_piece(Hub& hub, Client& client, ClientRing& ring, Flight& flight,
                        std::int64_t limit) {
  ChunkRun& run = flight.run;
  Piece piece;
  if (!next(ring, run, &piece)) return mapped_piece_cost;
  piece.bytes_before = piece.bytes_behind = 0;  // a view holds the piece, not what lies around it
  piece.length = std::min(
      {piece.length, longest_piece_bytes, std::max(static_cast<std::size_t>(limit), page_bytes)});
  const Pins pins(hub.views);
  const std::uint64_t maps = hub.views.maps(), evictions = hub.views.evictions();
  run.code = find_places(hub, client, run.job, &piece);
  const std::int64_t cost =
      static_cast<std::int64_t>(hub.views.maps() - maps) * map_cost +
      static_cast<std::int64_t>(hub.views.evictions() - evictions) * eviction_cost;
  if (run.code == Code::permission && !client.arena.open() && flight.waited < most_waits) {
    // The client may use its arena's memory at once, before the service has read the message that
    // tells of the arena.
    ++flight.waited;
    run.code = Code::ok;
    hub.attend_now = true;
    return limit;
  }
  if (run.code != Code::ok) return cost + mapped_piece_cost;
  const bool mapped = piece.dst_space == self_space && piece.src_space == self_space;
  // Mapped memory is sealed, so that no byte of it is inaccessible: a checked request is safe
  // there.
  piece.checked = run.job.checked && !mapped;
  Outcome outcome;
  (mapped ? cpu_engine() : cma_engine()).submit(piece, 0, outcome);
  run.advance(outcome);
  (mapped ? client.tally.mapped_copy_bytes : client.tally.kernel_copy_bytes) += outcome.good_bytes;
  return cost + std::max(static_cast<std::int64_t>(outcome.good_bytes),
                         mapped ? mapped_piece_cost : kernel_piece_cost);
}

// Gives a chunk that failed back to its client, if it lies within the client's memory, where it can
// be finished without a service. False: it does not.
bool give_back(Hub& hub, Client& client, std::uint32_t ring_index, const ChunkRun& run) {
  if (run.code == Code::ok || run.job.checked || !run.job.is_local()) return false;
  wire::Yours yours;
  yours.ring = ring_index;
  yours.seq = run.job.seq;
  yours.chunk = run.chunk;
  yours.code = static_cast<std::int32_t>(run.code);
  hub.tell(client, yours);
  return true;
}

}  // namespace

std::int64_t advance(Hub& hub, Client& client, std::uint32_t ring_index, Flight& flight,
                     std::int64_t limit) {
  const std::uint64_t began = ticks();
  std::int64_t cost = 0;
  ClientRing ring(hub, client, ring_index);
  const ChunkRun& run = flight.run;
  while (!run.over() && !client.doomed && cost < limit)
    cost += move_piece(hub, client, ring, flight, limit - cost);
  if (client.doomed) {
    flight.active = false;
  } else if (run.over()) {
    flight.active = false;
    if (!give_back(hub, client, ring_index, run)) {
      ++client.tally.chunks;
      // Relaxed: a statistic, written here alone.
      client.board().chunks.store(client.tally.chunks, std::memory_order_relaxed);
      report(ring, run);
    }
    cost += mapped_piece_cost / 2;
  }
  client.tally.busy_ticks += ticks() - began;
  return cost;
}

}  // namespace haul::service
