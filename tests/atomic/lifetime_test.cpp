// What ends, and how the others learn of it: windows destroyed under load, owners that close and
// come back, full tables, wrong names.
#include <atomic>
#include <thread>
#include <vector>

#include "atomic/node.hpp"

namespace atomic_test {
namespace {

class Lifetime : public OnCarrier {};
class TableOfClients : public OnCarrier {};

TEST_P(Lifetime, AWrongNameIsRefused) {
  haul_atomic_remote* none = remote.get();
  haul_atomic_window_name wrong = name;
  wrong.key ^= 1;
  EXPECT_REFUSED(HAUL_EPERM, haul_atomic_connect(client.get(), &wrong, &none));
  EXPECT_EQ(none, nullptr);
  // A fabric knows windows by their keys alone.
  if (!GetParam().is_fabric()) {
    wrong = name;
    wrong.window ^= 1;
    EXPECT_REFUSED(HAUL_EPERM, haul_atomic_connect(client.get(), &wrong, &none));
    wrong.window = 0xffffffff;
    EXPECT_REFUSED(HAUL_EPERM, haul_atomic_connect(client.get(), &wrong, &none));
    EXPECT_EQ(counter_of(server, "refused: window or key"), 3u);
  }
  EXPECT_EQ(haul_atomic_fetch_add(remote.get(), at(0), 1, nullptr), 0);
}

TEST_P(Lifetime, AWindowIsDestroyedUnderLoad) {
  std::atomic<int> done{0};
  std::atomic<int> ended{0};
  std::atomic<bool> gone{false};
  const Node other = place->open_other_client();
  const Remote second = connect(other, name);
  const auto load = [&](haul_atomic_remote* one) {
    int result = 0;
    for (bool last = false; result == 0 && !last; ++done) {
      last = gone.load();
      result = haul_atomic_fetch_add(one, at(0), 1, nullptr);
    }
    // At that very moment the XDP program may find the window, but its memory no more.
    EXPECT_TRUE(result == HAUL_ESTALE || result == HAUL_EFAULT) << haul_last_error();
    ++ended;
    EXPECT_REFUSED(HAUL_ESTALE, haul_atomic_fetch_add(one, at(0), 1, nullptr));
  };
  std::thread first([&] { load(remote.get()); });
  std::thread third([&] { load(second.get()); });
  while (done.load() < 300) std::this_thread::yield();
  EXPECT_EQ(ended.load(), 0);
  window.reset();
  gone = true;
  first.join();
  third.join();
  // The connection goes on: another window gets the number, but not the old one's clients.
  window = make_window(server);
  EXPECT_REFUSED(HAUL_ESTALE, haul_atomic_fetch_add(remote.get(), at(0), 1, nullptr));
  EXPECT_EQ(word(), 0u);
  const haul_atomic_window_name next = name_of(window);
  const Remote fresh = connect(client, next);
  EXPECT_EQ(haul_atomic_fetch_add(fresh.get(), next.address, 1, nullptr), 0);
  EXPECT_EQ(word(), 1u);
}

TEST_P(Lifetime, AnOwnerThatComesBackAtItsPortIsAnother) {
  ASSERT_EQ(haul_atomic_fetch_add(remote.get(), at(0), 1, nullptr), 0);
  haul_atomic_node_options again = default_options();
  again.port = name.port;
  window.reset();
  server.reset();
  server = place->open_server(again);
  ASSERT_TRUE(server);
  window = make_window(server);
  const haul_atomic_window_name next = name_of(window);
  ASSERT_EQ(next.port, name.port);
  for (int i = 0; i < 3; ++i) {
    // Wherever the new window lies.
    for (const std::uint64_t address : {name.address, next.address}) {
      std::uint64_t old = 77;
      const int result = haul_atomic_fetch_add(remote.get(), address, 1, &old);
      EXPECT_TRUE(result == HAUL_EPEER || result == HAUL_EPERM || result == HAUL_ESTALE) << result;
      EXPECT_EQ(old, 77u);
    }
  }
  haul_atomic_remote* none = nullptr;
  EXPECT_REFUSED(HAUL_EPERM, haul_atomic_connect(client.get(), &name, &none));
  // Even who guesses its key has a session of the old one.
  EXPECT_EQ(word(), 0u);
  remote = connect(client, next);
  EXPECT_EQ(haul_atomic_fetch_add(remote.get(), next.address, 1, nullptr), 0);
  EXPECT_EQ(word(), 1u);
}

TEST_P(Lifetime, AnOwnerThatHasGoneTimesOut) {
  haul_atomic_node_options hasty = default_options();
  hasty.timeout_ns = 200'000'000;
  const Node impatient = place->open_other_client(hasty);
  const Remote last = connect(impatient, name);
  window.reset();
  server.reset();
  haul_atomic_operation one = operation(HAUL_ATOMIC_ADD, at(0), 1);
  EXPECT_REFUSED(HAUL_ETIMEDOUT, haul_atomic_run(last.get(), &one, 1));
  EXPECT_EQ(one.status, HAUL_ETIMEDOUT);
  haul_atomic_remote* none = nullptr;
  EXPECT_REFUSED(HAUL_ETIMEDOUT, haul_atomic_connect(impatient.get(), &name, &none));
  const std::uint64_t repeated = counter_of(impatient, "requests repeated");
  EXPECT_EQ(repeated == 0, GetParam().is_fabric());
}

TEST_P(TableOfClients, RefusesWhenFullUntilOneLeaves) {
  window.reset();
  remote.reset();
  server.reset();
  haul_atomic_node_options few = default_options();
  few.sessions = 2;
  server = place->open_server(few);
  window = make_window(server);
  name = name_of(window);
  const Remote first = connect(client, name);
  Remote second = connect(client, name);
  haul_atomic_remote* none = nullptr;
  EXPECT_REFUSED(HAUL_EAGAIN, haul_atomic_connect(client.get(), &name, &none));
  EXPECT_EQ(counter_of(server, "refused: full"), 1u);
  EXPECT_EQ(haul_atomic_fetch_add(first.get(), at(0), 1, nullptr), 0);
  second.reset();
  second = connect(client, name);
  EXPECT_EQ(haul_atomic_fetch_add(second.get(), at(0), 1, nullptr), 0);
  EXPECT_EQ(word(), 2u);
}

TEST_P(Lifetime, ManyConnectionsOneAfterAnother) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Remote one = connect(client, name);
    ASSERT_TRUE(one);
    std::uint64_t old = 0;
    ASSERT_EQ(haul_atomic_fetch_add(one.get(), at(0), 1, &old), 0) << haul_last_error();
    ASSERT_EQ(old, i);
  }
  EXPECT_EQ(word(), 300u);
}

