// What a program sees of the node's service: the same calls, carried out by another process.
#include <gtest/gtest.h>
#include <poll.h>

#include <string>
#include <vector>

#include "service_support.hpp"

namespace {

using namespace e2e;

TEST(ServiceCopy, EverySizeArrivesWhole) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              CHILD_CHECK(attach());
              for (const std::size_t bytes : {std::size_t{1}, std::size_t{63}, 4 * kib, 4 * kib + 1,
                                              64 * kib, 300 * kib + 7, 4 * mib, 33 * mib + 5}) {
                const Shared src(bytes + 64), dst(bytes + 64);
                for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, std::size_t{17}}) {
                  src.fill(bytes + shift);
                  dst.clear();
                  const haul_ticket ticket =
                      haul_copy(dst.data() + shift, src.data() + 2 * shift, bytes);
                  while (haul_test(ticket) == 0) sched_yield();  // a test never helps
                  CHILD_EQUAL(haul_test(ticket), 1);
                  CHILD_EQUAL(first_wrong(dst.data() + shift, bytes, bytes + shift, 2 * shift), -1);
                  CHILD_EQUAL(dst.data()[shift + bytes], 0);
                }
              }
              CHILD_CHECK(state_now().service_chunks >= 24);
              CHILD_EQUAL(state_now().moved_chunks, 0);
              return 0;
            }),
            0);
}

TEST(ServiceCopy, FillsVectorsAndAffinities) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              CHILD_CHECK(attach());
              const Shared src(mib), dst(mib);
              src.fill(1);
              for (const unsigned bytes : {1u, 2u, 4u, 8u}) {
                haul_ticket ticket =
                    haul_fill(dst.data() + 3, 0x1122334455667788u, bytes, 500 * kib + 1);
                CHILD_EQUAL(haul_wait(ticket), 0);
                const std::uint64_t pattern = 0x1122334455667788u;
                for (std::size_t at = 0; at < 500 * kib + 1; ++at)
                  CHILD_EQUAL(dst.data()[3 + at],
                              reinterpret_cast<const unsigned char*>(&pattern)[at % bytes]);
              }
              std::vector<haul_extent> to, from;
              for (std::size_t i = 0; i < 100; ++i) {
                to.push_back({0, 0, dst.data() + (99 - i) * 4 * kib, 3000});
              }
              for (std::size_t i = 0; i < 200; ++i)
                from.push_back({0, 0, src.data() + i * 2 * kib, 1500});
              for (const int affinity : {HAUL_CACHEABLE, HAUL_NON_CACHEABLE, HAUL_NEUTRAL}) {
                dst.clear();
                haul_request request{};
                request.size = sizeof request;
                request.flags = HAUL_DEDICATED;
                request.dst_affinity = request.src_affinity = static_cast<std::uint8_t>(affinity);
                request.dst_vector = to.data();
                request.dst_count = 100;
                request.src_vector = from.data();
                request.src_count = 200;
                haul_ticket ticket{};
                CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
                while (haul_test(ticket) == 0) sched_yield();
                CHILD_EQUAL(haul_test(ticket), 1);
                for (std::size_t i = 0; i < 100; ++i) {
                  const unsigned char* row = dst.data() + (99 - i) * 4 * kib;
                  CHILD_EQUAL(first_wrong(row, 1500, 1, 4 * kib * i), -1);
                  CHILD_EQUAL(first_wrong(row + 1500, 1500, 1, 4 * kib * i + 2 * kib), -1);
                }
              }
              CHILD_CHECK(state_now().service_chunks >= 7);
              return 0;
            }),
            0);
}

TEST(ServiceCopy, FencesOrderWhatTheServiceDoes) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              CHILD_CHECK(attach());
              const Shared a(mib), b(mib), c(mib);
              for (unsigned round = 0; round < 50; ++round) {
                a.fill(round);
                c.clear();
                haul_request first = haul_request_copy(b.data(), a.data(), mib);
                haul_request second = haul_request_copy(c.data(), b.data(), mib);
                second.flags = HAUL_FENCE;
                haul_ticket tickets[2];
                CHILD_EQUAL(haul_submit(&first, 1, &tickets[0]), 1);
                CHILD_EQUAL(haul_submit(&second, 1, &tickets[1]), 1);
                if (round % 2 == 0) {
                  while (haul_test(tickets[1]) == 0) sched_yield();
                }
                CHILD_EQUAL(haul_wait(tickets[1]), 0);
                CHILD_EQUAL(first_wrong(c.data(), mib, round), -1);
              }
              return 0;
            }),
            0);
}

TEST(ServiceCopy, NotificationsAndCompletionsArrive) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              CHILD_CHECK(attach());
              const Shared src(mib), dst(mib), word(8);
              auto* notify = reinterpret_cast<std::uint64_t*>(word.data());
              const int fd = haul_reap_eventfd();
              CHILD_CHECK(fd >= 0);
              for (std::uint64_t round = 1; round <= 50; ++round) {
                src.fill(round);
                haul_request request = haul_request_copy(dst.data(), src.data(), mib);
                request.flags = HAUL_COMPLETE | HAUL_DEDICATED;
                request.notify = notify;
                request.notify_value = round;
                request.user_data = 1000 + round;
                const bool armed = round % 2 == 0;
                if (armed) CHILD_EQUAL(haul_reap_arm(), 0);
                CHILD_EQUAL(haul_submit(&request, 1, nullptr), 1);
                if (armed) {
                  pollfd entry{fd, POLLIN, 0};
                  CHILD_EQUAL(poll(&entry, 1, 10000), 1);
                }
                while (__atomic_load_n(notify, __ATOMIC_ACQUIRE) != round) sched_yield();
                CHILD_EQUAL(first_wrong(dst.data(), mib, round), -1);
                haul_completion entry{};
                int reaped = 0;
                while ((reaped = haul_reap(&entry, 1)) == 0) sched_yield();
                CHILD_EQUAL(reaped, 1);
                CHILD_EQUAL(entry.user_data, 1000 + round);
                CHILD_EQUAL(entry.good_bytes, mib);
                CHILD_EQUAL(entry.status, 0);
              }
              CHILD_CHECK(state_now().service_chunks >= 50);
              return 0;
            }),
            0);
}

