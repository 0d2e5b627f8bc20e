// What a ticket promises about bytes: fences, ranges, progress, notification words, completions.
// All checked against the bytes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/epoll.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support.hpp"

namespace {

using namespace e2e;

haul_request dedicated(haul_request request, unsigned flags = 0) {
  request.flags = HAUL_DEDICATED | flags;
  return request;
}

void submit_one(const haul_request& request, haul_ticket* ticket) {
  CHILD_EQUAL(haul_submit(&request, 1, ticket), 1);
}

std::uint64_t next_random(std::uint64_t& x) {
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return x;
}

int chains_of_fences() {
  constexpr std::size_t length = 1500 * kib + 77;
  constexpr unsigned links = 12;
  std::vector<Buffer*> chain;
  for (unsigned i = 0; i <= links; ++i) chain.push_back(new Buffer(length));
  for (std::uint64_t round = 1; round <= (sanitizer ? 8 : 40); ++round) {
    chain[0]->fill(round);
    haul_ticket last{};
    for (unsigned i = 0; i < links; ++i) {
      // Some links by the caller: a fence holds for those too.
      haul_request request = haul_request_copy(chain[i + 1]->data(), chain[i]->data(), length);
      request.flags = HAUL_FENCE | (round % 4 == 0 && i % 5 == 4 ? HAUL_INLINE : HAUL_DEDICATED);
      submit_one(request, &last);
    }
    if (round % 3 == 0) {
      while (haul_test(last) == 0) sched_yield();  // nobody helps
    }
    CHILD_EQUAL(haul_wait(last), 0);
    for (unsigned i = 1; i <= links; ++i) {
      CHILD_EQUAL(std::memcmp(chain[i]->data(), chain[0]->data(), length), 0);
    }
  }
  return 0;
}

TEST(Order, FencesChainCopies) {
  EXPECT_EQ(run_child([] {
              always_mover();
              return chains_of_fences();
            }),
            0);
}

// An engine that has many pieces under way at once shows a fence that does not hold at once.
TEST(Order, FencesChainCopiesOfAnAsynchronousEngine) {
  EXPECT_EQ(run_child([] {
              always_mover();
              setenv("HAUL_PLAN_ENGINE", "fault", 1);
              setenv("HAUL_ENGINE_FAULT", "seed=3,delay=60,p_partial=10", 1);
              return chains_of_fences();
            }),
            0);
}

TEST(Order, AWaiterOfAFencedRequestNeedsNoMover) {
  EXPECT_EQ(run_child([] {
              always_mover();
              CHILD_CHECK(wake_and_see());
              const Buffer a(mib), b(mib), c(mib);
              a.fill(1);
              haul_ticket first{}, second{};
              submit_one(dedicated(haul_request_copy(b.data(), a.data(), mib)), &first);
              submit_one(dedicated(haul_request_copy(c.data(), b.data(), mib), HAUL_FENCE),
                         &second);
              CHILD_EQUAL(haul_wait_range(second, mib - 1, 1), 0);
              CHILD_EQUAL(c[mib - 1], a[mib - 1]);
              CHILD_EQUAL(haul_wait(second), 0);
              CHILD_EQUAL(std::memcmp(c.data(), a.data(), mib), 0);
              CHILD_EQUAL(haul_test(first), 1);
              return 0;
            }),
            0);
}

TEST(Order, WaitRangeMeansExactlyThoseBytes) {
  EXPECT_EQ(
      run_child([] {
        always_mover();
        const Buffer src(8 * mib + 333), dst(8 * mib + 333);
        src.fill(1);
        std::uint64_t x = 42;
        for (int round = 0; round < 30; ++round) {
          std::memset(dst.data(), 0, dst.size());
          haul_ticket ticket{};
          submit_one(dedicated(haul_request_copy(dst.data(), src.data(), src.size())), &ticket);
          for (int k = 0; k < 20; ++k) {
            const std::size_t from = next_random(x) % src.size();
            const std::size_t len = 1 + next_random(x) % (k % 2 == 0 ? 5000 : src.size() - from);
            const std::size_t end = from + len < src.size() ? from + len : src.size();
            int result = HAUL_ETIMEDOUT;
            while (k % 3 == 0 && result == HAUL_ETIMEDOUT)
              result = haul_wait_range_for(ticket, from, len, next_random(x) % 20'000);
            CHILD_EQUAL(k % 3 == 0 ? result : haul_wait_range(ticket, from, len), 0);
            CHILD_EQUAL(std::memcmp(dst.data() + from, src.data() + from, end - from), 0);
            CHILD_EQUAL(haul_test_range(ticket, from, len), 1);
          }
          CHILD_EQUAL(haul_wait_range(ticket, SIZE_MAX, 1), 0);
          CHILD_EQUAL(haul_wait_range(ticket, 0, 0), 0);
          CHILD_EQUAL(haul_wait_range_for(ticket, 77, 0, 0), 0);
          CHILD_EQUAL(haul_wait(ticket), 0);
          CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
        }
        return 0;
      }),
      0);
}

// Vectors, fills and overlapping copies report ranges of the request, not of an extent.
TEST(Order, RangesOfVectorsAndOverlaps) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(2 * mib), dst(2 * mib);
              src.fill(2);
              for (int round = 0; round < 20; ++round) {
                dst.clear();
                std::vector<haul_extent> to, from;
                const std::size_t step = 10007;
                for (std::size_t at = 0; at < src.size(); at += step) {
                  const std::size_t bytes = std::min(step, src.size() - at);
                  to.insert(to.begin(), {0, 0, dst.data() + at, bytes});  // backwards
                  from.insert(from.begin(), {0, 0, src.data() + at, bytes});
                }
                haul_request request{};
                request.size = sizeof request;
                request.flags = HAUL_DEDICATED;
                request.dst_vector = to.data();
                request.src_vector = from.data();
                request.dst_count = request.src_count = static_cast<std::uint32_t>(to.size());
                haul_ticket ticket{};
                submit_one(request, &ticket);
                CHILD_EQUAL(haul_wait_range(ticket, 0, to[0].length + 100), 0);
                CHILD_EQUAL(std::memcmp(to[0].address, from[0].address, to[0].length), 0);
                CHILD_EQUAL(std::memcmp(to[1].address, from[1].address, 100), 0);
                CHILD_EQUAL(haul_wait(ticket), 0);
                CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
                const std::size_t shift = 100 + 4096 * static_cast<std::size_t>(round);
                submit_one(dedicated(haul_request_copy(dst.data() + shift, dst.data(), mib)),
                           &ticket);
                CHILD_EQUAL(haul_wait_range(ticket, 77, 5000), 0);
                CHILD_EQUAL(std::memcmp(dst.data() + shift + 77, src.data() + 77, 5000), 0);
                CHILD_EQUAL(haul_wait(ticket), 0);
                CHILD_EQUAL(std::memcmp(dst.data() + shift, src.data(), mib), 0);
              }
              return 0;
            }),
            0);
}

