// A program whose own fork handlers take a lock under which another thread calls the provider: as
// with malloc, the fork and the call both come to their end, whichever handlers are registered
// first. And one that forks in them.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "transfer.hpp"

namespace fabric_test {
namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum class Registered { none, first, last };
std::atomic<Registered> active{Registered::none};

template <Registered when>
void before() {
  if (active.load() == when) pthread_mutex_lock(&lock);
}
template <Registered when>
void after() {
  if (active.load() == when) pthread_mutex_unlock(&lock);
}
template <Registered when>
void watch_forks() {
  pthread_atfork(before<when>, after<when>, after<when>);
}

// A fork amid another one, as a signal handler may make it.
std::atomic<bool> nests{false};
pid_t inner = -1;  // what it returned
void fork_within() {
  if (nests.exchange(false)) inner = fork();
}

// Before any library's of a program that loads the provider later.
[[gnu::constructor]] void register_first() {
  watch_forks<Registered::first>();
  pthread_atfork(fork_within, nullptr, nullptr);
}

class ForeignLock : public testing::TestWithParam<std::tuple<Registered, fi_progress>> {};

TEST_P(ForeignLock, a_fork_and_a_call_beside_it_both_end) {
  if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
  const auto [registered, progress] = GetParam();
  // A hang ends the program.
  alarm(static_cast<unsigned>(patience().count()));
  Node node(Wish{});
  ASSERT_TRUE(node.ready());
  static const bool once = (watch_forks<Registered::last>(), true);
  ASSERT_TRUE(once);
  const Info hints = hints_of(Wish{});
  hints->domain_attr->data_progress = progress;
  fi_info* found = nullptr;
  ASSERT_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found), 0);
  const Info info{found};
  { const Node warm(Wish{}, *info); }  // the progress thread's handlers come with the first

  active = registered;
  std::atomic<bool> stop{false};
  std::atomic<unsigned> calls{0};
  std::thread caller([&] {
    while (!stop) {
      pthread_mutex_lock(&lock);
      { const Node other(Wish{}, *info); }
      pthread_mutex_unlock(&lock);
      ++calls;
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < 20 || calls == 0; ++round) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    EXPECT_GT(child, 0);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  caller.join();
  active = Registered::none;
  // And what was there works on.
  Pair pair(Wish{});
  ASSERT_TRUE(pair.ready());
  check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 100 * kib);
  alarm(0);
}

INSTANTIATE_TEST_SUITE_P(Orders, ForeignLock,
                         testing::Combine(testing::Values(Registered::first, Registered::last),
                                          testing::Values(FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO)));

// What a child gets is whole or given up: it closes what it has, and opens anew, whatever the
// parent's threads were doing.
TEST(Forking, children_beside_busy_threads_close_and_open) {
  if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
  alarm(2 * static_cast<unsigned>(patience().count()));
  Pair pair(Wish{});
  ASSERT_TRUE(pair.ready());
  check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 100 * kib);
  std::atomic<bool> stop{false};
  std::thread opener([&] {
    while (!stop) {
      const Node other(Wish{});
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(static_cast<unsigned>(patience().count()));
      _exit(fi_close(&pair.a.ep->fid) == 0 && fi_close(&pair.b.ep->fid) == 0 ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  opener.join();
  check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 100 * kib);
  alarm(0);
}

// The target calls nothing: its progress thread does.
void check_automatic_progress(Pair& pair) {
  ASSERT_TRUE(pair.ready());
  pair.a.companions.clear();
  Region region(pair.b, kib, FI_REMOTE_WRITE);
  const auto sent = pattern(kib, 5);
  Op write;
  ASSERT_EQ(pair.a.post([&] {
    return fi_write(pair.a.ep.get(), sent.data(), kib, nullptr, pair.to_b, region.address(),
                    region.key(), &write);
  }),
            0);
  ASSERT_EQ(pair.a.await(write).err, 0);
  EXPECT_EQ(difference(region.data(), sent), "");
}

// The inner child goes on amid the outer fork, and becomes the parent of a child of its own.
TEST(Forking, amid_another_fork_leaves_the_provider_working_in_all_four_processes) {
  if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
  const Wish one_sided{.caps = FI_RMA, .wait = FI_WAIT_UNSPEC};
  Pair inherited(one_sided);
  check_automatic_progress(inherited);
  nests = true;
  const pid_t outer = fork();
  ASSERT_GE(outer, 0);
  const bool is_child = outer == 0 || inner == 0;
  if (is_child) {
    alarm(2 * static_cast<unsigned>(patience().count()));
    Pair own(one_sided);
    check_automatic_progress(own);
  } else {
    check_automatic_progress(inherited);
  }
  for (const pid_t child : {outer, inner}) {
    if (child == 0 || (child == inner && outer == 0)) continue;  // the inner one is a sibling
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  if (is_child) _exit(HasFailure() ? 1 : 0);
}

}  // namespace
}  // namespace fabric_test
