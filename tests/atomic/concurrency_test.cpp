// Many at once: CPUs and clients on one word, threads on one connection, connections of one node;
// and the 63 packets that a connection may have under way.
#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "atomic/node.hpp"

namespace atomic_test {
namespace {

class Concurrency : public OnCarrier {};

// `count` fetch&adds of 1; false: one failed.
bool add(haul_atomic_remote* remote, std::uint64_t address, int count,
         std::vector<std::uint64_t>* olds = nullptr) {
  for (int i = 0; i < count; ++i) {
    std::uint64_t old = 0;
    const int result = haul_atomic_fetch_add(remote, address, 1, &old);
    EXPECT_EQ(result, 0) << haul_last_error();
    if (result != 0) return false;
    if (olds != nullptr) olds->push_back(old);
  }
  return true;
}

TEST_P(Concurrency, CpuAtomicsAndRemoteOnesAddUp) {
  constexpr int remote_adds = 1500;
  constexpr std::uint64_t cpu_adds = 20'000;
  std::atomic_ref<std::uint64_t> here(word());
  std::thread by_cpu([&] {
    for (std::uint64_t i = 0; i < cpu_adds; ++i) here.fetch_add(1);
  });
  std::thread by_library([&] {
    for (std::uint64_t i = 0; i < cpu_adds; ++i) {
      haul_atomic_operation one = operation(HAUL_ATOMIC_ADD, at(0), 1);
      ASSERT_EQ(haul_atomic_window_run(window.get(), &one, 1), 0);
    }
  });
  add(remote.get(), at(0), remote_adds);
  by_cpu.join();
  by_library.join();
  EXPECT_EQ(word(), 2 * cpu_adds + remote_adds);
}

TEST_P(Concurrency, GuardedAddsOfCpuAndNetworkAddUp) {
  constexpr int each = 1000;
  std::atomic<std::uint64_t> done{0};
  // A word that others change again and again may refuse a try, unexecuted.
  const auto add_guarded = [&](auto run) {
    for (int i = 0; i < each; ++i) {
      haul_atomic_operation one =
          operation(HAUL_ATOMIC_ADD, at(8), 1, 0, 8, HAUL_ATOMIC_GUARDED, 3);
      const int result = run(&one);
      ASSERT_TRUE(result == 0 || result == HAUL_EAGAIN) << haul_last_error();
      if (result == 0) ++done;
    }
  };
  std::thread by_cpu([&] {
    add_guarded(
        [&](haul_atomic_operation* one) { return haul_atomic_window_run(window.get(), one, 1); });
  });
  add_guarded([&](haul_atomic_operation* one) { return haul_atomic_run(remote.get(), one, 1); });
  by_cpu.join();
  EXPECT_GT(done.load(), std::uint64_t{each});
  EXPECT_EQ(word(8), 3ull << 32 | done.load());
}

TEST_P(Concurrency, ThreadsOfOneConnection) {
  constexpr int threads = 4, each = 600;
  std::vector<std::uint64_t> olds[threads];
  std::vector<std::thread> running;
  for (auto& mine : olds) {
    running.emplace_back([&] { add(remote.get(), at(0), each, &mine); });
  }
  for (std::thread& thread : running) thread.join();
  std::set<std::uint64_t> all;
  for (const auto& mine : olds) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(word(), std::uint64_t{threads} * each);
  EXPECT_EQ(all.size(), std::size_t{threads} * each);
}

TEST_P(Concurrency, ConnectionsOfSeveralNodes) {
  constexpr int each = 400;
  const Node other = place->open_other_client();
  std::vector<Remote> remotes;
  for (int i = 0; i < 2; ++i) {
    remotes.push_back(connect(client, name));
    remotes.push_back(connect(other, name));
  }
  std::vector<std::thread> running;
  for (const Remote& one : remotes) {
    running.emplace_back([&] { add(one.get(), at(0), each); });
  }
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(word(), 4u * each);
  remotes.clear();
  EXPECT_EQ(haul_atomic_fetch_add(remote.get(), at(0), 1, nullptr), 0);
}

TEST_P(Concurrency, SixtyThreePacketsAreUnderWayAndNoMore) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    const haul_atomic_operation one = operation(HAUL_ATOMIC_ADD, at(0), 1);
    std::set<std::uint64_t> tickets;
    for (std::uint64_t i = 0; i < HAUL_ATOMIC_MAX_OUTSTANDING; ++i) {
      std::uint64_t ticket = 0;
      ASSERT_EQ(haul_atomic_submit(remote.get(), &one, 1, i, &ticket), 0);
      EXPECT_TRUE(tickets.insert(ticket).second);
    }
    EXPECT_REFUSED(HAUL_EAGAIN, haul_atomic_submit(remote.get(), &one, 1, 0, nullptr));
    // Half by their tickets, half as they come.
    std::set<std::uint64_t> olds;
    for (int i = 0; i < 31; ++i) {
      haul_atomic_operation done = one;
      const std::uint64_t ticket = *tickets.begin();
      tickets.erase(tickets.begin());
      ASSERT_EQ(haul_atomic_wait(remote.get(), ticket, &done, 1), 0);
      olds.insert(done.old);
      EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_wait(remote.get(), ticket, &done, 1));
    }
    std::set<std::uint64_t> tags;
    while (!tickets.empty()) {
      haul_atomic_completion completions[10];
      const int count = haul_atomic_reap(remote.get(), completions, 10);
      ASSERT_GE(count, 0);
      for (int i = 0; i < count; ++i) {
        EXPECT_EQ(completions[i].status, 0);
        EXPECT_EQ(completions[i].count, 1u);
        EXPECT_EQ(completions[i].statuses[0], 0);
        EXPECT_EQ(tickets.erase(completions[i].ticket), 1u);
        tags.insert(completions[i].tag);
        olds.insert(completions[i].old[0]);
      }
    }
    EXPECT_EQ(tags.size(), 32u);
    EXPECT_EQ(olds.size(), 63u);
    EXPECT_EQ(*olds.begin(), round * 63);
    EXPECT_EQ(word(), (round + 1) * 63);
  }
}

TEST_P(Concurrency, ATicketIsTestedUntilItIsAnswered) {
  const haul_atomic_operation asked[] = {operation(HAUL_ATOMIC_ADD, at(0), 1),
                                         operation(HAUL_ATOMIC_ADD, at(0), 1)};
  for (std::uint64_t i = 0; i < 100; ++i) {
    std::uint64_t ticket = 0;
    ASSERT_EQ(haul_atomic_submit(remote.get(), asked, 2, 0, &ticket), 0);
    haul_atomic_operation done[2] = {};
    int found = 0;
    while ((found = haul_atomic_test(remote.get(), ticket, done, 2)) == 0) continue;
    ASSERT_EQ(found, 1) << haul_last_error();
    EXPECT_EQ(done[1].old, 2 * i + 1);
  }
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_test(remote.get(), 0, nullptr, 0));
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_test(remote.get(), 1'000'000, nullptr, 0));
}

INSTANTIATE_TEST_SUITE_P(, Concurrency, testing::ValuesIn(carriers), name_of_carrier);

}  // namespace
}  // namespace atomic_test
