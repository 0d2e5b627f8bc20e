// A hash table with linear probing behind a lock; failures are rare, and none is on the path of a
// submit or a wait that succeeds.
#include "completion/ledger.hpp"

#include <pthread.h>

#include <atomic>

#include "base/os.hpp"

namespace haul {
namespace {

struct Entry {
  std::uint64_t seq = 0;  // 0: free (no tenancy has seq 0)
  std::uint64_t good_bytes = 0;
  std::uint32_t ring = 0;
  std::int32_t code = 0;
  bool observed = false;
};

constexpr std::size_t table_size = std::size_t{ledger_capacity} * 2;

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit Entry* table = nullptr;
constinit std::atomic<std::uint32_t> recorded{0};
constinit std::atomic<std::uint32_t> unobserved{0};
constinit std::atomic<bool> forgot{false};
constinit std::size_t hand = 0;

std::size_t home(std::uint32_t ring, std::uint64_t seq) noexcept {
  return ((seq * 0x9E3779B97F4A7C15u) ^ (std::uint64_t{ring} * 0xC2B2AE3D27D4EB4Fu)) >> 40 &
         (table_size - 1);
}

Entry* find(std::uint32_t ring, std::uint64_t seq) noexcept {
  if (table == nullptr) return nullptr;
  for (std::size_t at = home(ring, seq); table[at].seq != 0; at = (at + 1) & (table_size - 1)) {
    if (table[at].seq == seq && table[at].ring == ring) return &table[at];
  }
  return nullptr;
}

// Removes the entry at `hole` and closes the gap, so that probing needs no tombstones.
void remove(std::size_t hole) noexcept {
  recorded.fetch_sub(1, std::memory_order_relaxed);
  if (!table[hole].observed) unobserved.fetch_sub(1, std::memory_order_relaxed);
  for (std::size_t at = (hole + 1) & (table_size - 1); table[at].seq != 0;
       at = (at + 1) & (table_size - 1)) {
    const std::size_t wanted = home(table[at].ring, table[at].seq);
    if (((at - wanted) & (table_size - 1)) >= ((at - hole) & (table_size - 1))) {
      table[hole] = table[at];
      hole = at;
    }
  }
  table[hole] = Entry{};
}

// Drops one entry: an observed one if the hand meets one within a short walk, else the first it
// meets.
void make_room() noexcept {
  std::size_t victim = table_size;
  for (unsigned step = 0, met = 0; met < 64 && step < table_size;
       ++step, hand = (hand + 1) & (table_size - 1)) {
    if (table[hand].seq == 0) continue;
    ++met;
    if (victim == table_size || table[hand].observed) victim = hand;
    if (table[hand].observed) break;
  }
  if (victim == table_size) return;
  if (!table[victim].observed) forgot.store(true, std::memory_order_relaxed);
  remove(victim);
}

}  // namespace

void ledger_record(std::uint32_t ring, std::uint64_t seq, Code code,
                   std::uint64_t good_bytes) noexcept {
  pthread_mutex_lock(&mutex);
  if (table == nullptr) table = static_cast<Entry*>(os::map_anonymous(table_size * sizeof(Entry)));
  if (table == nullptr) {
    forgot.store(true, std::memory_order_relaxed);
  } else if (Entry* known = find(ring, seq); known != nullptr) {
    if (good_bytes < known->good_bytes) {
      known->good_bytes = good_bytes;
      known->code = static_cast<std::int32_t>(code);
    }
  } else {
    if (recorded.load(std::memory_order_relaxed) >= ledger_capacity) make_room();
    std::size_t at = home(ring, seq);
    while (table[at].seq != 0) at = (at + 1) & (table_size - 1);
    table[at] = Entry{seq, good_bytes, ring, static_cast<std::int32_t>(code), false};
    recorded.fetch_add(1, std::memory_order_relaxed);
    unobserved.fetch_add(1, std::memory_order_relaxed);
  }
  pthread_mutex_unlock(&mutex);
}

bool ledger_find(std::uint32_t ring, std::uint64_t seq, Failure* failure) noexcept {
  pthread_mutex_lock(&mutex);
  const Entry* entry = find(ring, seq);
  if (entry != nullptr) *failure = Failure{static_cast<Code>(entry->code), entry->good_bytes};
  pthread_mutex_unlock(&mutex);
  return entry != nullptr;
}

void ledger_observe(std::uint32_t ring, std::uint64_t seq) noexcept {
  pthread_mutex_lock(&mutex);
  Entry* entry = find(ring, seq);
  if (entry != nullptr && !entry->observed) {
    entry->observed = true;
    unobserved.fetch_sub(1, std::memory_order_relaxed);
  }
  pthread_mutex_unlock(&mutex);
}

bool ledger_empty() noexcept {
  return recorded.load(std::memory_order_relaxed) == 0;
}
bool ledger_forgot() noexcept {
  return forgot.load(std::memory_order_relaxed);
}
std::uint64_t ledger_unobserved() noexcept {
  return unobserved.load(std::memory_order_relaxed);
}

void ledger_lock() noexcept {
  pthread_mutex_lock(&mutex);
}
void ledger_unlock() noexcept {
  pthread_mutex_unlock(&mutex);
}

}  // namespace haul
