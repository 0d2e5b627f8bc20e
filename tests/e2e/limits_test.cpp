// What happens when something is full, used up or closed: the documented code, or the caller's own
// copy; never a hang.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support.hpp"

namespace {

using namespace e2e;

// A first request that keeps the ring's later fenced ones waiting: large, so that it takes a while.
struct Plug {
  Buffer src{64 * mib}, dst{64 * mib};
  haul_ticket ticket{};
  Plug() {
    std::memset(src.data(), 1, src.size());
    std::memset(dst.data(), 2, dst.size());
  }
  void insert() {
    haul_request request = haul_request_copy(dst.data(), src.data(), src.size());
    request.flags = HAUL_DEDICATED;
    CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  }
  bool holds() const { return haul_test(ticket) == 0; }
};

haul_request fenced_fill(void* dst, std::uint64_t value, std::size_t bytes, unsigned flags) {
  haul_request request = haul_request_fill(dst, value, 8, bytes);
  request.flags = HAUL_DEDICATED | HAUL_FENCE | flags;
  return request;
}

TEST(Limits, AFullRingIsEagainWithNonblockAndInlineWithout) {
  EXPECT_EQ(run_child([] {
              always_mover();
              Plug plug;
              std::vector<std::uint64_t> words(1000);
              std::vector<haul_ticket> tickets(1000);
              int refused_at = -1;
              for (int attempt = 0; attempt < 20 && refused_at < 0; ++attempt) {
                plug.insert();
                int i = 0;
                for (; i < 1000 && plug.holds(); ++i) {
                  const haul_request request =
                      fenced_fill(&words[static_cast<std::size_t>(i)], 7, 8, HAUL_NONBLOCK);
                  const int taken = haul_submit(&request, 1, &tickets[static_cast<std::size_t>(i)]);
                  if (taken == HAUL_EAGAIN) {
                    if (plug.holds()) refused_at = i;
                    break;
                  }
                  CHILD_EQUAL(taken, 1);
                }
                if (refused_at >= 0) {
                  // Without HAUL_NONBLOCK the caller copies; an unfenced copy need not wait for
                  // anything.
                  const Buffer src(mib), dst(mib);
                  src.fill(4);
                  CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), mib)), 0);
                  CHILD_EQUAL(std::memcmp(dst.data(), src.data(), mib), 0);
                }
                CHILD_EQUAL(haul_drain(), 0);
                for (int k = 0; k < i; ++k) CHILD_EQUAL(words[static_cast<std::size_t>(k)], 7);
                std::fill(words.begin(), words.end(), 0);
                // There is room again.
                const haul_request again = fenced_fill(&words[0], 9, 8, HAUL_NONBLOCK);
                CHILD_EQUAL(haul_submit(&again, 1, &tickets[0]), 1);
                CHILD_EQUAL(haul_wait(tickets[0]), 0);
              }
              CHILD_CHECK(refused_at >= 128);  // a ring is worth having
              return 0;
            }),
            0);
}

TEST(Limits, AFenceBehindAFullRingStillOrders) {
  EXPECT_EQ(run_child([] {
              always_mover();
              Plug plug;
              for (int attempt = 0; attempt < 3; ++attempt) {
                std::memset(plug.dst.data(), 2, plug.dst.size());
                plug.insert();
                std::uint64_t words[600] = {};
                for (std::uint64_t& word : words) {
                  // Each reads the last byte of the plug's destination: 1 only if it came after it.
                  haul_request request =
                      haul_request_copy(&word, plug.dst.data() + plug.dst.size() - 8, 8);
                  request.flags = HAUL_DEDICATED | HAUL_FENCE;
                  CHILD_EQUAL(haul_submit(&request, 1, nullptr), 1);
                }
                CHILD_EQUAL(haul_drain(), 0);
                for (const std::uint64_t word : words) CHILD_CHECK(word == 0x0101010101010101u);
              }
              return 0;
            }),
            0);
}

