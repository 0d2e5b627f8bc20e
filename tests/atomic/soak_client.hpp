// One client of the soak: random batches, up to 63 of them unanswered, and a record of each
// operation with what it found and when. A thread of its own runs it. Some operations of a batch
// are linked to those behind them; some words are used with tokens.
#pragma once

#include <haul/atomic.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/atomic/linearizable.hpp"
#include "tests/atomic/soak_words.hpp"

namespace atomic_test {

// What was answered, of all operations.
struct Tally {
  std::uint64_t executed = 0;
  std::uint64_t skipped = 0;  // behind a broken link
  std::uint64_t stale = 0;    // refused: the token was older than the word's stamp
  std::uint64_t busy = 0;     // not executed: a guarded word was changed by others all the time
  std::uint64_t links_held = 0, links_broken = 0;

  Tally& operator+=(const Tally& other) {
    executed += other.executed;
    skipped += other.skipped;
    stale += other.stale;
    busy += other.busy;
    links_held += other.links_held;
    links_broken += other.links_broken;
    return *this;
  }
};

class Client {
 public:
  struct Options {
    unsigned number = 0, of = 1;
    std::uint64_t seed = 1;
    std::atomic<std::uint64_t>* newest_token = nullptr;  // of all clients
  };
  struct Record {
    unsigned word;
    Done done;
  };

  // `base` is the address of word 0 in the owner.
  Client(haul_atomic_remote* remote, std::uint64_t base, const Words& words,
         const Options& options);

  // Executes that many operations, or some more, and waits for them all. False: failure() says why.
  bool run(std::uint64_t operations);

  const std::vector<Record>& records() const { return records_; }  // of the latest run
  const Tally& tally() const { return tally_; }                    // of all runs
  std::uint64_t packets() const { return packets_; }
  std::uint64_t slowest_ns() const { return slowest_ns_; }
  const std::string& failure() const { return failure_; }

 private:
  struct Flight {
    haul_atomic_operation operations[HAUL_ATOMIC_MAX_BATCH];
    unsigned words[HAUL_ATOMIC_MAX_BATCH];
    unsigned count = 0;
    std::uint64_t ticket = 0, begin_ns = 0;
    std::uint32_t packet = 0;
  };

  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  unsigned choose_word();
  void choose(unsigned word, haul_atomic_operation* operation);
  void choose_any(unsigned word, haul_atomic_operation* operation);
  void choose_guarded(unsigned word, haul_atomic_operation* operation);
  std::uint64_t choose_token();
  void link(unsigned word, haul_atomic_operation* operation);
  void fill(Flight* flight, unsigned count);
  // 1: sent. 0: something must be collected first. Negative: failed.
  int submit(unsigned count);
  bool collect_some();
  void record(const Flight& flight, unsigned index, std::uint64_t old, bool stale,
              std::uint64_t end_ns);
  void completed(unsigned place, const std::uint64_t* old, const std::int32_t* statuses,
                 std::uint64_t end_ns);
  bool fail(const std::string& what, int code);

  haul_atomic_remote* const remote_;
  const std::uint64_t base_;
  const Options options_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> found_;     // by word: what was last left there (without stamps)
  std::vector<std::uint8_t> in_flight_;  // by word whose order is searched for
  std::vector<Record> records_;
  Flight flights_[HAUL_ATOMIC_MAX_OUTSTANDING];
  std::vector<unsigned> free_, used_;  // places of flights_
  std::uint64_t values_ = 0;           // swapped in so far
  std::uint32_t packets_ = 0;
  Tally tally_;
  std::uint64_t slowest_ns_ = 0;
  std::string failure_;
};

}  // namespace atomic_test
