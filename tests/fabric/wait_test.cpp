// Sleeping until something completes: blocking reads, descriptors to poll, signals, poll and wait
// sets. The other side lives in a thread or process of its own, so that somebody else progresses
// it.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>
#include <tuple>

#include "sides.hpp"
#include "transfer.hpp"

namespace fabric_test {
namespace {

const std::size_t wait_sizes[] = {8, 4 * kib, 100 * kib, 2 * mib};

class Waiting : public testing::TestWithParam<std::tuple<Surrounding, fi_wait_obj>> {};

// Both sides sleep for every message.
void ping_pong(Node& node, fi_addr_t peer, bool starts,
               const std::function<void(Node&, Op&)>& sleep_until) {
  for (int round = 0; round < 10; ++round)
    for (const std::size_t size : wait_sizes) {
      const auto sent = pattern(size, 1);
      std::vector<std::uint8_t> got(size);
      Op receive_op, send_op;
      ASSERT_EQ(receive(node, {.tag = 1}, got.data(), size, receive_op), 0);
      if (starts) {
        ASSERT_EQ(send(node, {.to = peer, .tag = 1}, sent.data(), size, send_op), 0);
        sleep_until(node, send_op);
        sleep_until(node, receive_op);
      } else {
        sleep_until(node, receive_op);
        ASSERT_EQ(send(node, {.to = peer, .tag = 1}, sent.data(), size, send_op), 0);
        sleep_until(node, send_op);
      }
      EXPECT_EQ(difference(got.data(), sent), "");
      if (testing::Test::HasFailure()) return;
    }
}

// Entries that came while another was waited for.
thread_local std::vector<void*> early;

bool taken_early(const Op& op) {
  for (auto at = early.begin(); at != early.end(); ++at)
    if (*at == &op) {
      early.erase(at);
      return true;
    }
  return false;
}

void by_sread(Node& node, Op& op) {
  while (!taken_early(op)) {
    fi_cq_tagged_entry entry{};
    const ssize_t count =
        fi_cq_sread(node.cq.get(), &entry, 1, nullptr, static_cast<int>(patience().count()) * 1000);
    if (count == -FI_EAGAIN) continue;  // the manual allows to wake for nothing
    ASSERT_EQ(count, 1) << fi_strerror(static_cast<int>(-count));
    early.push_back(entry.op_context);
  }
}

void by_poll(Node& node, Op& op) {
  int descriptor = -1;
  ASSERT_EQ(fi_control(&node.cq->fid, FI_GETWAIT, &descriptor), 0);
  ASSERT_GE(descriptor, 0);
  while (!taken_early(op)) {
    fi_cq_tagged_entry entry{};
    const ssize_t count = fi_cq_read(node.cq.get(), &entry, 1);
    if (count == 1) {
      early.push_back(entry.op_context);
      continue;
    }
    ASSERT_EQ(count, -FI_EAGAIN);
    fid* queue = &node.cq->fid;
    const int may_sleep = fi_trywait(node.fabric.get(), &queue, 1);
    if (may_sleep == -FI_EAGAIN) continue;
    ASSERT_EQ(may_sleep, 0);
    pollfd waited{descriptor, POLLIN, 0};
    ASSERT_EQ(poll(&waited, 1, static_cast<int>(patience().count()) * 1000), 1)
        << "nothing woke the descriptor";
  }
}

TEST_P(Waiting, for_every_message) {
  const auto [surrounding, object] = GetParam();
  const Wish wish{.wait = object};
  {
    const Node probe(wish);
    if (!probe.ready()) GTEST_SKIP() << probe.why();
  }
  const auto sleep_until = object == FI_WAIT_FD ? by_poll : by_sread;
  run_sides(
      surrounding, wish,
      [&](Node& node, fi_addr_t peer, Link& link) {
        ping_pong(node, peer, true, sleep_until);
        link.meet();
      },
      [&](Node& node, fi_addr_t peer, Link& link) {
        ping_pong(node, peer, false, sleep_until);
        link.meet();
      });
}

INSTANTIATE_TEST_SUITE_P(
    Wait, Waiting,
    testing::Combine(testing::Values(Surrounding::one_process, Surrounding::two_processes),
                     testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD)),
    [](const testing::TestParamInfo<std::tuple<Surrounding, fi_wait_obj>>& which) {
      return std::string(name_of(std::get<0>(which.param))) +
             (std::get<1>(which.param) == FI_WAIT_FD ? "_fd" : "_sread");
    });

TEST(Wait, a_blocking_read_ends_by_its_timeout) {
  Node node(Wish{.wait = FI_WAIT_UNSPEC});
  if (!node.ready()) GTEST_SKIP() << node.why();
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(node.cq.get(), &entry, 1, nullptr, 20), -FI_EAGAIN);
  EXPECT_EQ(fi_cq_sread(node.cq.get(), &entry, 1, nullptr, 0), -FI_EAGAIN);
  fi_addr_t source = 0;
  EXPECT_EQ(fi_cq_sreadfrom(node.cq.get(), &entry, 1, &source, nullptr, 20), -FI_EAGAIN);
}