// A vector of `count` extents a side whose cuts differ: 2 count - 1 segments.
void submit_vector(const Buffer& dst, const Buffer& src, unsigned count, unsigned flags,
                   haul_ticket* ticket, int expected) {
  std::vector<haul_extent> to(count), from(count);
  const std::size_t step = src.size() / count / 64 * 64;
  for (unsigned i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    to[i] = haul_extent{0, 0, dst.data() + i * step, last ? src.size() - i * step : step};
    const std::size_t begin = i == 0 ? 0 : i * step - 32;
    const std::size_t end = last ? src.size() : (i + 1) * step - 32;
    from[i] = haul_extent{0, 0, src.data() + begin, end - begin};
  }
  haul_request request{};
  request.size = sizeof request;
  request.dst_vector = to.data();
  request.src_vector = from.data();
  request.dst_count = request.src_count = count;
  request.flags = HAUL_DEDICATED | flags;
  CHILD_EQUAL(haul_submit(&request, 1, ticket), expected);
}

TEST(Limits, TheLargestVectorGoesToAMoverAgainAndAgain) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(mib), dst(mib);
              src.fill(5);
              for (int round = 0; round < 5; ++round) {
                for (const unsigned count : {3u, 1024u, 700u, 1024u, 17u}) {
                  dst.clear();
                  haul_ticket ticket{};
                  // The ring is idle: there is room, so it may not be refused.
                  submit_vector(dst, src, count, HAUL_NONBLOCK, &ticket, 1);
                  CHILD_EQUAL(haul_wait(ticket), 0);
                  CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
                }
              }
              return 0;
            }),
            0);
}

TEST(Limits, AFullVectorArenaIsEagainOrInline) {
  EXPECT_EQ(run_child([] {
              always_mover();
              Plug plug;
              const Buffer src(256 * kib);
              src.fill(6);
              std::vector<Buffer*> targets;
              for (int i = 0; i < 8; ++i) targets.push_back(new Buffer(src.size()));
              bool refused = false;
              for (int attempt = 0; attempt < 20 && !refused; ++attempt) {
                for (const Buffer* target : targets) target->clear();
                plug.insert();
                std::vector<haul_ticket> tickets(targets.size());
                std::size_t i = 0;
                for (; i < targets.size(); ++i) {
                  haul_request probe{};
                  (void)probe;
                  if (!plug.holds()) break;
                  // 2 x 300 - 1 segments each: the fourth does not fit beside three.
                  std::vector<haul_extent> to(300), from(300);
                  const std::size_t step = 832;
                  for (unsigned k = 0; k < 300; ++k) {
                    to[k] = {0, 0, targets[i]->data() + k * step, step};
                    from[k] = {0, 0, src.data() + (k == 0 ? 0 : k * step - 16),
                               k == 0     ? step - 16
                               : k == 299 ? step + 16
                                          : step};
                  }
                  haul_request request{};
                  request.size = sizeof request;
                  request.dst_vector = to.data();
                  request.src_vector = from.data();
                  request.dst_count = request.src_count = 300;
                  request.flags = HAUL_DEDICATED | HAUL_FENCE | HAUL_NONBLOCK;
                  const int taken = haul_submit(&request, 1, &tickets[i]);
                  if (taken == HAUL_EAGAIN && plug.holds()) {
                    refused = true;
                    request.flags = HAUL_DEDICATED;  // now by the caller
                    CHILD_EQUAL(haul_submit(&request, 1, &tickets[i]), 1);
                    CHILD_EQUAL(haul_wait(tickets[i]), 0);
                    CHILD_EQUAL(std::memcmp(targets[i]->data(), src.data(), 300 * step), 0);
                    break;
                  }
                  CHILD_CHECK(taken == 1 || taken == HAUL_EAGAIN);
                }
                CHILD_EQUAL(haul_drain(), 0);
                for (std::size_t k = 0; k < i; ++k)
                  CHILD_EQUAL(std::memcmp(targets[k]->data(), src.data(), 300 * 832), 0);
              }
              CHILD_CHECK(refused);
              return 0;
            }),
            0);
}

