#include "devices/dsa/pieces.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <new>

#include "devices/dsa/parts.hpp"

namespace haul::dsa {
namespace {

constexpr unsigned most_under_way = 32;
// A device that only fails is not asked any more after so many pieces.
constexpr unsigned most_failures = 16;

// All of it lies in memory that a child of fork finds full of zeros, which takes nothing: the queue
// and its addresses are the parent's. For the parent a fork changes nothing either: the device
// writes completion records to pages that the kernel does not share with the child.
struct UnderWayTable {
  Parts parts[most_under_way];
  std::uint64_t tags[most_under_way];
  std::uint32_t under_way;  // a bit for each that is accepted and not reported
  std::uint32_t waiting;    // those of them of which the device is to be given a rest
  unsigned depth;
  unsigned failures;  // in a row
  bool dead;          // takes nothing more; what it has accepted is reported
  bool stopped, draining, drained;
  alignas(64) dsa_hw_desc drain;
  alignas(32) dsa_completion_record drain_end;
  WorkQueue queue;
  Portal portal;
};
UnderWayTable* tables[most_channels];
unsigned table_count = 0;
// Pieces whose compare found other bytes than were to be there; for people, so relaxed.
constinit std::atomic<unsigned> differing_pieces{0};

// Hands over what the piece's next descriptor says.
Taken hand_over(UnderWayTable& table, Parts& parts) {
  const Taken taken = table.portal.submit(parts.describe(table.queue));
  if (taken == Taken::broken) table.dead = true;
  return taken;
}

void begin_to_drain(UnderWayTable& table) {
  if (table.draining) return;
  dsa_hw_desc& drain = table.drain;
  drain.opcode = DSA_OPCODE_DRAIN;
  drain.flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
  drain.completion_addr = reinterpret_cast<std::uintptr_t>(&table.drain_end);
  // (While the queue is full, the next poll tries again.)
  table.draining = table.portal.submit(drain) == Taken::yes;
}

// Nothing of the piece is with the device, but for a rest that waits to be handed over. Goes on
// with it. True: that was the end.
bool proceed(UnderWayTable& table, unsigned number, Outcome& outcome) {
  Parts& parts = table.parts[number];
  const std::uint32_t bit = std::uint32_t{1} << number;
  if ((table.waiting & bit) == 0) {
    const Ended ended = parts.look();
    outcome = {parts.whole_bytes(), Code::io};
    switch (ended) {
      case Ended::well:
        outcome = {parts.piece.length, Code::ok};
        table.failures = 0;
        return true;
      case Ended::differing:
        differing_pieces.fetch_add(1, std::memory_order_relaxed);
        [[fallthrough]];
      case Ended::badly:
        if (++table.failures >= most_failures) table.dead = true;
        return true;
      case Ended::not_begun: break;
      case Ended::at_a_page:
        if (table.dead) return true;
        outcome.code = parts.mend();
        if (outcome.code != Code::ok) return true;
        break;
    }
  }
  outcome = {parts.whole_bytes(), Code::io};
  if (table.dead) return true;
  const Taken taken = hand_over(table, parts);
  table.waiting = taken == Taken::full ? table.waiting | bit : table.waiting & ~bit;
  return taken == Taken::broken;
}

}  // namespace

bool begin_pieces(const WorkQueue& queue, const Sentence& sentence) {
  void* const memory = mmap(nullptr, sizeof(UnderWayTable), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED || madvise(memory, sizeof(UnderWayTable), MADV_WIPEONFORK) != 0) {
    sentence.say("there is no memory for the engine dsa's queue; raise the limit of this process");
    return false;
  }
  auto* const made = new (memory) UnderWayTable();
  made->queue = queue;
  made->depth = std::min(queue.depth, most_under_way);
  if (!made->portal.open(queue, sentence)) return false;
  if (!made->portal.takes_batches()) made->queue.most_batch = 1;
  tables[table_count++] = made;
  return true;
}

std::size_t most_bytes_of_piece() {
  std::size_t most = SIZE_MAX;
  for (unsigned i = 0; i < table_count; ++i)
    most = std::min(most, most_bytes_of_a_piece(tables[i]->queue));
  return most;
}

const char* way_of_pieces() {
  return tables[0]->portal.way_text();
}

unsigned count_differing_pieces() {
  return differing_pieces.load(std::memory_order_relaxed);
}

Submitted submit_piece(const Piece& piece, std::uint64_t tag, Outcome& outcome) {
  UnderWayTable& table = *tables[piece.channel];
  if (table.dead || table.depth == 0) return Submitted::dead;  // (0: this is a fork's child)
  if (piece.length > most_bytes_of_a_piece(table.queue)) {
    outcome = {0, Code::not_supported};
    return Submitted::finished;
  }
  const auto number = static_cast<unsigned>(std::countr_one(table.under_way));
  if (static_cast<unsigned>(std::popcount(table.under_way)) >= table.depth) return Submitted::full;
  Parts& parts = table.parts[number];
  parts.begin(piece, table.queue);
  switch (hand_over(table, parts)) {
    case Taken::full: return Submitted::full;
    case Taken::broken: return Submitted::dead;
    case Taken::yes: break;
  }
  table.tags[number] = tag;
  table.under_way |= std::uint32_t{1} << number;
  return Submitted::accepted;
}

std::size_t poll_pieces(unsigned channel, Finished* finished, std::size_t most) {
  UnderWayTable& table = *tables[channel];
  if (table.draining && !table.drained) {
    // Read before the pieces' records: these are complete once it is. (A queue that does not drain
    // says so by another status, and is waited for.)
    table.drained = __atomic_load_n(&table.drain_end.status, __ATOMIC_ACQUIRE) == DSA_COMP_SUCCESS;
  }
  std::size_t count = 0;
  for (std::uint32_t rest = table.under_way; rest != 0 && count < most; rest &= rest - 1) {
    const auto number = static_cast<unsigned>(std::countr_zero(rest));
    Parts& parts = table.parts[number];
    const std::uint32_t bit = rest & -rest;
    const bool with_device = (table.waiting & bit) == 0;
    if (with_device && !parts.has_ended() && !table.drained) {
      if (parts.in_batch) parts.show_progress();
      continue;
    }
    Outcome outcome;
    if (!proceed(table, number, outcome)) continue;
    table.under_way &= ~bit;
    table.waiting &= ~bit;
    finished[count++] = {table.tags[number], outcome};
  }
  if (table.stopped && table.under_way != 0) begin_to_drain(table);
  return count;
}

bool stop_pieces(unsigned channel) {
  UnderWayTable& table = *tables[channel];
  table.dead = true;
  if (table.under_way == 0) return true;
  table.stopped = true;
  begin_to_drain(table);
  return false;
}

}  // namespace haul::dsa
