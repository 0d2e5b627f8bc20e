// The completion queue: order, capacity, many posters, the armed eventfd.
#include "completion/queue.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <thread>
#include <vector>

namespace haul {
namespace {

class Queue : public testing::Test {
 protected:
  void SetUp() override {
    memory_ = mmap(nullptr, sizeof(CompletionQueue), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory_, MAP_FAILED);
    queue().begin();
  }
  void TearDown() override {
    queue().forget_descriptor();
    munmap(memory_, sizeof(CompletionQueue));
  }
  CompletionQueue& queue() { return *static_cast<CompletionQueue*>(memory_); }
  static Completion numbered(std::uint64_t n) {
    return Completion{Ticket{}, n, 0, Code::ok, nullptr, nullptr};
  }
  static bool readable(int fd) {
    pollfd entry{fd, POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
  }
  void* memory_ = nullptr;
};

TEST_F(Queue, IsEmptyAtFirst) {
  EXPECT_EQ(queue().front(), nullptr);
}

TEST_F(Queue, GivesEntriesInOrderAndWrapsAround) {
  for (std::uint64_t n = 0; n < 5 * CompletionQueue::capacity; ++n) {
    ASSERT_TRUE(queue().reserve());
    queue().post(numbered(n));
    const Completion* front = queue().front();
    ASSERT_NE(front, nullptr);
    ASSERT_EQ(front->user_data, n);
    queue().pop();
    ASSERT_EQ(queue().front(), nullptr);
  }
}

TEST_F(Queue, RefusesBeyondItsCapacityUntilReaped) {
  for (unsigned n = 0; n < CompletionQueue::capacity; ++n) ASSERT_TRUE(queue().reserve());
  EXPECT_FALSE(queue().reserve());
  queue().post(numbered(1));
  EXPECT_FALSE(queue().reserve()) << "posted is not reaped";
  queue().pop();
  EXPECT_TRUE(queue().reserve());
}

TEST_F(Queue, TheEventfdFiresOnceForAnArming) {
  const int fd = queue().descriptor();
  ASSERT_GE(fd, 0);
  EXPECT_EQ(queue().descriptor(), fd);
  EXPECT_FALSE(queue().arm());
  EXPECT_FALSE(readable(fd));
  queue().reserve();
  EXPECT_TRUE(queue().post(numbered(1)));
  queue().signal();
  EXPECT_TRUE(readable(fd));
  EXPECT_TRUE(queue().arm()) << "an entry waits";
  EXPECT_FALSE(readable(fd)) << "arming clears";
  queue().pop();
  queue().reserve();
  EXPECT_FALSE(queue().post(numbered(2))) << "it was not armed";
  queue().pop();
  EXPECT_FALSE(queue().arm());
}

TEST_F(Queue, ManyPostersLoseNothing) {
  constexpr std::uint64_t posters = 4, each = 20000;
  std::atomic<std::uint64_t> allowed{0}, taken{0};
  std::vector<std::thread> threads;
  for (std::uint64_t p = 0; p < posters; ++p) {
    threads.emplace_back([&, p] {
      for (std::uint64_t n = 0; n < each; ++n) {
        // The owner reserves; a poster posts only what was reserved.
        while (allowed.load(std::memory_order_acquire) <= taken.load(std::memory_order_relaxed))
          std::this_thread::yield();
        taken.fetch_add(1, std::memory_order_relaxed);
        queue().post(numbered(p << 32 | n));
      }
    });
  }
  std::vector<std::uint64_t> next(posters, 0);
  for (std::uint64_t got = 0; got < posters * each;) {
    // Some slack for posters that passed the check together.
    while (queue().outstanding() < CompletionQueue::capacity - posters && queue().reserve())
      allowed.fetch_add(1, std::memory_order_release);
    if (const Completion* front = queue().front(); front != nullptr) {
      const std::uint64_t poster = front->user_data >> 32;
      ASSERT_EQ(front->user_data & 0xffffffff, next[poster]++)
          << "one poster's entries keep their order";
      queue().pop();
      ++got;
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace haul
