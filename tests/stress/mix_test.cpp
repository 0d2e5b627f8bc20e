// Eight threads submit everything the library knows, of random sizes, and check every byte; with a
// mover that is awake, one that keeps falling asleep, several, none, and an engine that delays,
// cuts short, fails and dies. Under ThreadSanitizer this is the data-race test.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <thread>
#include <utility>
#include <vector>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

constexpr unsigned submitters = 8;
constexpr std::size_t arena_bytes = 512 * kib;

class Random {
 public:
  explicit Random(std::uint64_t seed) : x_(seed * 0x9E3779B97F4A7C15u | 1) {}
  std::uint64_t operator()() {
    x_ ^= x_ << 13;
    x_ ^= x_ >> 7;
    x_ ^= x_ << 17;
    return x_;
  }
  std::size_t below(std::size_t end) { return static_cast<std::size_t>((*this)() % end); }
  // Mostly small, sometimes large.
  std::size_t size(std::size_t most) { return 1 + below(std::size_t{1} << (4 + below(16))) % most; }

 private:
  std::uint64_t x_;
};

// One request in flight: its own slice of the destination, and what must be there at the end.
struct Flight {
  haul_ticket ticket;
  std::size_t at, length;
  bool fill, complete, notify;
  unsigned char pattern;
};

// Tickets that other threads may wait for, too.
std::atomic<std::uint64_t> shown_where[submitters], shown_tenancy[submitters];

class Submitter {
 public:
  Submitter(unsigned number, unsigned rounds)
      : random_(number + 1), number_(number), rounds_(rounds) {}

  void run() {
    src_.fill(number_);
    for (unsigned round = 0; round < rounds_; ++round) {
      dst_.clear();
      flights_.clear();
      posted_ = reaped_ = 0;
      for (std::size_t at = 0; at + 64 < arena_bytes && flights_.size() < 48;) at = submit(at);
      look_at_strangers();
      collect();
      for (const Flight& flight : flights_) verify(flight);
      if (round % 16 == 7) CHILD_EQUAL(haul_drain(), 0);
      if (round % 32 == 9) sleep_ms(1);
    }
  }

 private:
  std::size_t submit(std::size_t at) {
    Flight flight{};
    flight.at = at;
    flight.length = random_.size(arena_bytes - at);
    flight.fill = random_.below(4) == 0;
    flight.pattern = static_cast<unsigned char>(1 + random_.below(255));
    unsigned char* to = dst_.data() + at;
    const unsigned char* from = src_.data() + at;
    if (random_.below(3) == 0) {
      flight.ticket = flight.fill ? haul_fill(to, flight.pattern, 1, flight.length)
                                  : haul_copy(to, from, flight.length);
    } else {
      submit_in_full(flight, to, from);
    }
    shown_where[number_].store(flight.ticket.where, std::memory_order_relaxed);
    shown_tenancy[number_].store(flight.ticket.tenancy, std::memory_order_relaxed);
    flights_.push_back(flight);
    return at + flight.length;
  }

  void submit_in_full(Flight& flight, unsigned char* to, const unsigned char* from) {
    haul_request request = flight.fill
                               ? haul_request_fill(to, 0x0101u * flight.pattern, 2, flight.length)
                               : haul_request_copy(to, from, flight.length);
    request.dst_affinity = static_cast<std::uint8_t>(random_.below(3));
    request.src_affinity = static_cast<std::uint8_t>(random_.below(3));
    constexpr unsigned choices[] = {0,
                                    HAUL_FENCE,
                                    HAUL_DEDICATED,
                                    HAUL_INLINE,
                                    HAUL_DEDICATED | HAUL_FENCE,
                                    HAUL_COMPLETE,
                                    HAUL_COMPLETE | HAUL_DEDICATED};
    request.flags = choices[random_.below(7)];
    if (random_.below(8) == 0) request.flags |= HAUL_CHECKED;
    flight.complete = (request.flags & HAUL_COMPLETE) != 0;
    request.user_data = flights_.size();
    if (random_.below(4) == 0) {
      flight.notify = true;
      request.notify = &words_[flights_.size()];
      request.notify_value = 1 + random_.below(1000);
      std::atomic_ref<std::uint64_t>(words_[flights_.size()]).store(0, std::memory_order_relaxed);
    }
    std::vector<haul_extent> dst_extents, src_extents;
    if (random_.below(4) == 0) {
      cut(to, flight.length, &dst_extents);
      request.dst_vector = dst_extents.data();
      request.dst_count = static_cast<std::uint32_t>(dst_extents.size());
    }
    if (!flight.fill && random_.below(4) == 0) {
      cut(const_cast<unsigned char*>(from), flight.length, &src_extents);
      request.src_vector = src_extents.data();
      request.src_count = static_cast<std::uint32_t>(src_extents.size());
    }
    CHILD_EQUAL(haul_submit(&request, 1, &flight.ticket), 1);
    if (flight.complete) ++posted_;
  }

