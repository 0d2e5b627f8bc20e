// One client of the soak: random batches, up to 63 of them unanswered, and a record of each
// operation with what it found and when. A thread of its own runs it.
#pragma once

#include <haul/atomic.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/atomic/linearizable.hpp"
#include "tests/atomic/soak_words.hpp"

namespace atomic_test {

class Client {
 public:
  struct Options {
    unsigned number = 0, of = 1;
    std::uint64_t seed = 1;
  };
  struct Record {
    unsigned word;
    Done done;
  };

  // `base` is the address of word 0 in the owner.
  Client(haul_remote* remote, std::uint64_t base, const Words& words, const Options& options);

  // Does that many operations, or a few more, and waits for them all. False: failure() says why.
  bool run(std::uint64_t operations);

  const std::vector<Record>& records() const { return records_; }  // of the latest run
  std::uint64_t acknowledged() const { return acknowledged_; }     // operations, of all runs
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
  void fill(Flight* flight, unsigned count);
  // 1: sent. 0: something must be collected first. Negative: failed.
  int submit(unsigned count);
  bool collect_some();
  void completed(unsigned place, const std::uint64_t* old, const std::int32_t* statuses,
                 std::uint64_t end_ns);
  bool fail(const std::string& what, int code);

  haul_remote* const remote_;
  const std::uint64_t base_;
  const Options options_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> found_;     // by word: what was last found there
  std::vector<std::uint8_t> in_flight_;  // by word
  std::vector<Record> records_;
  Flight flights_[HAUL_ATOMIC_MAX_OUTSTANDING];
  std::vector<unsigned> free_, used_;  // places of flights_
  std::uint64_t values_ = 0;           // swapped in so far
  std::uint32_t packets_ = 0;
  std::uint64_t acknowledged_ = 0, slowest_ns_ = 0;
  std::string failure_;
};

}  // namespace atomic_test
