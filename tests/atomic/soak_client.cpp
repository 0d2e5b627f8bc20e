#include "tests/atomic/soak_client.hpp"

#include <algorithm>
#include <chrono>

namespace atomic_test {
namespace {

std::uint64_t clock_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

// The search for an order bears 64 operations at once on one word.
constexpr unsigned most_at_once_on_a_word = 60;
constexpr unsigned packet_bits = 26;

}  // namespace

Client::Client(haul_atomic_remote* remote, std::uint64_t base, const Words& words,
               const Options& options)
    : remote_(remote),
      base_(base),
      options_(options),
      random_(options.seed * 1000 + options.number),
      found_(words.count()),
      in_flight_(words.count()) {
  for (unsigned i = 0; i < HAUL_ATOMIC_MAX_OUTSTANDING; ++i) free_.push_back(i);
}

bool Client::fail(const std::string& what, int code) {
  failure_ = "client " + std::to_string(options_.number) + ": " + what + " (" +
             std::to_string(code) + "): " + haul_last_error();
  return false;
}

unsigned Client::choose_word() {
  const unsigned kind = below(100);
  if (kind < 20) return below(Words::counters);
  if (kind < 35) return Words::counters + below(Words::chains);
  if (kind < 60) {
    const unsigned word = kind < 50 ? Words::first_any + below(Words::shared_any)
                                    : Words::first_guarded + below(Words::guarded);
    if (in_flight_[word] < most_at_once_on_a_word / options_.of) return word;
  }
  unsigned word = 0;
  do {
    word = Words::own_word(options_.number, below(Words::own));
  } while (in_flight_[word] == most_at_once_on_a_word);
  return word;
}

void Client::choose_any(unsigned word, haul_atomic_operation* operation) {
  // Few writes: they find nothing, so they leave the most orders open.
  static constexpr haul_atomic_code codes[] = {
      HAUL_ATOMIC_ADD, HAUL_ATOMIC_ADD, HAUL_ATOMIC_ADD, HAUL_ATOMIC_SWAP, HAUL_ATOMIC_SWAP,
      HAUL_ATOMIC_CAS, HAUL_ATOMIC_CAS, HAUL_ATOMIC_CAS, HAUL_ATOMIC_READ, HAUL_ATOMIC_READ,
      HAUL_ATOMIC_AND, HAUL_ATOMIC_OR,  HAUL_ATOMIC_XOR, HAUL_ATOMIC_XOR,  HAUL_ATOMIC_WRITE};
  operation->code = static_cast<std::uint8_t>(codes[below(std::size(codes))]);
  const bool guarded = Words::use(word) == Use::guarded;
  operation->width = guarded || below(4) != 0 ? 8 : 4;
  unsigned shift = 0;
  if (operation->width == 4 && below(2) == 0) {
    operation->address += 4;
    shift = 32;
  }
  const std::uint64_t mask = operation->width == 4 || guarded ? 0xffffffff : ~std::uint64_t{0};
  operation->operand = random_() & mask;
  // So that words stay full of ones and zeros.
  if (operation->code == HAUL_ATOMIC_AND) operation->operand |= random_() & mask;
  if (operation->code == HAUL_ATOMIC_OR) operation->operand &= random_() & mask;
  if (operation->code == HAUL_ATOMIC_CAS) operation->compare = found_[word] >> shift & mask;
}

// Mostly the newest there is when it is sent; some make a newer one, some are older.
std::uint64_t Client::choose_token() {
  constexpr unsigned newer_of_100 = 3, older_of_100 = 10, oldest = 8, most_skipped = 4;
  std::atomic<std::uint64_t>& newest = *options_.newest_token;
  const unsigned kind = below(100);
  if (kind < newer_of_100) {
    const std::uint64_t more = 1 + below(most_skipped);
    return newest.fetch_add(more, std::memory_order_relaxed) + more;
  }
  const std::uint64_t now = newest.load(std::memory_order_relaxed);
  return kind < newer_of_100 + older_of_100 ? now - 1 - below(oldest) : now;
}

void Client::choose_guarded(unsigned word, haul_atomic_operation* operation) {
  choose_any(word, operation);
  operation->flags = HAUL_ATOMIC_GUARDED;
  operation->token = choose_token();
}

// To those behind it. Mostly it compares with what it will find, if the word is this client's.
void Client::link(unsigned word, haul_atomic_operation* operation) {
  operation->flags |= HAUL_ATOMIC_LINK;
  if (operation->code != HAUL_ATOMIC_CAS) {
    const unsigned shift = (operation->address & 4) != 0 ? 32 : 0;
    operation->compare = operation->code == HAUL_ATOMIC_WRITE ? 0 : found_[word] >> shift;
  }
  if (below(8) == 0) operation->compare ^= 1;
  const bool narrow = operation->width == 4 || (operation->flags & HAUL_ATOMIC_GUARDED) != 0;
  // Its high half does not count.
  if (narrow)
    operation->compare = stamped(static_cast<std::uint32_t>(random_()), operation->compare);
}

void Client::choose(unsigned word, haul_atomic_operation* operation) {
  *operation = haul_atomic_operation{};
  operation->address = base_ + std::uint64_t{word} * 8;
  operation->width = static_cast<std::uint8_t>(Words::width(word));
  switch (Words::use(word)) {
    case Use::counter:
      operation->code = HAUL_ATOMIC_ADD;
      operation->operand = 1;
      return;
    case Use::chain:
      operation->code = HAUL_ATOMIC_SWAP;
      // 28 bits of number: they do not repeat in 4 bytes.
      operation->operand = (options_.number + 1) << 28 | (++values_ & 0xfffffff);
      return;
    case Use::any: choose_any(word, operation); return;
    case Use::guarded: choose_guarded(word, operation); return;
  }
}

void Client::fill(Flight* flight, unsigned count) {
  flight->count = count;
  flight->packet = options_.number << packet_bits | (packets_++ & ((1u << packet_bits) - 1));
  const bool has_links = count > 1 && below(3) == 0;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned word = choose_word();
    flight->words[i] = word;
    choose(word, &flight->operations[i]);
    if (has_links && below(4) == 0) link(word, &flight->operations[i]);
    if (Words::is_searched(word)) ++in_flight_[word];
  }
}

