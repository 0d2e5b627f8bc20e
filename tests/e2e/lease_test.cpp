// The node-wide lease of the mover core: one process at a time spins a mover, and nobody waits for
// one that does not let go.
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <vector>

#include "support.hpp"

namespace {

using namespace e2e;

// Processes of other tests, or of the machine's users, may hold the lease: then there is nothing to
// see here.
bool lease_is_free() {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, "haul-mover-0", 12);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 13);
  const bool is_free = bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0;
  close(fd);
  return is_free;
}

bool wait_until_free() {
  for (int turn = 0; turn < 200; ++turn) {
    if (lease_is_free()) return true;
    sleep_ms(20);
  }
  return false;
}

#define NEED_FREE_LEASE()                                                                      \
  do {                                                                                         \
    if (cpus_allowed() < 2) GTEST_SKIP() << "one CPU: no mover is ever made here";             \
    if (!wait_until_free()) GTEST_SKIP() << "another process of this machine holds the lease"; \
  } while (false)

struct Shared {
  std::atomic<bool> stop, ready;
  std::atomic<std::uint32_t> states[8];
  std::atomic<std::uint64_t> rounds[8];
};

Shared& shared_memory() {
  void* at =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *static_cast<Shared*>(at);
}

void keep_environment() {
  quiet_environment();
  unsetenv("HAUL_MOVER_LEASE");
  setenv("HAUL_MOVER_SPIN_US", "100000", 1);
}

// A process that holds the lease until it is killed.
pid_t start_holder(Shared& shared, bool as_nobody) {
  const pid_t holder = start_child([&shared, as_nobody] {
    if (as_nobody && (setgroups(0, nullptr) != 0 || setresgid(65534, 65534, 65534) != 0 ||
                      setresuid(65534, 65534, 65534) != 0))
      return 1;
    keep_environment();
    CHILD_CHECK(wake_and_see());
    shared.ready = true;
    while (!shared.stop) {
      haul_wake();
      copy_works(64 * kib, 1);
    }
    return 0;
  });
  while (!shared.ready && waitpid(holder, nullptr, WNOHANG) == 0) sleep_ms(1);
  return holder;
}

// Another process meanwhile: inline, and told so.
int bystander() {
  return run_child([] {
    keep_environment();
    for (int round = 0; round < 10; ++round) {
      copy_works(4 * mib, 1);
      const int woken = haul_wake();
      CHILD_CHECK(woken == 0 || woken == HAUL_EAGAIN);
      haul_request request{};
      const Buffer src(mib), dst(mib);
      src.fill(2);
      request = haul_request_copy(dst.data(), src.data(), mib);
      request.flags = HAUL_DEDICATED | HAUL_FENCE;
      haul_ticket ticket{};
      CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
      while (haul_test(ticket) == 0) sched_yield();
      CHILD_EQUAL(std::memcmp(dst.data(), src.data(), mib), 0);
      CHILD_CHECK(state_now().mover_state != 1);
      sleep_ms(10);
    }
    CHILD_EQUAL(haul_shutdown(), 0);
    return 0;
  });
}

TEST(Lease, AStoppedHolderStopsNobodyElse) {
  NEED_FREE_LEASE();
  Shared& shared = shared_memory();
  const pid_t holder = start_holder(shared, false);
  ASSERT_FALSE(lease_is_free());
  kill(holder, SIGSTOP);
  EXPECT_EQ(bystander(), 0);
  kill(holder, SIGCONT);
  shared.stop = true;
  EXPECT_EQ(end_of(holder), 0);
}

TEST(Lease, AHolderOfAnotherUserStopsNobodyElse) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  NEED_FREE_LEASE();
  Shared& shared = shared_memory();
  const pid_t holder = start_holder(shared, true);
  ASSERT_FALSE(lease_is_free());
  kill(holder, SIGSTOP);  // or it might happen to sleep and let go
  EXPECT_EQ(bystander(), 0);
  kill(holder, SIGCONT);
  shared.stop = true;
  EXPECT_EQ(end_of(holder), 0);
}

TEST(Lease, AKilledHolderLeavesItToTheNext) {
  NEED_FREE_LEASE();
  for (int round = 0; round < 5; ++round) {
    Shared& shared = shared_memory();
    const pid_t holder = start_holder(shared, false);
    ASSERT_FALSE(lease_is_free());
    // Denied at first; has the mover as soon as the other is gone.
    const pid_t heir = start_child([&shared] {
      keep_environment();
      haul_wake();
      copy_works(2 * mib, 1);
      shared.rounds[0] = 1;
      for (int turn = 0; turn < 1000; ++turn) {
        copy_works(2 * mib, 1);
        haul_wake();
        if (state_now().mover_state == 1) return 0;
        sleep_ms(10);
      }
      return 1;
    });
    while (shared.rounds[0] == 0) sleep_ms(1);
    kill(holder, SIGKILL);
    EXPECT_EQ(end_of(holder), 1000 + SIGKILL);
    EXPECT_EQ(end_of(heir), 0);
  }
}

TEST(Lease, IsGivenBackBySleepShutdownAndForkedChildren) {
  NEED_FREE_LEASE();
  EXPECT_EQ(run_child([] {
              keep_environment();
              CHILD_CHECK(wake_and_see());
              CHILD_CHECK(!lease_is_free());
              // A child that lives on does not keep it.
              const pid_t child = thread_sanitizer ? 0 : start_child([] {
                for (;;) pause();
                return 0;
              });
              CHILD_EQUAL(haul_shutdown(), 0);
              // (The child lets go as soon as it runs.)
              CHILD_CHECK(wait_until_free());
              if (child > 0) {
                kill(child, SIGKILL);
                end_of(child);
              }
              return 0;
            }),
            0);
  EXPECT_EQ(run_child([] {
              keep_environment();
              setenv("HAUL_MOVER_SPIN_US", "1000", 1);
              CHILD_CHECK(wake_and_see());
              for (int turn = 0; turn < 500 && !lease_is_free(); ++turn) sleep_ms(10);
              CHILD_CHECK(lease_is_free());
              CHILD_EQUAL(state_now().mover_state, 2);
              return 0;
            }),
            0);
}

TEST(Lease, OfEightBusyProcessesOneHasAMover) {
  NEED_FREE_LEASE();
  Shared& shared = shared_memory();
  std::vector<pid_t> children;
  for (unsigned i = 0; i < 8; ++i) {
    children.push_back(start_child([&shared, i] {
      keep_environment();
      while (!shared.stop) {
        copy_works(mib, i);
        haul_wake();
        shared.states[i] = state_now().mover_state;
        ++shared.rounds[i];
      }
      CHILD_EQUAL(haul_shutdown(), 0);
      return 0;
    }));
  }
  for (const auto& rounds : shared.rounds) {
    for (int turn = 0; rounds < 30 && turn < 4000; ++turn) sleep_ms(5);
    EXPECT_GE(rounds.load(), 30u);  // nobody hangs for the lease
  }
  // The words are read one after the other and the lease may change hands in between, so one look
  // may see two; most may not.
  unsigned more_than_one = 0, any = 0;
  for (int look = 0; look < 100; ++look) {
    unsigned awake = 0;
    for (const auto& state : shared.states) awake += state == 1;
    more_than_one += awake > 1;
    any += awake >= 1;
    sleep_ms(10);
  }
  EXPECT_LT(more_than_one, 50u);
  EXPECT_GT(any, 0u);
  shared.stop = true;
  for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
}

}  // namespace
