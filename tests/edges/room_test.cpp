// What haul takes of a process follows what the process does now: after many threads came and went
// memory and descriptors are back.
#include "room_support.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "e2e/service_support.hpp"

namespace {

using namespace edges;

TEST(Room, WhatAThousandThreadsTookIsBack) {
  const int status = run_child(
      [] {
        allow_descriptors(1200);
        always_mover();
        use_a_ring();
        with_threads(
            20, [](unsigned) { use_a_ring(); }, [] {});
        const std::size_t resident = resident_kib();
        const int open = descriptors();
        std::size_t full = 0;
        with_threads(
            sanitizer ? 100 : 1000, [](unsigned) { use_a_ring(); },
            [&] {
              full = resident_kib();
              CHILD_CHECK(descriptors() >= open + (sanitizer ? 100 : 1000));
            });
        CHILD_EQUAL(descriptors(), open);
        CHILD_EQUAL(state_now().threads, 1);
        if (sanitizer) return 0;  // their own memory grows
        CHILD_CHECK(full > resident + 100 * mib / kib);
        // A page for each ring, and what malloc and stacks keep.
        const std::size_t after = resident_kib();
        if (after > resident + 8 * kib)
          std::fprintf(stderr, "resident: %zu, %zu, %zu KiB\n", resident, full, after);
        CHILD_CHECK(after <= resident + 8 * kib);
        return 0;
      },
      120);
  if (status == skip_status) GTEST_SKIP() << "too few descriptors are allowed";
  EXPECT_EQ(status, 0);
}

TEST(Room, TwoThousandThreadsHaveRings) {
  EXPECT_EQ(run_child(
                [] {
                  always_mover();
                  const unsigned count = sanitizer ? 200 : 2000;
                  const Buffer src(8 * kib);
                  src.fill(3);
                  with_threads(
                      count,
                      [&](unsigned) {
                        const Buffer dst(8 * kib);
                        CHILD_EQUAL(haul_wait(copy_by_mover(dst.data(), src.data(), 8 * kib)), 0);
                        CHILD_EQUAL(std::memcmp(dst.data(), src.data(), 8 * kib), 0);
                      },
                      [&] { CHILD_CHECK(state_now().threads >= count); });
                  CHILD_CHECK(state_now().threads <= 1);
                  return 0;
                },
                120),
            0);
}

// A ticket of a thread that is gone says what it said, whoever has its ring since.
TEST(Room, TicketsOutliveTheirThreads) {
  EXPECT_EQ(run_child([] {
              always_mover();
              constexpr unsigned threads = 12, each = 300;
              const Buffer src(64 * kib), dst(64 * kib);
              src.fill(5);
              void* hole = mmap(nullptr, 64 * kib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              CHILD_CHECK(hole != MAP_FAILED);
              static haul_ticket tickets[threads][each];
              haul_ticket bad[threads];
              const auto expect_known = [&] {
                for (unsigned t = 0; t < threads; ++t) {
                  for (const haul_ticket& ticket : tickets[t]) {
                    CHILD_EQUAL(haul_test(ticket), 1);
                    CHILD_EQUAL(haul_wait(ticket), 0);
                    CHILD_EQUAL(haul_wait_range(ticket, 0, 100), 0);
                    CHILD_EQUAL(haul_test_range(ticket, 0, 100), 1);
                    std::size_t good = 0;
                    CHILD_EQUAL(haul_progress(ticket, &good), 1);
                    CHILD_CHECK(good >= 256);
                  }
                  CHILD_EQUAL(haul_test(bad[t]), HAUL_EFAULT);
                  CHILD_EQUAL(haul_wait(bad[t]), HAUL_EFAULT);
                  std::size_t good = 1;
                  CHILD_EQUAL(haul_progress(bad[t], &good), HAUL_EFAULT);
                  CHILD_EQUAL(good, 0);
                  haul_ticket later = bad[t];
                  later.tenancy += 1000000;
                  CHILD_EQUAL(haul_test(later), HAUL_EINVAL);
                }
              };
              with_threads(
                  threads,
                  [&](unsigned t) {
                    for (unsigned i = 0; i < each; ++i) {
                      tickets[t][i] =
                          copy_by_mover(dst.data() + t * kib, src.data() + t * kib, 256);
                      haul_completion entry;
                      CHILD_EQUAL(haul_wait(tickets[t][i]), 0);
                      CHILD_EQUAL(haul_reap(&entry, 1), 1);
                    }
                    haul_request request = haul_request_copy(dst.data() + t * kib, hole, 4 * kib);
                    request.flags = HAUL_DEDICATED | HAUL_CHECKED;
                    CHILD_EQUAL(haul_submit(&request, 1, &bad[t]), 1);
                    CHILD_EQUAL(haul_wait(bad[t]), HAUL_EFAULT);
                  },
                  [&] { expect_known(); });
              expect_known();  // at rest
              with_threads(
                  threads + 3, [](unsigned) { use_a_ring(); }, expect_known);
              expect_known();
              if (thread_sanitizer) return 0;  // no threads in a child of fork
              CHILD_EQUAL(run_child([&] {
                            expect_known();
                            with_threads(
                                threads, [](unsigned) { use_a_ring(); }, expect_known);
                            return 0;
                          }),
                          0);
              return 0;
            }),
            0);
}

// Threads that end with requests under way, and waiters that come from other threads.
TEST(Room, ThreadsEndBeforeTheirRequests) {
  EXPECT_EQ(run_child([] {
              always_mover();
              constexpr unsigned threads = 16;
              const Buffer src(4 * mib), dst(4 * mib);
              for (std::uint64_t round = 0; round < 20; ++round) {
                src.fill(round);
                haul_ticket tickets[threads];
                with_threads(
                    threads,
                    [&](unsigned t) {
                      constexpr std::size_t part = 4 * mib / threads;
                      haul_request request =
                          haul_request_copy(dst.data() + t * part, src.data() + t * part, part);
                      request.flags = HAUL_DEDICATED;
                      CHILD_EQUAL(haul_submit(&request, 1, &tickets[t]), 1);
                    },
                    [] {});
                for (const haul_ticket& ticket : tickets) CHILD_EQUAL(haul_wait(ticket), 0);
                CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
              }
              CHILD_EQUAL(state_now().threads, 0);
              return 0;
            }),
            0);
}

// Several wait for each request of a thread that ends meanwhile, so its ring comes to rest, and
// wakes for the next, under their hands. Whoever comes too late must not copy any more: the
// destination is the program's again.
TEST(Room, WaitersThatComeTooLateCopyNothing) {
  EXPECT_EQ(run_child(
                [] {
                  always_mover();
                  constexpr unsigned lanes = 12, waiters = 3, rounds = sanitizer ? 60 : 400;
                  static std::atomic<unsigned> wrong{0};
                  with_threads(
                      lanes,
                      [](unsigned lane) {
                        constexpr std::size_t bytes = 16 * kib;
                        const Buffer src(bytes), dst(bytes);
                        struct Shared {
                          const Buffer& src;
                          const Buffer& dst;
                          haul_ticket ticket{};
                          std::atomic<bool> there{false};
                        };
                        for (unsigned round = 0; round < rounds; ++round) {
                          Shared shared{src, dst, {}, {}};
                          src.fill(lane * 1000 + round);
                          const auto wait = [](void* argument) -> void* {
                            auto& own = *static_cast<Shared*>(argument);
                            while (!own.there) sched_yield();
                            haul_wait(own.ticket);
                            return nullptr;
                          };
                          const auto submit = [](void* argument) -> void* {
                            auto& own = *static_cast<Shared*>(argument);
                            haul_request request =
                                haul_request_copy(own.dst.data(), own.src.data(), own.src.size());
                            request.flags = HAUL_DEDICATED;
                            CHILD_EQUAL(haul_submit(&request, 1, &own.ticket), 1);
                            own.there = true;
                            return nullptr;
                          };
                          pthread_t threads[waiters + 1];
                          for (unsigned i = 0; i < waiters; ++i)
                            CHILD_EQUAL(pthread_create(&threads[i], nullptr, wait, &shared), 0);
                          CHILD_EQUAL(pthread_create(&threads[waiters], nullptr, submit, &shared),
                                      0);
                          while (!shared.there) sched_yield();
                          CHILD_EQUAL(haul_wait(shared.ticket), 0);
                          if (std::memcmp(dst.data(), src.data(), bytes) != 0) ++wrong;
                          dst.clear();
                          for (const pthread_t thread : threads) pthread_join(thread, nullptr);
                          CHILD_EQUAL(haul_test(shared.ticket), 1);
                          for (std::size_t at = 0; at < bytes; ++at) wrong += dst[at] != 0;
                        }
                      },
                      [] {});
                  CHILD_EQUAL(wrong.load(), 0);
                  return 0;
                },
                120),
            0);
}

// Threads beyond those whose rings have a place in what the service sees.
TEST(Room, MoreThreadsThanTheServiceReaches) {
  if (sanitizer) GTEST_SKIP() << "many threads";
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use("auto");
              CHILD_CHECK(attach());
              const Shared all(1100 * 8 * kib);
              all.fill(6);
              with_threads(
                  1100,
                  [&](unsigned t) {
                    unsigned char* at = all.data() + t * 8 * kib;
                    CHILD_EQUAL(haul_wait(copy_by_mover(at + 4 * kib, at, 4 * kib)), 0);
                    CHILD_EQUAL(std::memcmp(at, at + 4 * kib, 4 * kib), 0);
                  },
                  [] { CHILD_CHECK(state_now().threads >= 1100); });
              CHILD_CHECK(state_now().service_state != 0);
              return 0;
            }),
            0);
  EXPECT_TRUE(service.running());
}

