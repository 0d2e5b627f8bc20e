// The completion queue: order, capacity, many posters, the armed eventfd.
#include "completion/queue.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

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
  EXPECT_EQ(queue().arm(), CompletionQueue::Armed::armed);
  EXPECT_FALSE(readable(fd));
  queue().reserve();
  EXPECT_TRUE(queue().post(numbered(1)));
  queue().signal();
  EXPECT_TRUE(readable(fd));
  EXPECT_EQ(queue().arm(), CompletionQueue::Armed::entry_waits) << "an entry waits";
  EXPECT_FALSE(readable(fd)) << "arming clears";
  queue().pop();
  queue().reserve();
  EXPECT_FALSE(queue().post(numbered(2))) << "it was not armed";
  queue().pop();
  EXPECT_EQ(queue().arm(), CompletionQueue::Armed::armed);
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

// What a ring at rest gives back reads as zeroes afterwards, but its counts stay
// (request/rest.hpp): the entries of before are none that a poster died over.
TEST_F(Queue, FindsADeadPostersPlaceBehindWhatWasGivenBack) {
  for (std::uint64_t n = 0; n < 3; ++n) {
    ASSERT_TRUE(queue().reserve());
    queue().post(numbered(n));
    queue().pop();
  }
  ASSERT_EQ(madvise(memory_, CompletionQueue::body_bytes, MADV_DONTNEED), 0);
  ASSERT_TRUE(queue().reserve());
  Completion ended = numbered(77);
  ended.ticket = Ticket::pending(5, 6, 300);
  for (int twice = 0; twice < 2; ++twice) {
    queue().post_once(ended);
    const Completion* front = queue().front();
    ASSERT_NE(front, nullptr);
    EXPECT_EQ(front->user_data, 77u);
  }
  queue().pop();
  EXPECT_EQ(queue().front(), nullptr);
}

// The program's file is neither written, nor read, nor closed.
TEST_F(Queue, LeavesAFileAloneThatLiesWhereItsDescriptorWas) {
  const int fd = queue().descriptor();
  ASSERT_GE(fd, 0);
  int pipes[2];
  ASSERT_EQ(pipe2(pipes, O_NONBLOCK), 0);
  ASSERT_EQ(dup2(pipes[0], fd), fd);  // a reader's end: what is read there is gone
  ASSERT_EQ(write(pipes[1], "abcdefgh", 8), 8);
  EXPECT_EQ(queue().arm(), CompletionQueue::Armed::event_lost);
  ASSERT_TRUE(queue().reserve());
  EXPECT_FALSE(queue().post(numbered(1))) << "not armed";
  queue().signal();
  const int other = queue().descriptor();
  ASSERT_GE(other, 0);
  EXPECT_NE(other, fd);
  EXPECT_TRUE(readable(other)) << "a signal may have been lost";
  EXPECT_EQ(queue().arm(), CompletionQueue::Armed::entry_waits);
  queue().forget_descriptor();
  char text[16];
  EXPECT_EQ(read(fd, text, sizeof text), 8);
  EXPECT_EQ(fcntl(other, F_GETFD), -1);
  for (const int end : {fd, pipes[0], pipes[1]}) EXPECT_EQ(close(end), 0);
}

}  // namespace
}  // namespace haul