int Client::submit(unsigned count) {
  if (free_.empty()) return 0;
  const unsigned place = free_.back();
  Flight& flight = flights_[place];
  if (flight.count == 0) fill(&flight, count);
  flight.begin_ns = clock_ns();
  const int result =
      haul_atomic_submit(remote_, flight.operations, flight.count, place, &flight.ticket);
  if (result == HAUL_EAGAIN) return 0;  // it stays as it is, and goes later
  if (result < 0) {
    fail("a packet was refused", result);
    return -1;
  }
  free_.pop_back();
  used_.push_back(place);
  return 1;
}

void Client::record(const Flight& flight, unsigned index, std::uint64_t old, bool stale,
                    std::uint64_t end_ns) {
  const haul_atomic_operation& operation = flight.operations[index];
  const unsigned word = flight.words[index];
  Done done;
  done.begin_ns = flight.begin_ns;
  done.end_ns = end_ns;
  done.operand = operation.operand;
  done.compare = operation.compare;
  done.old = stale ? 0 : old;
  done.packet = flight.packet;
  done.index = static_cast<std::uint8_t>(index);
  done.code = operation.code;
  done.width = operation.width;
  done.half = (operation.address & 4) != 0;
  done.guarded = (operation.flags & HAUL_ATOMIC_GUARDED) != 0;
  done.stale = stale;
  done.stamp = static_cast<std::uint32_t>(operation.token);
  records_.push_back({word, done});
  if (stale) return;
  const unsigned shift = done.half != 0 ? 32 : 0;
  const std::uint64_t around =
      done.guarded ? stamped(done.stamp, 0) : found_[word] & ~(mask_of(done) << shift);
  found_[word] = effect_of(done, around | (old & mask_of(done)) << shift).next;
}

