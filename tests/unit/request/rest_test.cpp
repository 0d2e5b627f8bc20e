// Rings come to rest when their threads go, and wake for others: which, with what pages, and what
// old tenancies read as meanwhile.
#include "request/rest.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <functional>
#include <thread>
#include <vector>

#include "completion/ledger.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

constexpr std::size_t page_bytes = 4096;

std::size_t resident_pages(const Ring& ring) {
  unsigned char pages[sizeof(Ring) / page_bytes];
  EXPECT_EQ(mincore(const_cast<Ring*>(&ring), sizeof(Ring), pages), 0);
  std::size_t count = 0;
  for (const unsigned char page : pages) count += page & 1;
  return count;
}

std::uint64_t publish_and_end(Ring& ring, Code code = Code::ok) {
  Job job;
  job.chunks = Chunks::single(8, 12);
  EXPECT_TRUE(ring.has_room());
  ring.publish(job, nullptr);
  const Tenancy tenancy = ring.tenancy(job.seq);
  EXPECT_EQ(tenancy.claim(job.chunks), 0);
  if (code != Code::ok) ledger_record(ring.index, job.seq, code, 0);
  tenancy.finish(0, code != Code::ok, job.chunks);
  tenancy.end(code);
  return job.seq;
}

// Threads that hold rings at the same time, each of which has used its own for `requests`;
// `together` runs while they do.
std::vector<Ring*> rings_of_threads(
    unsigned count, unsigned requests, const std::function<void()>& together = [] {}) {
  std::vector<Ring*> rings(count);
  std::atomic<unsigned> there{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      Error error;
      rings[i] = attach_ring(&error);
      ASSERT_NE(rings[i], nullptr) << error.sentence;
      for (unsigned n = 0; n < requests; ++n) publish_and_end(*rings[i]);
      for (++there; !over;) std::this_thread::yield();
    });
  }
  while (there < count) std::this_thread::yield();
  together();
  over = true;
  for (std::thread& thread : threads) thread.join();
  return rings;
}

TEST(Rest, AllButAFewKeepOnePage) {
  const std::vector<Ring*> rings = rings_of_threads(20, 600);
  unsigned with_pages = 0;
  for (const Ring* ring : rings) {
    EXPECT_FALSE(rings_in_use.has(ring->index));
    EXPECT_EQ(ring->next_seq(), ring->finished_below());
    if (resident_pages(*ring) > 1) ++with_pages;
  }
  EXPECT_LE(with_pages, warm_rings);
}

TEST(Rest, OldTenanciesHaveEndedAtRestAndAfterwards) {
  std::vector<Ring*> rings = rings_of_threads(10, 300);
  const auto expect_ended = [&] {
    for (const Ring* ring : rings) {
      for (std::uint64_t seq = Ring::first_seq; seq < Ring::first_seq + 300; ++seq)
        EXPECT_TRUE(ring->ended(seq));
      EXPECT_FALSE(ring->ended(Ring::first_seq + 1'000'000));
    }
  };
  expect_ended();
  rings_of_threads(12, 100);
  expect_ended();
  rings_of_threads(12, 700);
  expect_ended();
}

// A waiter or mover that read the parameters, and then did nothing until the ring was at rest.
TEST(Rest, NobodyClaimsWhatHasEnded) {
  const std::vector<Ring*> rings = rings_of_threads(10, 10);
  for (Ring* ring : rings) {
    for (std::uint64_t seq = Ring::first_seq; seq < Ring::first_seq + 10; ++seq)
      EXPECT_EQ(ring->claim(ring->tenancy(seq), Chunks::single(8, 12)), -1);
  }
  rings_of_threads(10, 10);
  for (Ring* ring : rings) {
    for (std::uint64_t seq = Ring::first_seq; seq < ring->next_seq(); ++seq)
      EXPECT_EQ(ring->claim(ring->tenancy(seq), Chunks::single(8, 12)), -1);
  }
}

TEST(Rest, ARingThatWakesServesItsNewOwner) {
  rings_of_threads(10, 100);
  for (Ring* ring : rings_of_threads(10, 600)) {
    EXPECT_TRUE(ring->quiet());
    EXPECT_EQ(ring->completions.outstanding(), 0u);
  }
}

TEST(Rest, FailuresAreRemembered) {
  Ring* ring = nullptr;
  std::uint64_t bad = 0;
  // While as many others are owned as keep their pages at rest, so that this one does not.
  rings_of_threads(warm_rings + 20, 1, [&] {
    std::thread([&] {
      Error error;
      ring = attach_ring(&error);
      ASSERT_NE(ring, nullptr);
      bad = publish_and_end(*ring, Code::fault);
      publish_and_end(*ring);
    }).join();
  });
  ASSERT_NE(ring, nullptr);
  Failure failure;
  EXPECT_TRUE(ledger_find(ring->index, bad, &failure));
  EXPECT_EQ(failure.code, Code::fault);
  EXPECT_TRUE(ring->ended(bad));
  rings_of_threads(ring->index + 1, 1, [&] {
    ASSERT_TRUE(rings_in_use.has(ring->index)) << "awake";
    EXPECT_EQ(ring->state_word(bad).load(), State::make(bad, Code::fault));
    EXPECT_EQ(State::code(ring->state_word(bad + 1).load()), Code::ok);
  });
}

TEST(Rest, ARingWithARequestUnderWayWaitsForIt) {
  Ring* ring = nullptr;
  Job job;
  job.chunks = Chunks::single(8, 12);
  std::thread([&] {
    Error error;
    ring = attach_ring(&error);
    ASSERT_NE(ring, nullptr);
    ring->publish(job, nullptr);
  }).join();
  EXPECT_TRUE(rings_in_use.has(ring->index)) << "for the mover, which is to do it";
  const Tenancy tenancy = ring->tenancy(job.seq);
  EXPECT_EQ(ring->claim(tenancy, job.chunks), 0);
  tenancy.finish(0, false, job.chunks);
  rest_left_rings();
  EXPECT_TRUE(rings_in_use.has(ring->index)) << "not ended yet";
  tenancy.end(Code::ok);
  rest_left_rings();
  EXPECT_FALSE(rings_in_use.has(ring->index));
}

}  // namespace
}  // namespace haul