TEST(Order, TestRangeAndProgressAreNeverAheadOfTheBytes) {
  EXPECT_EQ(
      run_child([] {
        always_mover();
        CHILD_CHECK(wake_and_see());
        const Buffer src(16 * mib + 5), dst(16 * mib + 5);
        src.fill(3);
        std::uint64_t x = 7;
        for (int round = 0; round < 12; ++round) {
          std::memset(dst.data(), 0, dst.size());
          haul_ticket ticket{};
          haul_request request =
              round % 3 == 2 ? haul_request_fill(dst.data(), 0x2222222222222222u, 8, dst.size())
                             : haul_request_copy(dst.data(), src.data(), src.size());
          if (round % 3 == 1) request.dst_affinity = request.src_affinity = HAUL_NON_CACHEABLE;
          submit_one(dedicated(request), &ticket);
          const bool fill = round % 3 == 2;
          const auto is_there = [&](std::size_t at) { return dst[at] == (fill ? 0x22 : src[at]); };
          std::size_t last = 0, good = 0;
          int result;
          while ((result = haul_progress(ticket, &good)) == 0) {
            CHILD_CHECK(good >= last && good <= src.size());
            // The newest bytes are the ones a report that ran ahead would lack.
            for (std::size_t at = last; at < good; at += at + 8192 < good ? 509 : 1)
              CHILD_CHECK(is_there(at));
            last = good;
            const std::size_t from = next_random(x) % src.size();
            const std::size_t len =
                std::min<std::size_t>(1 + next_random(x) % 9000, src.size() - from);
            if (haul_test_range(ticket, from, len) == 1) {
              for (std::size_t at = from; at < from + len; ++at) CHILD_CHECK(is_there(at));
            }
          }
          CHILD_EQUAL(result, 1);
          CHILD_CHECK(good >= src.size());
          for (std::size_t at = 0; at < src.size(); at += 97) CHILD_CHECK(is_there(at));
        }
        return 0;
      }),
      0);
}

