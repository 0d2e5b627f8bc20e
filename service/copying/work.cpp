// Turns: which ring, which request, how much. (src/mover/loop.cpp does the same within a process.)
//
// Deficit round robin over the clients, and within a client over its rings. A turn has a credit in
// bytes; everything that takes the service's time is charged to it in bytes that would take as
// long: pieces, mappings, slots that are passed over. So a client cannot lengthen its turn by many
// small requests, by many mappings or by rubbish. What a request says is copied once from the ring
// (Ring::read) and checked (flaw_of) before it is claimed; a copy that is torn because its tenancy
// is over is passed, one that is wrong while its tenancy goes on condemns the client.
#include "service/copying/work.hpp"

#include <algorithm>
#include <bit>

#include "base/machine/clock.hpp"
#include "base/net/socket.hpp"
#include "service/copying/flight.hpp"
#include "service/copying/ring_view.hpp"

namespace haul::service {
namespace {

constexpr std::int64_t usual_quantum_bytes = 256 * 1024, least_quantum_bytes = 16 * 1024;
// Rings of one client take turns within its turn.
constexpr std::int64_t least_slice_bytes = 64 * 1024;
constexpr unsigned steps_a_visit = 8;
// What a step that moves no byte costs, as the number of bytes that take about as long: a client
// with many requests to be skipped must not lengthen its turn.
constexpr std::int64_t step_cost = 256;
// While a request of more than this is under way, small ones behind it go first.
constexpr std::size_t large_bytes = 1024 * 1024, small_bytes = 64 * 1024;
constexpr std::uint64_t look_ahead_seqs = 16;
constexpr std::uint64_t line_pause_ticks = 2'000'000;  // about a millisecond
constexpr unsigned samples_a_word = 8;
constexpr double line_smoothing = 1.0 / 8;

// Makes client.rings what the board says, if that has changed.
void follow_board(Client& client) {
  Board& board = client.board();
  for (std::uint32_t word = 0; word < max_shared_rings / 64; ++word) {
    // Acquire: a client sets a ring's bit after it has made the ring.
    const std::uint64_t bits = board.shared[word].load(std::memory_order_acquire);
    if (bits == client.shared[word]) continue;
    std::erase_if(client.rings, [&](const RingState& ring) {
      return ring.index / 64 == word && (bits >> ring.index % 64 & 1) == 0;
    });
    for (std::uint64_t fresh = bits & ~client.shared[word]; fresh != 0; fresh &= fresh - 1) {
      RingState ring;
      ring.index = word * 64 + static_cast<std::uint32_t>(std::countr_zero(fresh));
      client.rings.push_back(ring);
    }
    client.shared[word] = bits;
  }
}

// Times the read of a line that the ring's owner has just written, as mover/cores/drift.cpp does.
void sample_line(Client& client, const Ring& ring) {
  const std::uint64_t now = ticks();
  if (now - client.line_sampled_ticks < line_pause_ticks) return;
  client.line_sampled_ticks = now;
  const std::uint64_t before = fenced_ticks();
  (void)ring.inlined.load(std::memory_order_relaxed);  // on the line of `publishing`
  const auto elapsed =
      static_cast<double>(std::min<std::uint64_t>(fenced_ticks() - before, 1 << 20));
  if (client.line_ticks <= 0) {
    client.line_ticks = elapsed;
  } else {
    // An outlier is an interrupt: it counts as twice what is usual.
    const double bounded = std::min(elapsed, 2 * client.line_ticks);
    client.line_ticks += (bounded - client.line_ticks) * line_smoothing;
  }
  const auto line_ns = static_cast<std::uint32_t>(client.line_ticks / ticks_per_ns()) + 1;
  client.board().line_ns.store(line_ns, std::memory_order_relaxed);
  // Its planner is told if that has changed by a third, and only after some samples, so that it is
  // not told of chance.
  const std::uint32_t told = client.told_line_ns;
  const bool changed = line_ns > told + told / 3 || line_ns + line_ns / 3 < told;
  if (++client.lines_sampled % samples_a_word != 0 || !changed) return;
  client.told_line_ns = line_ns;
  wire::Distance word;
  word.line_ns = line_ns;
  os::send_packet(client.socket.get(), &word, sizeof word);  // if it does not read, it does without
}

// What is to be done with the request of `seq`.
enum class Next : std::uint8_t { pass, wait, blocked, claimed };

// Reads, checks and claims. `small_only`: the look-ahead, which takes what is short and simple.
Next take(Client& client, RingState& state, std::uint64_t seq, bool small_only, Flight* flight) {
  Ring& ring = client.ring(state.index);
  const std::uint64_t published = ring.published_seq(seq);
  if (published != seq) return published < seq ? Next::wait : Next::pass;
  Job job;
  if (!ring.read(seq, &job) || !job.service)
    return small_only && job.fence ? Next::wait : Next::pass;
  if (const char* flaw = flaw_of(job, &state.checked); flaw != nullptr) {
    // A copy of a tenancy that is over may be torn. Where it is not over, this is what was asked.
    if (ended(ring, seq)) return Next::pass;
    client.condemn(Code::invalid, std::string("it asked for ") + flaw);
    return Next::wait;
  }
  if (small_only) {
    if (job.fence) return Next::wait;
    if (job.chunks.count() != 1 || job.chunks.length > small_bytes || job.segment_count != 0)
      return Next::pass;
  }
  const Tenancy tenancy = tenancy_of(ring, seq);
  if (!tenancy.claimable(job.chunks)) return Next::pass;
  if (job.fence && !fence_open(ring, state, seq)) return Next::blocked;
  const int chunk = ring.claim(tenancy, job.chunks);
  if (chunk < 0) return tenancy.claimable(job.chunks) ? Next::wait : Next::pass;
  *flight = Flight{.active = true, .run = ChunkRun(job, static_cast<unsigned>(chunk))};
  return Next::claimed;
}

// Small requests behind a large one: a few each time, so that the large one goes on too. (Requests
// are unordered but for fences.)
std::int64_t look_ahead(Hub& hub, Client& client, RingState& state, std::int64_t limit) {
  std::int64_t cost = 0;
  const std::uint64_t large = state.flight.run.job.seq;
  std::uint64_t seq = std::max(state.ahead, large + 1);
  const std::uint64_t end = seq + look_ahead_seqs;
  for (; seq < end && cost < limit && !client.doomed; ++seq) {
    Flight flight;
    const Next next = take(client, state, seq, true, &flight);
    if (next == Next::wait || next == Next::blocked) break;
    cost += step_cost;
    while (flight.active)
      cost += advance(hub, client, state.index, flight, static_cast<std::int64_t>(small_bytes));
  }
  state.ahead = seq;
  return cost;
}

// A ring's slice of its client's turn; what it cost, 0 if there was nothing to do.
std::int64_t visit(Hub& hub, Client& client, RingState& state, std::int64_t limit) {
  std::int64_t cost = 0;
  for (unsigned step = 0; step < steps_a_visit && cost < limit && !client.doomed; ++step) {
    if (!state.flight.active) {
      const Ring& ring = client.ring(state.index);
      const std::uint64_t seq = state.cursor;
      const Next next = take(client, state, seq, false, &state.flight);
      if (next == Next::blocked) hub.held_back = true;
      if (next == Next::wait || next == Next::blocked) break;
      cost += step_cost;
      if (next == Next::pass) {
        // It is over, or not the service's. So is every request whose slot has been used again.
        const std::uint64_t published = ring.published_seq(seq);
        state.cursor = published > seq ? std::max(seq + 1, published - Ring::slots + 1) : seq + 1;
        continue;
      }
      sample_line(client, ring);
    }
    if (state.flight.run.job.chunks.length > large_bytes)
      cost += look_ahead(hub, client, state, (limit - cost) / 2);
    if (cost < limit && !client.doomed)
      cost += advance(hub, client, state.index, state.flight, limit - cost);
  }
  return cost;
}

}  // namespace

std::int64_t quantum_of(unsigned weight) {
  return std::max(usual_quantum_bytes * static_cast<std::int64_t>(weight) /
                      static_cast<std::int64_t>(wire::default_weight),
                  least_quantum_bytes);
}

bool serve(Hub& hub, Client& client) {
  if (client.doomed) return false;
  follow_board(client);
  const std::size_t count = client.rings.size();
  if (count == 0) return false;
  const std::int64_t quantum = quantum_of(client.weight);
  client.credit = std::min(client.credit + quantum, quantum);
  if (client.credit <= 0) return true;  // still paying for a turn that was too long
  const std::int64_t slice =
      std::max(quantum / static_cast<std::int64_t>(count), least_slice_bytes);
  bool any = false;
  for (std::size_t idle = 0; idle < count && client.credit > 0 && !client.doomed;) {
    client.next_ring = (client.next_ring + 1) % count;
    const std::int64_t cost =
        visit(hub, client, client.rings[client.next_ring], std::min(slice, client.credit));
    client.credit -= cost;
    idle = cost == 0 ? idle + 1 : 0;
    any |= cost != 0;
  }
  if (!any) client.credit = std::min<std::int64_t>(client.credit, 0);
  return any;
}

}  // namespace haul::service