TEST(Limits, AFullCompletionQueueIsEagainUntilReaped) {
  EXPECT_EQ(run_child([] {
              quiet_environment();
              std::uint64_t words[1200] = {};
              int taken = 0;
              for (;; ++taken) {
                haul_request request = haul_request_fill(&words[taken % 1200], 1, 8, 8);
                request.flags = HAUL_COMPLETE;
                request.user_data = static_cast<std::uint64_t>(taken);
                const int result = haul_submit(&request, 1, nullptr);
                if (result == HAUL_EAGAIN) break;
                CHILD_EQUAL(result, 1);
                CHILD_CHECK(taken < 5000);
              }
              CHILD_EQUAL(taken, 1024);
              static haul_completion entries[2000];
              CHILD_EQUAL(haul_reap(entries, 10), 10);
              for (int i = 0; i < 10; ++i) {
                haul_request request = haul_request_fill(&words[0], 1, 8, 8);
                request.flags = HAUL_COMPLETE;
                CHILD_EQUAL(haul_submit(&request, 1, nullptr), 1);
              }
              haul_request request = haul_request_fill(&words[0], 1, 8, 8);
              request.flags = HAUL_COMPLETE;
              CHILD_EQUAL(haul_submit(&request, 1, nullptr), HAUL_EAGAIN);
              CHILD_EQUAL(haul_reap(entries, 2000), 1024);
              for (int i = 0; i < 1014; ++i) CHILD_EQUAL(entries[i].user_data, i + 10);
              CHILD_EQUAL(haul_reap(entries, 2000), 0);
              return 0;
            }),
            0);
}

TEST(Limits, ElevenHundredThreadsHaveRings) {
  EXPECT_EQ(run_child(
                [] {
                  always_mover();
                  constexpr unsigned count = sanitizer ? 40 : 1100;
                  std::atomic<unsigned> ready{0}, done{0}, bad{0};
                  std::vector<pthread_t> threads;
                  struct Shared {
                    std::atomic<unsigned>*ready, *done, *bad;
                  } shared{&ready, &done, &bad};
                  pthread_attr_t attributes;
                  pthread_attr_init(&attributes);
                  pthread_attr_setstacksize(&attributes, 256 * kib);
                  for (unsigned i = 0; i < count; ++i) {
                    pthread_t thread;
                    const int error = pthread_create(
                        &thread, &attributes,
                        [](void* argument) -> void* {
                          const Shared& s = *static_cast<Shared*>(argument);
                          unsigned char from[4096], to[4096];
                          std::memset(from, 0x5a, sizeof from);
                          std::memset(to, 0, sizeof to);
                          // Both roads: haul_copy, and haul_submit with its ticket.
                          haul_request request = haul_request_copy(to, from, sizeof to);
                          haul_ticket ticket{~0u, ~0u};
                          if (haul_submit(&request, 1, &ticket) != 1 || haul_wait(ticket) != 0 ||
                              std::memcmp(to, from, sizeof to) != 0)
                            ++*s.bad;
                          std::memset(to, 0, sizeof to);
                          if (haul_wait(haul_copy(to, from, sizeof to)) != 0 ||
                              std::memcmp(to, from, sizeof to) != 0)
                            ++*s.bad;
                          ++*s.ready;
                          while (s.done->load() == 0) sleep_ms(5);  // all at once hold a ring
                          return nullptr;
                        },
                        &shared);
                    if (error != 0) break;
                    threads.push_back(thread);
                  }
                  while (ready.load() < threads.size()) sleep_ms(2);
                  if (!sanitizer) CHILD_CHECK(threads.size() > 1024);
                  done = 1;
                  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
                  CHILD_EQUAL(bad.load(), 0);
                  copy_works(mib, 1);
                  return 0;
                },
                120),
            0);
}

