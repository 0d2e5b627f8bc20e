// What the service moves for one client: mapped memory, private memory, fills, vectors, fences.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/machine/clock.hpp"
#include "service/fake.hpp"

namespace haul::service_test {
namespace {

// Each way of mapping: everything cached, next to nothing, nothing.
class Copies : public testing::TestWithParam<std::uint64_t> {
 protected:
  static service::Options options() {
    service::Options options;
    options.map_budget_bytes = GetParam();
    return options;
  }
  Service service_{options()};
};

TEST_P(Copies, MappedMemory) {
  Fake client(service_.path());
  const std::size_t lengths[] = {0, 1, 4095, 4096, 65536, 300'001, 3 * mib + 17};
  for (const std::size_t length : lengths) {
    paint(client.arena() + 5, length, 1);
    std::memset(client.arena() + 8 * mib, 0xEE, length + 64);
    ASSERT_EQ(client.run(Fake::copy_job(client.arena_address(8 * mib + 3), client.arena_address(5),
                                        length)),
              Code::ok);
    EXPECT_TRUE(painted(client.arena() + 8 * mib + 3, length, 1)) << length;
    EXPECT_EQ(client.arena()[8 * mib + 2], 0xEE);
    EXPECT_EQ(client.arena()[8 * mib + 3 + length], 0xEE);
  }
}

TEST_P(Copies, ManyChunksInMappedMemory) {
  Fake client(service_.path());
  const std::size_t length = 7 * mib + 333;
  paint(client.arena(), length, 2);
  Job job = Fake::copy_job(client.arena_address(8 * mib), client.arena_address(), length);
  job.chunks = Chunks::cut(length, 64 * 1024, 16 * 1024, 12);
  ASSERT_GT(job.chunks.count(), 10u);
  ASSERT_EQ(client.run(job), Code::ok);
  EXPECT_TRUE(painted(client.arena() + 8 * mib, length, 2));
  std::vector<wire::ClientStats> clients;
  const wire::Stats stats = service_.stats(&clients);
  ASSERT_EQ(clients.size(), 1u);
  EXPECT_EQ(clients[0].mapped_copy_bytes, length);
  EXPECT_EQ(clients[0].chunks, job.chunks.count());
  EXPECT_EQ(stats.requests, 1u);
  EXPECT_EQ(client.board().chunks.load(), job.chunks.count());
}

TEST_P(Copies, PrivateMemoryThroughTheKernel) {
  Fake client(service_.path());
  if (client.welcome().reaches_memory == 0) GTEST_SKIP() << client.welcome().why;
  std::vector<std::uint8_t> from(2 * mib + 9), to(from.size());
  paint(from.data(), from.size(), 3);
  ASSERT_EQ(client.run(Fake::copy_job(to.data(), from.data(), to.size())), Code::ok);
  EXPECT_EQ(from, to);
  ASSERT_EQ(client.run(Fake::copy_job(client.arena(), from.data(), from.size())), Code::ok);
  EXPECT_TRUE(painted(client.arena(), from.size(), 3));
  std::vector<std::uint8_t> back(from.size());
  ASSERT_EQ(client.run(Fake::copy_job(back.data(), client.arena(), back.size())), Code::ok);
  EXPECT_EQ(from, back);
}

TEST_P(Copies, FillsBothKinds) {
  Fake client(service_.path());
  for (const unsigned width : {1u, 2u, 4u, 8u}) {
    const std::uint64_t pattern =
        0x8877665544332211 & (width == 8 ? ~0ull : (1ull << 8 * width) - 1);
    std::uint64_t wide = 0;
    for (unsigned i = 0; i < 8; i += width) wide |= pattern << 8 * i;
    std::vector<std::uint8_t> own(300'007);
    for (const bool mapped : {true, false}) {
      if (!mapped && client.welcome().reaches_memory == 0) continue;
      std::uint8_t* to = mapped ? client.arena() + 3 : own.data();
      Job job = Fake::copy_job(to, nullptr, own.size());
      job.operation = Operation::fill;
      job.pattern_bytes = static_cast<std::uint8_t>(width);
      job.src_or_pattern = wide;
      ASSERT_EQ(client.run(job), Code::ok);
      for (std::size_t i = 0; i < own.size(); ++i)
        ASSERT_EQ(to[i], static_cast<std::uint8_t>(wide >> 8 * (i % 8))) << width << ' ' << i;
    }
  }
}

TEST_P(Copies, Vectors) {
  Fake client(service_.path());
  const std::int64_t first = client.ring().reserve_segments(3);
  ASSERT_EQ(first, 0);
  Segment* segments = client.ring().segments(0);
  segments[0] = Segment{0, client.arena_address(1 * mib), client.arena_address(4 * mib)};
  segments[1] = Segment{1000, client.arena_address(2 * mib + 1), client.arena_address(5 * mib)};
  segments[2] = Segment{200'000, client.arena_address(3 * mib), client.arena_address(6 * mib + 7)};
  paint(client.arena() + 4 * mib, 3 * mib, 4);
  Job job = Fake::copy_job(std::uint64_t{0}, 0, 250'000);
  job.segment_count = 3;
  ASSERT_EQ(client.run(job), Code::ok);
  EXPECT_EQ(std::memcmp(client.arena() + 1 * mib, client.arena() + 4 * mib, 1000), 0);
  EXPECT_EQ(std::memcmp(client.arena() + 2 * mib + 1, client.arena() + 5 * mib, 199'000), 0);
  EXPECT_EQ(std::memcmp(client.arena() + 3 * mib, client.arena() + 6 * mib + 7, 50'000), 0);
}

TEST_P(Copies, ManyRequestsOverManyTenancies) {
  FakeOptions options;
  options.rings = 3;
  Fake client(service_.path(), options);
  paint(client.arena(), 4096 * 64, 5);
  std::uint64_t last[3] = {};
  for (unsigned i = 0; i < 6000; ++i) {
    last[i % 3] = client.submit(Fake::copy_job(client.arena_address(mib + 4096 * (i % 1024)),
                                               client.arena_address(4096 * (i % 64)), 4096),
                                i % 3);
  }
  for (unsigned i = 0; i < 3; ++i) ASSERT_EQ(client.wait(last[i], i), Code::ok);
  while (!client.ring(0).quiet() || !client.ring(1).quiet() || !client.ring(2).quiet()) {
  }
  for (unsigned i = 0; i < 1024; ++i) {
    ASSERT_EQ(std::memcmp(client.arena() + mib + 4096 * i, client.arena() + 4096 * (i % 64), 4096),
              0);
  }
  EXPECT_EQ(client.board().chunks.load(), 6000u);
}

INSTANTIATE_TEST_SUITE_P(Budgets, Copies,
                         testing::Values(std::uint64_t{1} << 36, std::uint64_t{256} << 10, 0));

TEST(ServiceCopies, AFaultIsAnOutcomeExactToThePage) {
  Service service;
  Fake client(service.path());
  if (client.welcome().reaches_memory == 0) GTEST_SKIP() << client.welcome().why;
  auto* pages = static_cast<std::uint8_t*>(
      mmap(nullptr, 2 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(pages + mib, mib, PROT_NONE);
  Job job = Fake::copy_job(client.arena(), pages, 2 * mib);
  job.checked = true;
  job.chunks = Chunks::cut(2 * mib, 64 * 1024, 64 * 1024, 12);
  const std::uint64_t seq = client.submit(job);
  EXPECT_EQ(client.wait(seq), Code::fault);
  EXPECT_EQ(client.good_bytes(seq), mib);
  munmap(pages, 2 * mib);
}

TEST(ServiceCopies, JobsOfTheProcessItselfArePassedOver) {
  Service service;
  Fake client(service.path());
  Job own = Fake::copy_job(client.arena_address(mib), client.arena_address(), 100);
  own.service = false;
  const std::uint64_t first = client.submit(own);
  client.arena()[0] = 42;
  EXPECT_EQ(client.run(Fake::copy_job(client.arena_address(2 * mib), client.arena_address(), 100)),
            Code::ok);
  EXPECT_FALSE(client.ended(first));
  EXPECT_EQ(client.arena()[mib], 0);
  EXPECT_EQ(client.arena()[2 * mib], 42);
}

TEST(ServiceCopies, AFenceWaitsForTheProcessToo) {
  service::Options options;
  options.spin_ns = 1000;  // so that it opens while the service sleeps
  Service service(options);
  Fake client(service.path());
  Job own = Fake::copy_job(client.arena_address(mib), client.arena_address(), 100);
  own.service = false;
  const std::uint64_t first = client.submit(own);
  Job fenced = Fake::copy_job(client.arena_address(2 * mib), client.arena_address(), 100);
  fenced.fence = true;
  const std::uint64_t second = client.submit(fenced);
  usleep(50'000);
  EXPECT_FALSE(client.ended(second));
  client.ring().tenancy(first).claim(own.chunks);
  client.ring().tenancy(first).finish(0, false, own.chunks);
  client.ring().tenancy(first).end(Code::ok);
  EXPECT_EQ(client.wait(second), Code::ok);
}

TEST(ServiceCopies, NotificationAndQueue) {
  Service service;
  Fake client(service.path());
  auto* word = reinterpret_cast<std::atomic<std::uint64_t>*>(client.arena() + 4096);
  CompletionQueue& queue = client.ring().completions;
  ASSERT_TRUE(queue.reserve());
  EXPECT_EQ(queue.arm(), CompletionQueue::Armed::armed);
  Extras extras;
  extras.notify = word;
  extras.notify_value = 99;
  extras.user_data = 1234;
  extras.post = true;
  const std::uint64_t seq = client.submit(
      Fake::copy_job(client.arena_address(mib), client.arena_address(2 * mib), 5000), 0, &extras);
  ASSERT_EQ(client.wait(seq), Code::ok);
  EXPECT_EQ(word->load(), 99u);
  wire::Reap reap;
  ASSERT_TRUE(client.receive(&reap));
  EXPECT_EQ(reap.ring, 0u);
  const Completion* entry = queue.front();
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->user_data, 1234u);
  EXPECT_EQ(entry->good_bytes, 5000u);
  EXPECT_EQ(entry->ticket.cookie(), 77u);
  EXPECT_EQ(entry->ticket.tenancy, seq);
}

TEST(ServiceCopies, WakesWhoSleepsOnTheState) {
  Service service;
  Fake client(service.path());
  for (unsigned i = 0; i < 200; ++i) {
    const std::uint64_t seq = client.submit(
        Fake::copy_job(client.arena_address(8 * mib), client.arena_address(), 2 * mib));
    const std::uint64_t began = now_ns();
    while (!client.ended(seq) && now_ns() - began < 15'000'000'000)
      client.ring().tenancy(seq).sleep(10'000'000'000);
    ASSERT_LT(now_ns() - began, 9'000'000'000u) << "a wake-up was lost";
  }
}

// Small requests behind a large one of the same ring do not wait for it.
TEST(ServiceCopies, SmallOnesPassALargeOne) {
  Service service;
  FakeOptions options;
  options.arena_bytes = 512 * mib;
  Fake client(service.path(), options);
  std::memset(client.arena(), 7, 256 * mib);
  Job large = Fake::copy_job(client.arena_address(256 * mib), client.arena_address(), 255 * mib);
  large.chunks = Chunks::cut(large.chunks.length, 64 * 1024, 64 * 1024, 12);
  // Twice, so that one is under way for long; the pages are there the second time.
  const std::uint64_t first = client.submit(large);
  unsigned passed = 0;
  for (unsigned i = 0; i < 100; ++i) {
    const std::uint64_t small = client.submit(
        Fake::copy_job(client.arena_address(511 * mib), client.arena_address(64 * i), 4096));
    ASSERT_EQ(client.wait(small), Code::ok);
    if (!client.ended(first)) ++passed;
  }
  EXPECT_GT(passed, 0u);
  EXPECT_EQ(client.wait(first), Code::ok);
  EXPECT_EQ(std::memcmp(client.arena() + 256 * mib, client.arena(), 255 * mib), 0);
}

}  // namespace
}  // namespace haul::service_test
