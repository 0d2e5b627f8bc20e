// Locks through the C ABI: members that come and go, homes that are not to be had, few connections.
#include <chrono>
#include <thread>
#include <vector>

#include "atomic/node.hpp"

namespace atomic_test {
namespace {

constexpr char here[] = "block:127.0.0.1";
constexpr std::uint64_t no_limit = UINT64_MAX;

struct CloseLock {
  void operator()(haul_atomic_lock* lock) const { EXPECT_EQ(haul_atomic_lock_close(lock), 0); }
};
using Lock = std::unique_ptr<haul_atomic_lock, CloseLock>;

struct Home {
  Node node;
  Window window;
  haul_atomic_lock_place place{};
  explicit Home(const haul_atomic_node_options& options = default_options())
      : node(open_node(here, options)), window(make_window(node)) {
    if (window) place.window = name_of(window);
  }
};

constexpr std::uint32_t any_count = 8;

int open_lock(const Node& node, const Window& own, const haul_atomic_lock_place& home,
              std::uint64_t lease_ns, Lock* lock, std::uint32_t rank = HAUL_ATOMIC_LOCK_ANY_RANK) {
  haul_atomic_lock_options options{};
  options.size = sizeof options;
  options.rank = rank;
  options.count = any_count;
  options.home = &home;
  options.lease_ns = lease_ns;
  haul_atomic_lock* made = nullptr;
  const int result = haul_atomic_lock_open(node.get(), own.get(), &options, &made);
  lock->reset(made);
  return result;
}

// A member on a host of its own.
struct Guest {
  Node node;
  Window window;
  Lock lock;
  explicit Guest(const haul_atomic_lock_place& home, std::uint32_t rank = HAUL_ATOMIC_LOCK_ANY_RANK,
                 std::uint64_t lease_ns = 20'000'000'000,
                 const haul_atomic_node_options& options = default_options())
      : node(open_node(here, options)), window(make_window(node)) {
    EXPECT_EQ(open_lock(node, window, home, lease_ns, &lock, rank), 0) << haul_last_error();
  }
};

haul_atomic_lock_counts counts_of(const Guest& guest) {
  haul_atomic_lock_counts counts{};
  EXPECT_EQ(haul_atomic_lock_stats(guest.lock.get(), &counts), 0);
  return counts;
}

// `second` waits behind `first`, is linked to it, and gets it as that releases it: `handed` tells,
// or it found the lock free.
void hand_over(Guest& first, Guest& second) {
  ASSERT_EQ(haul_atomic_lock_acquire(first.lock.get(), no_limit, nullptr), 0) << haul_last_error();
  std::thread waiter([&] {
    EXPECT_EQ(haul_atomic_lock_acquire(second.lock.get(), no_limit, nullptr), 0)
        << haul_last_error();
    EXPECT_EQ(haul_atomic_lock_release(second.lock.get()), 0) << haul_last_error();
  });
  const std::uint64_t* next = &word_of(first.window);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while ((__atomic_load_n(next, __ATOMIC_SEQ_CST) & 0xffff) == 0 &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
  EXPECT_EQ(haul_atomic_lock_release(first.lock.get()), 0) << haul_last_error();
  waiter.join();
}

TEST(Locks, WhoTakesOverARankIsFoundWhereItIs) {
  Home home;
  Guest other(home.place, 1);
  std::vector<std::unique_ptr<Guest>> guests;  // of rank 0
  std::uint64_t handed = 0;
  const auto come = [&] {
    guests.push_back(std::make_unique<Guest>(home.place, 0));
    Guest& guest = *guests.back();
    for (std::uint64_t i = 1; i <= 3; ++i) {
      hand_over(other, guest);
      EXPECT_EQ(counts_of(guest).handed, i);
      hand_over(guest, other);
      EXPECT_EQ(counts_of(other).handed, ++handed);
    }
    EXPECT_EQ(counts_of(other).forced + counts_of(guest).forced, 0u);
    guest.lock.reset();
  };
  come();
  come();  // the window of the one before is still there, and answers
  guests.back()->window.reset();
  come();  // ... not any more
}

TEST(Locks, ANodeWithFewConnectionsMeetsManyNeighbours) {
  Home home;
  haul_atomic_node_options few = default_options();
  few.connections = 2;  // the home, and one neighbour at a time
  Guest busy(home.place, 0, 20'000'000'000, few);
  std::vector<std::unique_ptr<Guest>> others;
  for (std::uint32_t rank = 1; rank < 6; ++rank) {
    others.push_back(std::make_unique<Guest>(home.place, rank));
  }
  std::uint64_t handed = 0;
  for (int round = 0; round < 3; ++round) {
    for (const auto& other : others) {
      hand_over(busy, *other);
      hand_over(*other, busy);
      EXPECT_EQ(counts_of(busy).handed, ++handed);
    }
  }
  for (const auto& other : others) EXPECT_EQ(counts_of(*other).handed, 3u);
  EXPECT_EQ(counts_of(busy).forced, 0u);
}

// Carries on what was started until it has ended.
int end_of(const Guest& guest, std::uint64_t* token) {
  for (;;) {
    const int result = haul_atomic_lock_test(guest.lock.get(), token);
    if (result != 0) return result;
    std::this_thread::yield();
  }
}

TEST(Locks, NothingStartedIsNotDone) {
  Home home;
  Guest guest(home.place);
  std::uint64_t token = 7;
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_lock_test(guest.lock.get(), &token));
  EXPECT_EQ(haul_atomic_lock_start(guest.lock.get(), HAUL_ATOMIC_LOCK_RELEASE, 0), HAUL_EINVAL);
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_lock_test(guest.lock.get(), &token));
  EXPECT_EQ(token, 7u);
  ASSERT_EQ(haul_atomic_lock_start(guest.lock.get(), HAUL_ATOMIC_LOCK_ACQUIRE, no_limit), 0);
  EXPECT_EQ(end_of(guest, &token), 1);
  EXPECT_EQ(token, 1u);
}

TEST(Locks, AnAcquireWithoutALimitIsCancelled) {
  Home home;
  Guest holder(home.place);
  Guest guest(home.place);
  std::uint64_t first = 0, token = 0;
  EXPECT_REFUSED(HAUL_EINVAL, haul_atomic_lock_cancel(nullptr));
  ASSERT_EQ(haul_atomic_lock_acquire(holder.lock.get(), no_limit, &first), 0);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(haul_atomic_lock_start(guest.lock.get(), HAUL_ATOMIC_LOCK_ACQUIRE, no_limit), 0);
    for (int turn = 0; turn < 100 * round; ++turn)
      ASSERT_EQ(haul_atomic_lock_test(guest.lock.get(), &token), 0);
    ASSERT_EQ(haul_atomic_lock_cancel(guest.lock.get()), 0);
    EXPECT_EQ(end_of(guest, &token), HAUL_ETIMEDOUT);
  }
  ASSERT_EQ(haul_atomic_lock_release(holder.lock.get()), 0);
  EXPECT_EQ(haul_atomic_lock_cancel(guest.lock.get()), 0);  // nothing is under way
  ASSERT_EQ(haul_atomic_lock_start(guest.lock.get(), HAUL_ATOMIC_LOCK_ACQUIRE, no_limit), 0);
  EXPECT_EQ(end_of(guest, &token), 1);
  EXPECT_GT(token, first);
  EXPECT_EQ(haul_atomic_lock_cancel(guest.lock.get()), 0);  // a lock that is held stays so
  EXPECT_EQ(haul_atomic_lock_release(guest.lock.get()), 0);
}

// The code, and a sentence with this in it.
#define EXPECT_SAYS(code, text, call)                                                             \
  do {                                                                                            \
    EXPECT_REFUSED(code, call);                                                                   \
    EXPECT_NE(std::string(haul_last_error()).find(text), std::string::npos) << haul_last_error(); \
  } while (false)

TEST(Locks, AHomeThatIsNotToBeHadIsToldFromOneThatIsHeld) {
  haul_atomic_node_options options = default_options();
  options.timeout_ns = 300'000'000;
  const Node node = open_node(here, options);
  const Window own = make_window(node);
  Lock lock;
  Home home;
  haul_atomic_lock_place wrong = home.place;
  wrong.window.key ^= 1;
  EXPECT_SAYS(HAUL_EPERM, "knows no such window", open_lock(node, own, wrong, 0, &lock));
  wrong = home.place;
  wrong.window.port = 9;
  EXPECT_SAYS(HAUL_ETIMEDOUT, "no answer from 127.0.0.1 port 9",
              open_lock(node, own, wrong, 0, &lock));

  options.connections = 1;
  const Node poor = open_node(here, options);
  const Window poor_window = make_window(poor);
  const Remote only = connect(poor, home.place.window);
  EXPECT_SAYS(HAUL_ENOMEM, "all 1 connections", open_lock(poor, poor_window, home.place, 0, &lock));

  options = default_options();
  options.sessions = 1;
  const Home small(options);
  const Remote guest = connect(home.node, small.place.window);
  EXPECT_SAYS(HAUL_EAGAIN, "more sessions", open_lock(node, own, small.place, 0, &lock));
}

TEST(Locks, AHomeThatWasRestartedIsNotALeaseThatIsOver) {
  auto home = std::make_unique<Home>();
  Guest guest(home->place);
  ASSERT_EQ(haul_atomic_lock_acquire(guest.lock.get(), no_limit, nullptr), 0);
  ASSERT_EQ(haul_atomic_lock_release(guest.lock.get()), 0);
  haul_atomic_node_options again = default_options();
  again.port = home->place.window.port;
  home.reset();
  home = std::make_unique<Home>(again);
  ASSERT_EQ(home->place.window.port, again.port);
  const int result = haul_atomic_lock_acquire(guest.lock.get(), no_limit, nullptr);
  EXPECT_TRUE(result == HAUL_EPEER || result == HAUL_EPERM) << result;
  EXPECT_NE(std::string(haul_last_error()).find("new name"), std::string::npos)
      << haul_last_error();
  EXPECT_SAYS(HAUL_EPERM, "new name", haul_atomic_lock_try(guest.lock.get(), nullptr));
}

TEST(Locks, ASilentHomeEndsAnAcquireInTime) {
  auto home = std::make_unique<Home>();
  Guest guest(home->place, HAUL_ATOMIC_LOCK_ANY_RANK, 100'000'000);
  ASSERT_EQ(haul_atomic_lock_acquire(guest.lock.get(), no_limit, nullptr), 0);
  ASSERT_EQ(haul_atomic_lock_release(guest.lock.get()), 0);
  home.reset();
  for (int i = 0; i < 2; ++i) {  // with a connection, and without
    const auto since = std::chrono::steady_clock::now();
    EXPECT_SAYS(HAUL_ETIMEDOUT, "no answer from 127.0.0.1",
                haul_atomic_lock_acquire(guest.lock.get(), 200'000'000, nullptr));
    // Not the node's 20 s.
    EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds(10));
  }
}

}  // namespace
}  // namespace atomic_test