// The service's clients have rings at rest too: in the memory that both map.
TEST(Room, RingsOfTheServiceRest) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              CHILD_CHECK(attach());
              constexpr unsigned threads = 40;
              static haul_ticket tickets[threads];
              const auto work = [](unsigned t) {
                auto* const memory = static_cast<unsigned char*>(haul_alloc(128 * kib));
                CHILD_CHECK(memory != nullptr);
                for (unsigned i = 0; i < 600; ++i) {
                  std::memset(memory, static_cast<int>(t + i), 64 * kib);
                  haul_request request = haul_request_copy(memory + 64 * kib, memory, 64 * kib);
                  request.flags = HAUL_DEDICATED;
                  CHILD_EQUAL(haul_submit(&request, 1, &tickets[t]), 1);
                  CHILD_EQUAL(haul_wait(tickets[t]), 0);
                  CHILD_EQUAL(std::memcmp(memory, memory + 64 * kib, 64 * kib), 0);
                }
                CHILD_EQUAL(haul_free(memory), 0);
              };
              with_threads(threads, work, [] {});
              const std::size_t resident = resident_kib();
              for (int round = 0; round < 3; ++round) {
                for (const haul_ticket& ticket : tickets) CHILD_EQUAL(haul_wait(ticket), 0);
                with_threads(threads, work, [] {});
              }
              CHILD_EQUAL(run_child([] {
                            for (const haul_ticket& ticket : tickets)
                              CHILD_EQUAL(haul_wait(ticket), 0);
                            copy_works(mib, 9);
                            return 0;
                          }),
                          0);
              if (!sanitizer) CHILD_CHECK(resident_kib() <= resident + 4 * kib);
              CHILD_CHECK(state_now().service_state != 0);
              CHILD_CHECK(state_now().service_chunks > 0);
              return 0;
            }),
            0);
  EXPECT_TRUE(service.running());
}

}  // namespace