TEST(Wait, a_signal_wakes_a_blocking_read) {
  Node node(Wish{.threading = FI_THREAD_SAFE, .wait = FI_WAIT_UNSPEC});
  if (!node.ready()) GTEST_SKIP() << node.why();
  std::atomic<bool> woken{false};
  std::thread sleeper([&] {
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_sread(node.cq.get(), &entry, 1, nullptr, -1), -FI_EAGAIN);
    woken = true;
  });
  // A signal before the sleep may be forgotten: repeat it.
  const auto limit = std::chrono::steady_clock::now() + patience();
  while (!woken && std::chrono::steady_clock::now() < limit) {
    EXPECT_EQ(fi_cq_signal(node.cq.get()), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(woken);
  sleeper.join();
}

TEST(Wait, a_blocking_read_is_refused_without_a_wait_object) {
  Node node(Wish{.wait = FI_WAIT_NONE});
  if (!node.ready()) GTEST_SKIP() << node.why();
  if (!provider_is_haul()) GTEST_SKIP() << "invalid by the manual; haul says -FI_ENOSYS";
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(node.cq.get(), &entry, 1, nullptr, 0), -FI_ENOSYS);
  void* object = nullptr;
  EXPECT_LT(fi_control(&node.cq->fid, FI_GETWAIT, &object), 0);
}

TEST(Wait, a_poll_set_names_the_queue_with_entries) {
  Pair pair(Wish{}, true);
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  fi_poll_attr attr{};
  fid_poll* raw = nullptr;
  const int opened = fi_poll_open(pair.a.domain, &attr, &raw);
  if (opened != 0 && !provider_is_haul()) GTEST_SKIP() << "no poll sets";
  ASSERT_EQ(opened, 0);
  Owned<fid_poll> set{raw};
  pair.a.cq->fid.context = &pair.a;
  pair.b.cq->fid.context = &pair.b;
  ASSERT_EQ(fi_poll_add(raw, &pair.a.cq->fid, 0), 0);
  ASSERT_EQ(fi_poll_add(raw, &pair.b.cq->fid, 0), 0);
  if (provider_is_haul()) {  // others close it, against the manual
    EXPECT_EQ(fi_close(&raw->fid), -FI_EBUSY) << "queues are in it";
  }
  void* contexts[2] = {};
  EXPECT_EQ(fi_poll(raw, contexts, 2), 0);
  char sent = 1, got = 0;
  Op receive_op;
  ASSERT_EQ(receive(pair.b, {.tag = 1}, &got, 1, receive_op), 0);
  ASSERT_EQ(pair.a.post([&] { return fi_tinject(pair.a.ep.get(), &sent, 1, pair.to_b, 1); }), 0);
  int count = 0;
  const auto limit = std::chrono::steady_clock::now() + patience();
  while ((count = fi_poll(raw, contexts, 2)) == 0 && std::chrono::steady_clock::now() < limit) {
  }
  ASSERT_EQ(count, 1);
  EXPECT_EQ(contexts[0], &pair.b);
  EXPECT_EQ(pair.b.await(receive_op).err, 0);
  EXPECT_EQ(fi_poll_del(raw, &pair.a.cq->fid, 0), 0);
  EXPECT_EQ(fi_poll_del(raw, &pair.b.cq->fid, 0), 0);
  EXPECT_EQ(close_now(set), 0);
}

}  // namespace
}  // namespace fabric_test