TEST(Order, TheNotificationWordComesAfterTheData) {
  EXPECT_EQ(run_child([] {
              always_mover();
              CHILD_CHECK(wake_and_see());
              const Buffer src(mib), dst(mib);
              alignas(8) static std::uint64_t word = 0;
              std::atomic_ref<std::uint64_t> seen(word);
              for (std::uint64_t round = 1; round <= 60; ++round) {
                src.fill(round);
                dst.clear();
                haul_request request = dedicated(haul_request_copy(dst.data(), src.data(), mib));
                request.notify = &word;
                request.notify_value = round;
                submit_one(request, nullptr);
                while (seen.load(std::memory_order_acquire) != round) {
                }
                CHILD_EQUAL(std::memcmp(dst.data(), src.data(), mib), 0);
              }
              CHILD_EQUAL(haul_drain(), 0);
              return 0;
            }),
            0);
}

TEST(Order, TicketsAreWaitedForBySeveralThreadsAtOnce) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(4 * mib), dst(4 * mib);
              src.fill(9);
              for (int round = 0; round < 60; ++round) {
                dst.clear();
                haul_ticket ticket{};
                submit_one(dedicated(haul_request_copy(dst.data(), src.data(), src.size())),
                           &ticket);
                std::vector<std::thread> waiters;
                for (int t = 0; t < 6; ++t) {
                  waiters.emplace_back([&, t] {
                    if (t % 3 == 0) CHILD_EQUAL(haul_wait_range(ticket, 0, src.size()), 0);
                    if (t % 3 == 1) {
                      while (haul_wait_for(ticket, 10000) == HAUL_ETIMEDOUT) {
                      }
                    }
                    CHILD_EQUAL(haul_wait(ticket), 0);
                    CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
                  });
                }
                for (std::thread& waiter : waiters) waiter.join();
              }
              return 0;
            }),
            0);
}

TEST(Order, CallbacksRunOnTheReapingThreadAndMaySubmit) {
  EXPECT_EQ(
      run_child([] {
        always_mover();
        struct Context {
          pthread_t owner;
          unsigned calls = 0, left = 500;
          unsigned char src[4096], dst[4096];
        } context{};
        context.owner = pthread_self();
        std::memset(context.src, 0x3c, sizeof context.src);
        static const haul_callback callback = [](const haul_completion* entry, void* argument) {
          auto& self = *static_cast<Context*>(argument);
          CHILD_CHECK(pthread_equal(pthread_self(), self.owner));
          CHILD_EQUAL(entry->status, 0);
          CHILD_EQUAL(haul_test(entry->ticket), 1);
          CHILD_EQUAL(self.dst[4095], 0x3c);
          ++self.calls;
          if (self.left == 0) return;
          --self.left;
          self.dst[4095] = 0;
          haul_request again = haul_request_copy(self.dst, self.src, sizeof self.dst);
          again.flags = HAUL_COMPLETE | HAUL_DEDICATED;
          again.callback = callback;
          again.callback_context = argument;
          submit_one(again, nullptr);
        };
        haul_request request = haul_request_copy(context.dst, context.src, sizeof context.dst);
        request.flags = HAUL_COMPLETE;
        request.callback = callback;
        request.callback_context = &context;
        submit_one(request, nullptr);
        haul_completion entries[4];
        while (context.calls < 501) CHILD_CHECK(haul_reap(entries, 4) >= 0);
        CHILD_EQUAL(haul_reap(entries, 4), 0);
        return 0;
      }),
      0);
}

TEST(Order, AnEventLoopSleepsAndIsWokenForEveryCompletion) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const int fd = haul_reap_eventfd();
              CHILD_CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
              CHILD_EQUAL(haul_reap_eventfd(), fd);
              const int loop = epoll_create1(EPOLL_CLOEXEC);
              epoll_event event{};
              event.events = EPOLLIN;
              CHILD_EQUAL(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event), 0);
              const Buffer src(64 * kib), dst(64 * kib);
              src.fill(4);
              std::uint64_t submitted = 0, reaped = 0;
              haul_completion entries[64];
              while (reaped < 3000) {
                for (std::uint64_t burst = submitted % 7;
                     submitted < 3000 && submitted - reaped < 1 + burst; ++submitted) {
                  haul_request request = dedicated(
                      haul_request_copy(dst.data(), src.data(), src.size()), HAUL_COMPLETE);
                  request.user_data = submitted;
                  submit_one(request, nullptr);
                }
                if (haul_reap_arm() == 0) {
                  // A lost wake-up shows as a time-out.
                  CHILD_EQUAL(epoll_wait(loop, &event, 1, 20000), 1);
                }
                const int count = haul_reap(entries, 64);
                CHILD_CHECK(count >= 0);
                for (int i = 0; i < count; ++i) CHILD_EQUAL(entries[i].status, 0);
                reaped += static_cast<std::uint64_t>(count);
              }
              CHILD_EQUAL(haul_reap_arm(), 0);
              CHILD_EQUAL(epoll_wait(loop, &event, 1, 0), 0);
              return 0;
            }),
            0);
}

}  // namespace