void Client::completed(unsigned place, const std::uint64_t* old, const std::int32_t* statuses,
                       std::uint64_t end_ns) {
  Flight& flight = flights_[place];
  bool is_skipped = false;  // a link in front is broken
  for (unsigned i = 0; i < flight.count; ++i) {
    const haul_atomic_operation& operation = flight.operations[i];
    const bool guarded = (operation.flags & HAUL_ATOMIC_GUARDED) != 0;
    if (Words::is_searched(flight.words[i])) --in_flight_[flight.words[i]];
    if (is_skipped) {
      ++tally_.skipped;
      if (statuses[i] == HAUL_EAGAIN) continue;
      fail("an operation behind a broken link was not skipped", statuses[i]);
      return;
    }
    const bool stale = guarded && statuses[i] == HAUL_ESTALE;
    const bool busy = guarded && statuses[i] == HAUL_EAGAIN;
    if (statuses[i] != 0 && !stale && !busy) {
      fail(statuses[i] == HAUL_EAGAIN ? "an operation was skipped behind links that held"
                                      : "an operation failed",
           statuses[i]);
      return;
    }
    ++(stale ? tally_.stale : busy ? tally_.busy : tally_.executed);
    if (!busy) record(flight, i, old[i], stale, end_ns);
    if ((operation.flags & HAUL_ATOMIC_LINK) != 0) {
      const std::uint64_t mask = operation.width == 4 || guarded ? 0xffffffff : ~std::uint64_t{0};
      is_skipped = statuses[i] != 0 || ((old[i] ^ operation.compare) & mask) != 0;
      ++(is_skipped ? tally_.links_broken : tally_.links_held);
    }
  }
  slowest_ns_ = std::max(slowest_ns_, end_ns - flight.begin_ns);
  flight.count = 0;
  used_.erase(std::find(used_.begin(), used_.end(), place));
  // In front: what submit() could not send waits at the back.
  free_.insert(free_.begin(), place);
}

// What has come; if that is nothing, waits for one of them.
bool Client::collect_some() {
  constexpr int capacity = 32;
  haul_atomic_completion completions[capacity];
  const int reaped = haul_atomic_reap(remote_, completions, capacity);
  if (reaped < 0) return fail("collecting failed", reaped);
  const std::uint64_t end_ns = clock_ns();
  for (int i = 0; i < reaped; ++i) {
    if (completions[i].status != 0) return fail("a packet failed", completions[i].status);
    completed(static_cast<unsigned>(completions[i].tag), completions[i].old,
              completions[i].statuses, end_ns);
  }
  if (reaped > 0 || used_.empty()) return failure_.empty();
  const unsigned place = used_[below(static_cast<unsigned>(used_.size()))];
  Flight& flight = flights_[place];
  haul_atomic_operation answers[HAUL_ATOMIC_MAX_BATCH] = {};
  const int result = haul_atomic_wait(remote_, flight.ticket, answers, flight.count);
  if (result < 0) return fail("waiting failed", result);
  std::uint64_t old[HAUL_ATOMIC_MAX_BATCH];
  std::int32_t statuses[HAUL_ATOMIC_MAX_BATCH];
  for (unsigned i = 0; i < flight.count; ++i) {
    old[i] = answers[i].old;
    statuses[i] = answers[i].status;
  }
  completed(place, old, statuses, clock_ns());
  return failure_.empty();
}

bool Client::run(std::uint64_t operations) {
  static constexpr unsigned depths[] = {1, 4, 16, HAUL_ATOMIC_MAX_OUTSTANDING,
                                        HAUL_ATOMIC_MAX_OUTSTANDING};
  static constexpr unsigned sizes[] = {1, 1, 2, 4, 8, 12, 16, 16};
  records_.clear();
  const std::uint64_t until = tally_.executed + operations;
  while (tally_.executed < until) {
    // For a while so many packets at once.
    const unsigned depth = depths[below(std::size(depths))];
    for (unsigned packets = 0; packets < 1000 && tally_.executed < until;) {
      int result = 0;
      if (used_.size() < depth) {
        result = submit(sizes[below(std::size(sizes))]);
        if (result < 0) return false;
        if (result > 0) ++packets;
      }
      if (result == 0 && !collect_some()) return false;
    }
  }
  while (!used_.empty()) {
    if (!collect_some()) return false;
  }
  return true;
}

}  // namespace atomic_test
