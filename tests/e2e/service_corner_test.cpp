// Corners of a client's life with the node's service: what a review found, and what must stay
// mended.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "service_support.hpp"

namespace {

using namespace e2e;

struct Stage {
  std::atomic<unsigned> step;
  std::atomic<bool> stop;
};
Stage& stage() {
  void* at =
      mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *static_cast<Stage*>(at);
}

// A copy that nobody helps with arrives.
void tested_copy(std::uint64_t seed) {
  const Shared src(mib), dst(mib);
  src.fill(seed);
  const haul_ticket ticket = haul_copy(dst.data(), src.data(), mib);
  while (haul_test(ticket) == 0) sched_yield();
  CHILD_EQUAL(first_wrong(dst.data(), mib, seed), -1);
}

TEST(ServiceCorner, NothingIsTakenBackFromAStoppedServiceUntilItAnswers) {
  Service service;
  ASSERT_TRUE(service.start());
  Stage& shared = stage();
  const pid_t client = start_child([&] {
    service.use();
    const Shared data(mib);
    haul_grant grant{};
    CHILD_EQUAL(haul_share(data.data(), mib, HAUL_SHARE_WRITE, &grant), 0);
    shared.step = 1;
    while (shared.step != 2) sleep_ms(1);
    CHILD_EQUAL(haul_unshare(&grant), HAUL_ETIMEDOUT);
    shared.step = 3;
    while (shared.step != 4) sleep_ms(1);
    CHILD_EQUAL(haul_unshare(&grant), 0);  // asked again
    CHILD_EQUAL(haul_unshare(&grant), HAUL_EINVAL);
    return 0;
  });
  while (shared.step != 1 && kill(client, 0) == 0) sleep_ms(1);
  kill(service.pid(), SIGSTOP);
  shared.step = 2;
  while (shared.step != 3 && kill(client, 0) == 0) sleep_ms(10);
  kill(service.pid(), SIGCONT);
  shared.step = 4;
  EXPECT_EQ(end_of(client), 0);
}

TEST(ServiceCorner, ManyGrantsAllArrive) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              const Shared data(mib);
              std::vector<haul_grant> grants(3000);
              for (haul_grant& grant : grants)
                CHILD_EQUAL(haul_share(data.data(), mib, HAUL_SHARE_READ, &grant), 0);
              for (std::size_t i = 0; i < grants.size(); i += 100) {
                haul_space space = 0;
                CHILD_EQUAL(haul_space_open_grant(&grants[i], &space, nullptr), 0);
                CHILD_EQUAL(haul_space_close(space), 0);
              }
              for (const haul_grant& grant : grants) CHILD_EQUAL(haul_unshare(&grant), 0);
              return 0;
            }),
            0);
}

void* copy_once(void* seed) {
  tested_copy(reinterpret_cast<std::uintptr_t>(seed));
  return nullptr;
}

TEST(ServiceCorner, AThreadOfAChildTakesOverAThreadsRing) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              CHILD_CHECK(attach());
              tested_copy(1);
              pthread_t thread;
              CHILD_EQUAL(pthread_create(&thread, nullptr, copy_once, nullptr), 0);
              pthread_join(thread, nullptr);
              return end_of(start_child([] {
                CHILD_CHECK(attach());
                tested_copy(2);
                pthread_t own;
                for (std::uintptr_t round = 3; round < 6; ++round) {
                  CHILD_EQUAL(
                      pthread_create(&own, nullptr, copy_once, reinterpret_cast<void*>(round)), 0);
                  pthread_join(own, nullptr);
                }
                CHILD_CHECK(state_now().service_chunks > 0);
                return 0;
              }));
            }),
            0);
}

TEST(ServiceCorner, ForksWhileServicesComeAndGo) {
  Service service;
  ASSERT_TRUE(service.start());
  Stage& shared = stage();
  const pid_t client = start_child([&] {
    service.use();
    const Shared data(mib);
    std::vector<haul_grant> grants(200);
    for (haul_grant& grant : grants)
      CHILD_EQUAL(haul_share(data.data(), mib, HAUL_SHARE_READ, &grant), 0);
    shared.step = 1;
    while (!shared.stop) {
      haul_wake();
      CHILD_EQUAL(end_of(start_child([] { return 0; })), 0);
      tested_copy(7);
    }
    return 0;
  });
  while (shared.step != 1 && kill(client, 0) == 0) sleep_ms(1);
  for (unsigned round = 0; round < 10; ++round) {
    service.end(SIGKILL);
    ASSERT_TRUE(service.start());
    sleep_ms(150);
  }
  shared.stop = true;
  EXPECT_EQ(end_of(client), 0);
}