TEST(ServiceCopy, PrivateMemoryGoesThroughTheKernel) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              setenv("HAUL_MOVER_CORES", "0", 1);
              CHILD_CHECK(attach());
              const Buffer src(4 * mib), dst(4 * mib);
              const Shared mapped(4 * mib);
              for (unsigned round = 0; round < 4; ++round) {
                src.fill(round);
                dst.clear();
                haul_ticket ticket = haul_copy(dst.data(), src.data(), 4 * mib - 3);
                while (haul_test(ticket) == 0) sched_yield();
                CHILD_EQUAL(haul_test(ticket), 1);
                CHILD_EQUAL(first_wrong(dst.data(), 4 * mib - 3, round), -1);
                CHILD_EQUAL(haul_wait(haul_copy(mapped.data(), src.data(), 4 * mib)), 0);
                CHILD_EQUAL(first_wrong(mapped.data(), 4 * mib, round), -1);
                dst.clear();
                CHILD_EQUAL(haul_wait(haul_copy(dst.data(), mapped.data(), 4 * mib)), 0);
                CHILD_EQUAL(first_wrong(dst.data(), 4 * mib, round), -1);
              }
              CHILD_CHECK(state_now().service_chunks >= 4);
              return 0;
            }),
            0);
}

TEST(ServiceCopy, ThePlanNamesIt) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use("auto");
              setenv("HAUL_PLAN_INLINE_BYTES", "64K", 1);
              CHILD_CHECK(attach());
              CHILD_EQUAL(haul_wake(), 0);
              const Shared src(8 * mib), dst(8 * mib);
              haul_request request = haul_request_copy(dst.data(), src.data(), 8 * mib);
              haul_plan plan{};
              plan.size = sizeof plan;
              CHILD_EQUAL(haul_explain(&request, &plan), 0);
              CHILD_EQUAL(std::string(plan.mover).compare("service"), 0);
              CHILD_EQUAL(std::string(plan.engine).compare("cpu"), 0);
              CHILD_EQUAL(std::string(plan.scheme).compare("MCNI"), 0);
              CHILD_CHECK(std::strstr(plan.reasons[0], "service") != nullptr);
              request.flags = HAUL_CHECKED;
              CHILD_EQUAL(haul_explain(&request, &plan), 0);
              CHILD_CHECK(std::string(plan.mover) != "service");
              return 0;
            }),
            0);
}

TEST(ServiceCopy, AutoHandsLargeCopiesOverAndAllArrive) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use("auto");
              setenv("HAUL_PLAN_INLINE_BYTES", "64K", 1);
              CHILD_CHECK(attach());
              const Shared src(8 * mib), dst(8 * mib);
              for (unsigned round = 0; round < 20; ++round) {
                src.fill(round);
                CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), 8 * mib)), 0);
                CHILD_EQUAL(first_wrong(dst.data(), 8 * mib, round), -1);
                sleep_ms(round % 4 == 0 ? 30 : 0);  // it sleeps after 10 ms
              }
              CHILD_CHECK(state_now().service_chunks > 0);
              return 0;
            }),
            0);
}

TEST(ServiceCopy, ManyThreadsOfManyProcesses) {
  Service service;
  ASSERT_TRUE(service.start());
  std::vector<pid_t> clients;
  for (unsigned client = 0; client < 6; ++client) {
    clients.push_back(start_child([&service, client] {
      service.use();
      CHILD_CHECK(attach());
      std::vector<pthread_t> threads(3);
      static unsigned number;
      number = client;
      for (pthread_t& thread : threads) {
        CHILD_EQUAL(pthread_create(
                        &thread, nullptr,
                        [](void*) -> void* {
                          const Shared src(700 * kib), dst(700 * kib);
                          for (unsigned round = 0; round < 60; ++round) {
                            const std::size_t bytes =
                                (round * 7919 + number * 13) % (700 * kib) + 1;
                            src.fill(round + number);
                            haul_ticket ticket = haul_copy(dst.data(), src.data(), bytes);
                            if (round % 3 != 0) {
                              while (haul_test(ticket) == 0) sched_yield();
                            }
                            CHILD_EQUAL(haul_wait(ticket), 0);
                            CHILD_EQUAL(first_wrong(dst.data(), bytes, round + number), -1);
                          }
                          return nullptr;
                        },
                        nullptr),
                    0);
      }
      for (const pthread_t thread : threads) pthread_join(thread, nullptr);
      CHILD_CHECK(state_now().service_chunks > 0);
      return 0;
    }));
  }
  for (const pid_t client : clients) EXPECT_EQ(end_of(client), 0);
}

}  // namespace