TEST(Limits, AfterShutdownSubmitsAreRefusedAndTicketsStayReadable) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(8 * mib), dst(8 * mib);
              src.fill(8);
              const haul_ticket ticket = haul_copy(dst.data(), src.data(), src.size());
              CHILD_EQUAL(haul_shutdown(), 0);
              CHILD_EQUAL(haul_test(ticket), 1);  // everything in flight was finished
              CHILD_EQUAL(haul_wait(ticket), 0);
              CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
              unsigned char to[64] = {}, from[64] = {1};
              CHILD_EQUAL(haul_wait(haul_copy(to, from, sizeof to)), HAUL_ECLOSED);
              CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), src.size())), HAUL_ECLOSED);
              CHILD_EQUAL(haul_wait(haul_fill(to, 1, 1, sizeof to)), HAUL_ECLOSED);
              CHILD_EQUAL(to[0], 0);
              const haul_request request = haul_request_copy(to, from, sizeof to);
              CHILD_EQUAL(haul_submit(&request, 1, nullptr), HAUL_ECLOSED);
              CHILD_EQUAL(haul_wake(), HAUL_ECLOSED);
              haul_completion entry;
              CHILD_EQUAL(haul_reap(&entry, 1), 0);
              CHILD_EQUAL(haul_drain(), 0);
              CHILD_EQUAL(state_now().mover_state, 0);
              CHILD_EQUAL(haul_shutdown(), 0);
              return 0;
            }),
            0);
  // A process that never used it may close it too.
  EXPECT_EQ(run_child([] {
              CHILD_EQUAL(haul_shutdown(), 0);
              char to, from = 1;
              CHILD_EQUAL(haul_wait(haul_copy(&to, &from, 1)), HAUL_ECLOSED);
              return 0;
            }),
            0);
}

// Every ticket of a thread that submits while another shuts down ends: done, or refused; a caller
// that only tests sees it.
TEST(Limits, AShutdownUnderLoadLosesNoRequest) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(run_child(
                  [round] {
                    always_mover();
                    CHILD_EQUAL(haul_wake(), 0);
                    std::atomic<unsigned> running{0};
                    std::vector<std::thread> threads;
                    for (unsigned t = 0; t < 3; ++t) {
                      threads.emplace_back([&running, t] {
                        const Buffer src(256 * kib), dst(256 * kib);
                        src.fill(t + 1);
                        for (;;) {
                          dst.clear();
                          ++running;
                          const haul_ticket ticket = haul_copy(dst.data(), src.data(), src.size());
                          int result;
                          while ((result = haul_test(ticket)) == 0) sched_yield();
                          if (result == HAUL_ECLOSED) return;
                          CHILD_EQUAL(result, 1);
                          CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
                        }
                      });
                    }
                    while (running < 50) sched_yield();
                    sleep_ms(static_cast<unsigned>(round) % 5);
                    CHILD_EQUAL(haul_shutdown(), 0);
                    for (std::thread& thread : threads) thread.join();
                    return 0;
                  },
                  30),
              0);
  }
}

TEST(Limits, AllDescriptorsUsedUp) {
  EXPECT_EQ(run_child([] {
              quiet_environment();
              setenv("HAUL_PLAN_MOVER", "thread", 1);
              const rlimit none{3, 3};
              setrlimit(RLIMIT_NOFILE, &none);
              copy_works(4 * mib, 1);
              CHILD_EQUAL(haul_reap_eventfd(), HAUL_ENOMEM);
              haul_space space = 0;
              CHILD_EQUAL(haul_space_open(getppid(), &space), HAUL_ENOMEM);
              copy_works(4 * mib, 2);
              return 0;
            }),
            0);
}

}  // namespace