// Its first request on it makes the child look for the service by itself.
TEST(ServiceCorner, AChildUsesASpaceThatItsParentOpened) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              const Shared data(mib);
              data.fill(4);
              haul_grant grant{};
              CHILD_EQUAL(haul_share(data.data(), mib, HAUL_SHARE_READ, &grant), 0);
              haul_space space = 0;
              CHILD_EQUAL(haul_space_open_grant(&grant, &space, nullptr), 0);
              return end_of(start_child([space] {
                const Shared copy(mib);
                haul_request request = haul_request_copy(copy.data(), nullptr, mib);
                request.src.space = space;
                haul_ticket ticket{};
                int taken = HAUL_EAGAIN;
                for (unsigned turn = 0; turn < 3000 && taken == HAUL_EAGAIN; ++turn) {
                  taken = haul_submit(&request, 1, &ticket);
                  if (taken == HAUL_EAGAIN) sleep_ms(1);
                }
                // (Until the service knows the child's arena it cannot reach the other side.)
                for (unsigned turn = 0; turn < 3000 && taken == HAUL_ENOTSUP; ++turn) {
                  sleep_ms(1);
                  taken = haul_submit(&request, 1, &ticket);
                }
                CHILD_EQUAL(taken, 1);
                CHILD_EQUAL(haul_wait(ticket), 0);
                CHILD_EQUAL(first_wrong(copy.data(), mib, 4), -1);
                return 0;
              }));
            }),
            0);
}

// A server that closes every descriptor and opens its own.
TEST(ServiceCorner, AProgramThatClosesOurDescriptors) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              CHILD_CHECK(attach());
              tested_copy(1);
              for (int fd = 3; fd < 64; ++fd) close(fd);
              const std::string path = service.directory() + "/own";
              int files[16];
              for (int& file : files) file = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND, 0600);
              pthread_t thread;
              for (std::uintptr_t round = 2; round < 5; ++round) {
                CHILD_EQUAL(
                    pthread_create(&thread, nullptr, copy_once, reinterpret_cast<void*>(round)), 0);
                pthread_join(thread, nullptr);
                const Shared late(mib);
                haul_wake();
              }
              for (const int file : files) {
                CHILD_EQUAL(lseek(file, 0, SEEK_END), 0);  // nothing of haul's went there
                CHILD_CHECK(fcntl(file, F_GETFD) >= 0);    // nor was it closed
              }
              unlink(path.c_str());
              return 0;
            }),
            0);
  EXPECT_TRUE(service.running());
}

// Private memory that the service may not reach any more is copied by the process itself.
TEST(ServiceCorner, RightsThatAreLostLater) {
  if (!unprivileged()) GTEST_SKIP() << "root may always: this runs as an ordinary user too";
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              setenv("HAUL_MOVER_CORES", "0", 1);
              CHILD_CHECK(attach());
              CHILD_EQUAL(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
              for (unsigned round = 0; round < 5; ++round) {
                const Buffer src(4 * mib), dst(4 * mib);
                src.fill(round);
                const haul_ticket ticket = haul_copy(dst.data(), src.data(), 4 * mib);
                while (haul_test(ticket) == 0) sched_yield();
                CHILD_EQUAL(haul_test(ticket), 1);
                CHILD_EQUAL(first_wrong(dst.data(), 4 * mib, round), -1);
              }
              return 0;
            }),
            0);
}

TEST(ServiceCorner, AnOwnMoverInsteadOfAStoppedService) {
  if (cpus_allowed() < 2) GTEST_SKIP() << "one CPU: no mover is ever made here";
  Service service;
  ASSERT_TRUE(service.start());
  kill(service.pid(), SIGSTOP);
  EXPECT_EQ(run_child([&] {
              service.use("auto");
              const Buffer src(16 * mib), dst(16 * mib);
              // How long the service is waited for is a time, not a number of copies.
              using Clock = std::chrono::steady_clock;
              const Clock::time_point end = Clock::now() + std::chrono::seconds(20);
              while (state_now().dedicated == 0 && Clock::now() < end) {
                haul_request request = haul_request_copy(dst.data(), src.data(), 16 * mib);
                request.flags = HAUL_DEDICATED;
                haul_ticket ticket{};
                CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
                CHILD_EQUAL(haul_wait(ticket), 0);
              }
              CHILD_CHECK(state_now().dedicated > 0);
              return 0;
            }),
            0);
}

}  // namespace
