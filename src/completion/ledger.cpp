// A hash table with linear probing behind a lock; failures are rare, and none is on the path of a
// submit or a wait that succeeds.
#include "completion/ledger.hpp"

#include <pthread.h>

#include <atomic>

#include "base/os/os.hpp"
#include "base/sync/quiet_lock.hpp"

namespace haul {
namespace {

struct LedgerEntry {
  std::uint64_t seq = 0;  // 0: free (no tenancy has seq 0)
  std::uint64_t good_bytes = 0;
  std::uint32_t ring = 0;
  std::int32_t code = 0;
  bool observed = false;
};

constexpr std::size_t table_size = std::size_t{ledger_capacity} * 2;

// Held with signals blocked: a handler may need it (haul_test()), or fork.
constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit LedgerEntry* table = nullptr;
constinit std::atomic<std::uint32_t> recorded{0};
constinit std::atomic<std::uint32_t> unobserved{0};
constexpr std::uint32_t ring_limit = 1024;                   // further rings share these entries
constinit std::atomic<std::uint64_t> forgotten[ring_limit];  // by ring: the highest seq forgotten
constinit std::size_t hand = 0;
constinit std::atomic<bool> changing{false};  // a thread is changing the table

// Marks a change, for a fork in the middle of it. An exchange, so that no store of the change
// becomes visible before the mark.
class Change {
 public:
  Change() noexcept { changing.exchange(true, std::memory_order_acq_rel); }
  ~Change() { changing.store(false, std::memory_order_release); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
};

std::size_t home(std::uint32_t ring, std::uint64_t seq) noexcept {
  return ((seq * 0x9E3779B97F4A7C15u) ^ (std::uint64_t{ring} * 0xC2B2AE3D27D4EB4Fu)) >> 40 &
         (table_size - 1);
}

LedgerEntry* find(std::uint32_t ring, std::uint64_t seq) noexcept {
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
  table[hole] = LedgerEntry{};
}

}  // namespace

void ledger_forget(std::uint32_t ring, std::uint64_t seq) noexcept {
  std::atomic<std::uint64_t>& highest = forgotten[ring % ring_limit];
  if (highest.load(std::memory_order_relaxed) < seq) highest.store(seq, std::memory_order_relaxed);
}

namespace {

// Drops one entry: an observed one if the hand meets one within a short walk, else the first one it
// met.
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
  if (!table[victim].observed) ledger_forget(table[victim].ring, table[victim].seq);
  remove(victim);
}

}  // namespace

void ledger_record(std::uint32_t ring, std::uint64_t seq, Code code,
                   std::uint64_t good_bytes) noexcept {
  const QuietLock lock(mutex);
  if (table == nullptr) {
    table = static_cast<LedgerEntry*>(os::map_anonymous(table_size * sizeof(LedgerEntry)));
  }
  if (table == nullptr) {
    ledger_forget(ring, seq);
    return;
  }
  const Change change;
  if (LedgerEntry* known = find(ring, seq); known != nullptr) {
    if (good_bytes < known->good_bytes) {
      known->good_bytes = good_bytes;
      known->code = static_cast<std::int32_t>(code);
    }
    return;
  }
  if (recorded.load(std::memory_order_relaxed) >= ledger_capacity) make_room();
  std::size_t at = home(ring, seq);
  while (table[at].seq != 0) at = (at + 1) & (table_size - 1);
  table[at] = LedgerEntry{seq, good_bytes, ring, static_cast<std::int32_t>(code), false};
  recorded.fetch_add(1, std::memory_order_relaxed);
  unobserved.fetch_add(1, std::memory_order_relaxed);
}

bool ledger_find(std::uint32_t ring, std::uint64_t seq, Failure* failure) noexcept {
  const QuietLock lock(mutex);
  const LedgerEntry* entry = find(ring, seq);
  if (entry == nullptr) return false;
  *failure = Failure{static_cast<Code>(entry->code), entry->good_bytes};
  return true;
}

void ledger_observe(std::uint32_t ring, std::uint64_t seq) noexcept {
  const QuietLock lock(mutex);
  LedgerEntry* entry = find(ring, seq);
  if (entry != nullptr && !entry->observed) {
    entry->observed = true;
    unobserved.fetch_sub(1, std::memory_order_relaxed);
  }
}

bool ledger_empty() noexcept {
  return recorded.load(std::memory_order_relaxed) == 0;
}
bool ledger_forgot(std::uint32_t ring, std::uint64_t seq) noexcept {
  return seq <= forgotten[ring % ring_limit].load(std::memory_order_relaxed);
}
std::uint64_t ledger_unobserved() noexcept {
  return unobserved.load(std::memory_order_relaxed);
}

bool ledger_after_fork_child() noexcept {
  mutex = PTHREAD_MUTEX_INITIALIZER;
  if (!changing.load(std::memory_order_relaxed)) return true;
  remake_ledger();
  return false;
}

void remake_ledger() noexcept {
  changing.store(false, std::memory_order_relaxed);
  mutex = PTHREAD_MUTEX_INITIALIZER;
  table = nullptr;  // the parent's pages are abandoned
  recorded.store(0, std::memory_order_relaxed);
  unobserved.store(0, std::memory_order_relaxed);
  for (std::atomic<std::uint64_t>& seq : forgotten) seq.store(0, std::memory_order_relaxed);
}

}  // namespace haul