  void cut(unsigned char* from, std::size_t length, std::vector<haul_extent>* extents) {
    const std::size_t pieces = 1 + random_.below(30);
    while (extents->size() < pieces && length > 0) {
      const std::size_t bytes = extents->size() + 1 == pieces ? length : random_.below(length + 1);
      extents->push_back(haul_extent{0, 0, from, bytes});
      from += bytes;
      length -= bytes;
    }
    if (length > 0) extents->push_back(haul_extent{0, 0, from, length});
  }

  // Tickets of other threads answer whatever their state; a torn pair of words is garbage, and is
  // answered too.
  void look_at_strangers() {
    const std::size_t other = random_.below(submitters);
    const haul_ticket ticket{shown_where[other].load(std::memory_order_relaxed),
                             shown_tenancy[other].load(std::memory_order_relaxed)};
    std::size_t good;
    haul_progress(ticket, &good);
    haul_test(ticket);
    haul_test_range(ticket, random_.below(1000), random_.below(5000));
    if (random_.below(2) == 0) haul_wait(ticket);
  }

  void collect() {
    haul_completion entries[16];
    for (std::size_t i = 0; i < flights_.size(); ++i) {
      const Flight& flight = flights_[random_.below(2) == 0 ? i : flights_.size() - 1 - i];
      switch (random_.below(5)) {
        case 0:
          while (haul_test(flight.ticket) == 0) sched_yield();
          verify(flight);
          break;
        case 1: {
          const std::size_t from = random_.below(flight.length);
          const std::size_t bytes = 1 + random_.below(flight.length - from);
          while (haul_wait_range_for(flight.ticket, from, bytes, random_.below(50'000)) ==
                 HAUL_ETIMEDOUT) {
          }
          CHILD_EQUAL(haul_wait_range(flight.ticket, from, bytes), 0);
          verify(flight, from, bytes);
          break;
        }
        case 2:
          while (haul_wait_for(flight.ticket, 50'000) == HAUL_ETIMEDOUT) {
          }
          verify(flight);
          break;
        case 3: reap(entries, haul_reap(entries, 16)); break;
        default: CHILD_EQUAL(haul_wait(flight.ticket), 0); verify(flight);
      }
    }
    for (const Flight& flight : flights_) CHILD_EQUAL(haul_wait(flight.ticket), 0);
    while (reaped_ < posted_) reap(entries, haul_reap(entries, 16));
    CHILD_EQUAL(haul_reap(entries, 16), 0);
  }

  void reap(const haul_completion* entries, int count) {
    CHILD_CHECK(count >= 0);
    for (int i = 0; i < count; ++i) {
      CHILD_EQUAL(entries[i].status, 0);
      const Flight& flight = flights_[entries[i].user_data];
      CHILD_CHECK(flight.complete && entries[i].good_bytes == flight.length);
      CHILD_EQUAL(haul_test(entries[i].ticket), 1);
      verify(flight);
    }
    reaped_ += static_cast<unsigned>(count);
  }

  void verify(const Flight& flight) { verify(flight, 0, flight.length); }
  void verify(const Flight& flight, std::size_t from, std::size_t bytes) {
    const unsigned char* to = dst_.data() + flight.at + from;
    if (!flight.fill) {
      CHILD_EQUAL(std::memcmp(to, src_.data() + flight.at + from, bytes), 0);
    } else {
      for (std::size_t i = 0; i < bytes; ++i) CHILD_EQUAL(to[i], flight.pattern);
    }
  }

  Random random_;
  unsigned number_, rounds_;
  Buffer src_{arena_bytes}, dst_{arena_bytes};
  std::vector<Flight> flights_;
  alignas(8) std::uint64_t words_[64] = {};
  unsigned posted_ = 0, reaped_ = 0;
};

// A quarter of a minute of each core for all of them, or the whole.
unsigned rounds() {
  const char* whole = std::getenv("HAUL_TEST_LONG");
  return sanitizer ? 30 : whole != nullptr && std::strcmp(whole, "1") == 0 ? 400 : 40;
}

// Of a schedule of faults a sanitizer, which takes six seconds for each otherwise, runs a third.
unsigned fault_rounds() {
  return sanitizer ? 10 : rounds();
}

int mix(std::initializer_list<std::pair<const char*, const char*>> environment,
        unsigned count = rounds()) {
  return run_child(
      [&] {
        quiet_environment();
        setenv("HAUL_MOVER_LEASE", "off", 1);
        for (const auto& [name, value] : environment) setenv(name, value, 1);
        std::vector<std::thread> threads;
        for (unsigned number = 0; number < submitters; ++number) {
          threads.emplace_back([number, count] { Submitter(number, count).run(); });
        }
        for (std::thread& thread : threads) thread.join();
        CHILD_EQUAL(haul_shutdown(), 0);
        CHILD_EQUAL(state_now().failed, 0);
        return 0;
      },
      60);
}

TEST(Mix, AsPlanned) {
  EXPECT_EQ(mix({}), 0);
}

TEST(Mix, EverythingByTheMover) {
  EXPECT_EQ(mix({{"HAUL_PLAN_MOVER", "thread"}}), 0);
}

TEST(Mix, EverythingByTheCaller) {
  EXPECT_EQ(mix({{"HAUL_PLAN_MOVER", "caller"}}), 0);
}

TEST(Mix, AMoverThatSleepsAtOnce) {
  EXPECT_EQ(mix({{"HAUL_PLAN_MOVER", "thread"}, {"HAUL_MOVER_SPIN_US", "0"}}), 0);
}

TEST(Mix, ThreeMovers) {
  EXPECT_EQ(mix({{"HAUL_PLAN_MOVER", "thread"}, {"HAUL_MOVER_CORES", "3"}}), 0);
}

TEST(Mix, TheSmallestBlock) {
  EXPECT_EQ(mix({{"HAUL_PLAN_MOVER", "thread"}, {"HAUL_COPY_BLOCK_BYTES", "64"}}), 0);
}

TEST(Mix, EverythingByCma) {
  EXPECT_EQ(mix({{"HAUL_PLAN_MOVER", "thread"}, {"HAUL_PLAN_ENGINE", "cma"}}), 0);
}

TEST(Mix, WithCalibrationInTheBackground) {
  EXPECT_EQ(mix({{"HAUL_TUNE_BACKGROUND", "on"}, {"HAUL_MOVER_SPIN_US", "500"}}), 0);
}

// An engine that misbehaves loses no request and no byte: the CPU takes over.
class MixFault : public testing::TestWithParam<const char*> {};

TEST_P(MixFault, LosesNothingThatItsCallersDrive) {
  EXPECT_EQ(mix({{"HAUL_PLAN_MOVER", "caller"},
                 {"HAUL_PLAN_ENGINE", "fault"},
                 {"HAUL_ENGINE_FAULT", GetParam()},
                 {"HAUL_MOVER_PATIENCE_MS", "300"}},
                fault_rounds()),
            0);
}

TEST_P(MixFault, LosesNothing) {
  for (const char* cores : {"1", "2"}) {
    if (sanitizer && cores[0] == '1') continue;  // takes a minute; two meet at one channel
    EXPECT_EQ(mix({{"HAUL_PLAN_MOVER", "thread"},
                   {"HAUL_PLAN_ENGINE", "fault"},
                   {"HAUL_ENGINE_FAULT", GetParam()},
                   {"HAUL_MOVER_PATIENCE_MS", "300"},
                   {"HAUL_MOVER_CORES", cores}},
                  fault_rounds()),
              0)
        << cores << " movers";
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, MixFault,
                         testing::Values("", "delay=20", "delay=30us", "partial=50%", "fail=io",
                                         "partial=37%,fail=fault", "die@1", "die@40",
                                         "delay=9,die@300", "delay=3,stray@30", "excess@20",
                                         "delay=5,stall@50",
                                         "seed=5,delay=50,p_fail=10,p_partial=20",
                                         "seed=9,p_fail=5,p_partial=5,p_die=1"));

}  // namespace
