// What must not stand in the way of what: floods, large messages, threads, full queues. And who
// makes progress (FI_PROGRESS_AUTO).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <optional>
#include <thread>

#include "transfer.hpp"

namespace fabric_test {
namespace {

const Wish progress_wish{.caps = FI_MSG | FI_TAGGED | FI_SOURCE};

long resident_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word)
    if (word == "VmRSS:") {
      long kib_count = 0;
      status >> kib_count;
      return kib_count;
    }
  return 0;
}

TEST(Progress, a_large_message_delays_no_small_one_to_another) {
  Pair pair(progress_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
  Node third(progress_wish);
  ASSERT_TRUE(third.ready());
  const fi_addr_t to_third = pair.a.insert(third.name());
  const std::vector<std::uint8_t> large(64 * mib, 3);
  std::vector<std::uint8_t> got(64 * mib);
  Op large_send, large_receive;
  ASSERT_EQ(receive(pair.b, {.tag = 1}, got.data(), got.size(), large_receive), 0);
  ASSERT_EQ(send(pair.a, {.to = pair.to_b, .tag = 1}, large.data(), large.size(), large_send), 0);
  // b takes part no more: only a and the third run, and the small ones get through.
  pair.a.companions = {&third};
  third.companions = {&pair.a};
  for (std::uint64_t i = 0; i < 100; ++i) {
    std::uint64_t word = 0;
    Op send_op, receive_op;
    ASSERT_EQ(receive(third, {.tag = i}, &word, 8, receive_op), 0);
    ASSERT_EQ(send(pair.a, {.to = to_third, .tag = i}, &i, 8, send_op), 0);
    ASSERT_EQ(third.await(receive_op).err, 0);
    ASSERT_EQ(pair.a.await(send_op).err, 0);
    EXPECT_EQ(word, i);
  }
  pair.a.companions = {&pair.b, &third};
  pair.b.companions = {&pair.a, &third};
  EXPECT_EQ(pair.b.await(large_receive).err, 0);
  EXPECT_EQ(pair.a.await(large_send).err, 0);
  EXPECT_EQ(got, large);
}

TEST(Progress, a_small_message_overtakes_nothing_but_waits_for_no_receive) {
  Pair pair(progress_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  // An unexpected large message with another tag: the small one behind it arrives all the same.
  const std::vector<std::uint8_t> large(8 * mib, 3);
  std::vector<std::uint8_t> got(8 * mib);
  Op large_send, large_receive, small_send, small_receive;
  std::uint64_t sent = 6, word = 0;
  ASSERT_EQ(send(pair.a, {.to = pair.to_b, .tag = 1}, large.data(), large.size(), large_send), 0);
  ASSERT_EQ(receive(pair.b, {.tag = 2}, &word, 8, small_receive), 0);
  ASSERT_EQ(send(pair.a, {.to = pair.to_b, .tag = 2}, &sent, 8, small_send), 0);
  EXPECT_EQ(pair.b.await(small_receive).err, 0);
  EXPECT_EQ(word, 6u);
  ASSERT_EQ(receive(pair.b, {.tag = 1}, got.data(), got.size(), large_receive), 0);
  EXPECT_EQ(pair.b.await(large_receive).err, 0);
  EXPECT_EQ(pair.a.await(large_send).err, 0);
  EXPECT_EQ(pair.a.await(small_send).err, 0);
}

// A receiver that looks but never receives: the sender is held back before memory runs out, and
// afterwards everything arrives.
TEST(Progress, a_flood_of_unexpected_messages_is_bounded) {
  Pair pair(progress_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
  constexpr std::size_t size = 2 * kib, most = 400000;  // 800 MB, if it were all kept
  const std::vector<std::uint8_t> sent(size, 9);
  const long before = resident_kib();
  std::deque<Op> ops;
  std::size_t accepted = 0, refused = 0;
  while (accepted < most && refused < 20000) {
    ops.emplace_back();
    const ssize_t status =
        fi_tsend(pair.a.ep.get(), sent.data(), size, nullptr, pair.to_b, accepted, &ops.back());
    pair.a.progress();
    if (status == -FI_EAGAIN) {
      ops.pop_back();
      ++refused;
      continue;
    }
    ASSERT_EQ(status, 0);
    refused = 0;
    ++accepted;
  }
  EXPECT_LT(resident_kib() - before, 256 * 1024) << accepted << " messages were taken";
  std::vector<std::uint8_t> got(size);
  for (std::size_t i = 0; i < accepted; ++i) {
    Op op;
    ASSERT_EQ(receive(pair.b, {.tag = i}, got.data(), size, op), 0);
    const Completion received = pair.b.await(op);
    ASSERT_EQ(received.err, 0);
    ASSERT_EQ(received.len, size);
  }
  for (Op& op : ops) ASSERT_EQ(pair.a.await(op).err, 0);
}

// A receiver that does nothing at all: -FI_EAGAIN sooner or later, and no progress lost after it.
TEST(Progress, a_sleeping_receiver_makes_the_sender_try_again) {
  Pair pair(progress_wish);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
  pair.a.companions.clear();
  std::uint64_t sent = 0;
  while (sent < 1000000) {
    const ssize_t status = fi_tinject(pair.a.ep.get(), &sent, 8, pair.to_b, 1);
    if (status == -FI_EAGAIN) break;
    ASSERT_EQ(status, 0);
    ++sent;
  }
  EXPECT_LT(sent, 1000000u) << "injected messages are kept without end";
  for (std::uint64_t i = 0; i < sent; ++i) {
    std::uint64_t word = 0;
    Op op;
    ASSERT_EQ(receive(pair.b, {.tag = 1}, &word, 8, op), 0);
    ASSERT_EQ(pair.b.await(op).err, 0);
    ASSERT_EQ(word, i);
  }
  check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 100);
}

// FI_THREAD_SAFE: every thread sends, receives and reads the queue of one endpoint.
TEST(Progress, many_threads_share_an_endpoint) {
  Wish safe = progress_wish;
  safe.threading = FI_THREAD_SAFE;
  const Info info = ask(safe);
  if (!info && !provider_is_haul()) GTEST_SKIP() << "not offered";
  Pair pair(safe);
  ASSERT_TRUE(pair.ready());
  constexpr std::uint64_t threads = 4, rounds = 400;
  struct Slot {
    Op op;
    std::atomic<int> done{0};
  };
  std::atomic<bool> failed{false};
  const auto limit = std::chrono::steady_clock::now() + 2 * patience();
  const auto read_one = [&](Node& node) {
    fi_cq_tagged_entry entry{};
    const ssize_t count = fi_cq_read(node.cq.get(), &entry, 1);
    if (count == 1) reinterpret_cast<Slot*>(entry.op_context)->done.store(1);
    if (count < 0 && count != -FI_EAGAIN) failed = true;
    if (std::chrono::steady_clock::now() > limit) failed = true;
    if (count != 1) std::this_thread::yield();
  };
  const auto run = [&](std::uint64_t id) {
    for (std::uint64_t round = 0; round < rounds && !failed; ++round) {
      constexpr std::size_t sizes[] = {8, 100 * kib, 64, 2 * kib, 0};
      const std::size_t size = sizes[(round + id) % std::size(sizes)];
      const auto sent = pattern(size, id * 1000 + round);
      std::vector<std::uint8_t> got(size);
      Slot send_slot, receive_slot;
      const std::uint64_t tag = id << 32 | round;
      const auto post = [&](const auto& call) {
        ssize_t status = 0;
        while ((status = call()) == -FI_EAGAIN && !failed) {
          read_one(pair.a);
          read_one(pair.b);
        }
        if (status != 0) failed = true;
      };
      post([&] {
        return fi_trecv(pair.b.ep.get(), got.data(), size, nullptr, FI_ADDR_UNSPEC, tag, 0,
                        &receive_slot);
      });
      post([&] {
        return fi_tsend(pair.a.ep.get(), sent.data(), size, nullptr, pair.to_b, tag, &send_slot);
      });
      while (!failed && (send_slot.done == 0 || receive_slot.done == 0)) {
        read_one(pair.a);
        read_one(pair.b);
      }
      if (!failed && !difference(got.data(), sent).empty()) {
        ADD_FAILURE() << "thread " << id << ", round " << round;
        failed = true;
      }
    }
  };
  std::vector<std::thread> running;
  for (std::uint64_t id = 0; id < threads; ++id) running.emplace_back(run, id);
  for (std::thread& thread : running) thread.join();
  EXPECT_FALSE(failed);
}

// One-sided operations alone: progress is automatic, so the target (b) calls nothing after its
// set-up.
const Wish one_sided{.caps = FI_RMA | FI_ATOMIC, .wait = FI_WAIT_UNSPEC};

struct Passive {
  Passive() : pair(one_sided) {
    pair.a.companions.clear();
    if (pair.ready()) region.emplace(pair.b, 4 * mib, FI_REMOTE_READ | FI_REMOTE_WRITE);
  }
  Pair pair;
  std::optional<Region> region;
  fid_ep* ep = pair.a.ep.get();
};

TEST(AutomaticProgress, a_target_that_calls_nothing_is_reached) {
  if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
  Passive passive;
  Pair& pair = passive.pair;
  std::optional<Region>& region = passive.region;
  fid_ep* const ep = passive.ep;
  ASSERT_TRUE(pair.ready());
  ASSERT_EQ(pair.b.info->domain_attr->data_progress, FI_PROGRESS_AUTO);
  for (const std::size_t size : {std::size_t{8}, 16 * kib, 200 * kib, 4 * mib}) {
    SCOPED_TRACE(size);
    const auto sent = pattern(size, size);
    std::vector<std::uint8_t> got(size);
    Op write, read;
    ASSERT_EQ(pair.a.post([&] {
      return fi_write(ep, sent.data(), size, nullptr, pair.to_b, region->address(), region->key(),
                      &write);
    }),
              0);
    ASSERT_EQ(pair.a.await(write).err, 0);
    ASSERT_EQ(pair.a.post([&] {
      return fi_read(ep, got.data(), size, nullptr, pair.to_b, region->address(), region->key(),
                     &read);
    }),
              0);
    ASSERT_EQ(pair.a.await(read).err, 0);
    EXPECT_EQ(difference(got.data(), sent), "");
  }
  std::uint64_t one = 1, before = 0, last = 0;
  for (int i = 0; i < 100; ++i) {
    Op add;
    ASSERT_EQ(pair.a.post([&] {
      return fi_fetch_atomic(ep, &one, 1, nullptr, &before, nullptr, pair.to_b, region->address(),
                             region->key(), FI_UINT64, FI_SUM, &add);
    }),
              0);
    ASSERT_EQ(pair.a.await(add).err, 0);
    if (i > 0) {
      ASSERT_EQ(before, last + 1);
    }
    last = before;
  }
}

TEST(AutomaticProgress, an_initiator_that_sleeps_is_woken) {
  if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
  Passive passive;
  Pair& pair = passive.pair;
  std::optional<Region>& region = passive.region;
  fid_ep* const ep = passive.ep;
  ASSERT_TRUE(pair.ready());
  std::vector<std::uint8_t> got(mib);
  for (int i = 0; i < 20; ++i) {
    Op op;
    ASSERT_EQ(pair.a.post([&] {
      return fi_read(ep, got.data(), got.size(), nullptr, pair.to_b, region->address(),
                     region->key(), &op);
    }),
              0);
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(fi_cq_sread(pair.a.cq.get(), &entry, 1, nullptr,
                          static_cast<int>(patience().count()) * 1000),
              1);
    ASSERT_EQ(entry.op_context, &op);
  }
}

TEST(AutomaticProgress, an_idle_process_computes_nothing) {
  if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
  Passive passive;
  Pair& pair = passive.pair;
  std::optional<Region>& region = passive.region;
  fid_ep* const ep = passive.ep;
  ASSERT_TRUE(pair.ready());
  // Peers know each other, and both have polled.
  std::uint64_t word = 1;
  Op op;
  ASSERT_EQ(pair.a.post([&] {
    return fi_write(ep, &word, 8, nullptr, pair.to_b, region->address(), region->key(), &op);
  }),
            0);
  ASSERT_EQ(pair.a.await(op).err, 0);
  const auto used = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto before = used();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LT(used() - before, std::chrono::milliseconds(250)) << "a thread spins";
}

TEST(AutomaticProgress, closing_while_traffic_arrives) {
  if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
  for (int round = 0; round < 10; ++round) {
    Pair pair(one_sided);
    ASSERT_TRUE(pair.ready());
    pair.a.companions.clear();
    auto region = std::make_unique<Region>(pair.b, mib, FI_REMOTE_READ | FI_REMOTE_WRITE);
    const std::uint64_t address = region->address(), key = region->key();
    const std::vector<std::uint8_t> sent(100 * kib, 1);
    std::deque<Op> ops;
    const auto write = [&] {
      ops.emplace_back();
      const std::size_t size = ops.size() % 2 == 0 ? sent.size() : 64;
      const ssize_t status = fi_write(pair.a.ep.get(), sent.data(), size, nullptr, pair.to_b,
                                      address, key, &ops.back());
      if (status != 0) ops.pop_back();
    };
    for (int i = 0; i < 50; ++i) write();
    pair.b.ep.reset();
    for (int i = 0; i < 50; ++i) write();
    region.reset();
    pair.b_owner.reset();
    for (Op& op : ops) ASSERT_NE(pair.a.await(op).err, ETIMEDOUT);
  }
}

// The thread is not in the child, nor is a lock that it held.
TEST(AutomaticProgress, a_forked_child_can_close) {
  if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
  Passive passive;
  Pair& pair = passive.pair;
  std::optional<Region>& region = passive.region;
  fid_ep* const ep = passive.ep;
  ASSERT_TRUE(pair.ready());
  std::uint64_t word = 1;
  for (int round = 0; round < 30; ++round) {
    Op ops[20];
    for (Op& op : ops) {
      ASSERT_EQ(pair.a.post([&] {
        return fi_write(ep, &word, 8, nullptr, pair.to_b, region->address(), region->key(), &op);
      }),
                0);
    }
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(static_cast<unsigned>(patience().count()));
      const bool closed = fi_close(&pair.b.ep->fid) == 0 && fi_close(&pair.b.cq->fid) == 0 &&
                          fi_close(&pair.a.ep->fid) == 0;
      _exit(closed ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
    ASSERT_EQ(WEXITSTATUS(status), 0);
    for (Op& op : ops) ASSERT_EQ(pair.a.await(op).err, 0);
  }
}

}  // namespace
}  // namespace fabric_test