TEST_P(Lifetime, ManyWindowsOfOneNode) {
  // The kernel takes its time with each window of XDP; the limit is the node's, whoever serves.
  const bool up_to_the_limit = !GetParam().needs_xdp_server();
  std::vector<Window> windows;
  for (int i = 1; i < (up_to_the_limit ? 256 : 20); ++i) {
    windows.push_back(make_window(server, 100));
  }
  haul_atomic_window* none = nullptr;
  if (up_to_the_limit) {
    EXPECT_REFUSED(HAUL_ENOMEM, haul_atomic_window_create(server.get(), 100, &none));
  }
  for (const std::size_t i : {std::size_t{0}, windows.size() / 2, windows.size() - 1}) {
    const haul_atomic_window_name one = name_of(windows[i]);
    EXPECT_EQ(one.bytes, 100u);
    EXPECT_EQ(haul_atomic_window_bytes(windows[i].get()), 100u);
    const Remote its = connect(client, one);
    EXPECT_EQ(haul_atomic_write(its.get(), one.address + 8 * i % 96, i + 1), 0);
    EXPECT_EQ(word_of(windows[i], 8 * i % 96), i + 1);
    // Another window's address is not this one's, nor is what sticks out of it.
    EXPECT_REFUSED(HAUL_EFAULT, haul_atomic_write(its.get(), at(0), 1));
    EXPECT_REFUSED(HAUL_EFAULT, haul_atomic_write(its.get(), one.address + 96, 1));
  }
  windows.pop_back();
  windows.push_back(make_window(server, 1 << 20));
  const haul_atomic_window_name large = name_of(windows.back());
  const Remote its = connect(client, large);
  EXPECT_EQ(haul_atomic_write(its.get(), large.address + (1 << 20) - 8, 9), 0);
  EXPECT_EQ(word_of(windows.back(), (1 << 20) - 8), 9u);
}

TEST_P(Lifetime, MemoryOutlivesItsNode) {
  ASSERT_EQ(haul_atomic_write(remote.get(), at(0), 42), 0);
  server.reset();
  EXPECT_EQ(word(), 42u);
  haul_atomic_operation one = operation(HAUL_ATOMIC_ADD, at(0), 1);
  EXPECT_EQ(haul_atomic_window_run(window.get(), &one, 1), 0);
  EXPECT_EQ(word(), 43u);
}

INSTANTIATE_TEST_SUITE_P(, Lifetime, testing::ValuesIn(carriers), name_of_carrier);
INSTANTIATE_TEST_SUITE_P(, TableOfClients, testing::ValuesIn(responder_carriers()),
                         name_of_carrier);

}  // namespace
}  // namespace atomic_test
