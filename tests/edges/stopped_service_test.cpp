// The node's service is stopped with work of this process in its hands: exit() leaves it, questions
// to it are given up after five seconds, those of all threads together, and signals work meanwhile,
// as do forks in their handlers.
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <thread>
#include <vector>

#include "e2e/service_support.hpp"

namespace {

using namespace e2e;

std::atomic<int> heard{0};

TEST(StoppedService, QuestionsOfAllThreadsAreGivenUpTogether) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&service] {
              service.use();
              const Shared memory(mib);
              memory.clear();
              constexpr int count = 4;
              haul_grant grants[count];
              for (int i = 0; i < count; ++i)
                CHILD_EQUAL(haul_share(memory.data() + i * 4096, 4096, HAUL_SHARE_READ, &grants[i]),
                            0);
              struct sigaction action {};
              action.sa_handler = [](int) { ++heard; };
              CHILD_EQUAL(sigaction(SIGINT, &action, nullptr), 0);
              CHILD_EQUAL(kill(service.pid(), SIGSTOP), 0);
              std::atomic<int> done{0};
              std::vector<std::thread> threads;
              for (const haul_grant& grant : grants) {
                threads.emplace_back([&] {
                  CHILD_EQUAL(haul_unshare(&grant), HAUL_ETIMEDOUT);
                  ++done;
                });
              }
              sleep_ms(500);
              for (std::thread& thread : threads) pthread_kill(thread.native_handle(), SIGINT);
              // All of them hear it before one of them is back.
              while (heard < count) {
                CHILD_EQUAL(done.load(), 0);
                sleep_ms(1);
              }
              // One after the other they would take four times five seconds.
              timespec begin, end;
              clock_gettime(CLOCK_MONOTONIC, &begin);
              for (std::thread& thread : threads) thread.join();
              clock_gettime(CLOCK_MONOTONIC, &end);
              CHILD_CHECK(sanitizer || end.tv_sec - begin.tv_sec < 14);
              CHILD_EQUAL(kill(service.pid(), SIGCONT), 0);
              for (const haul_grant& grant : grants) CHILD_EQUAL(haul_unshare(&grant), 0);
              return 0;
            }),
            0);
}

// The child has asked nothing, and is told so at once.
TEST(StoppedService, AQuestionIsTheParentsWhereAHandlerForksMeanwhile) {
  static std::atomic<pid_t> forked{-1};
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&service] {
              service.use();
              const Shared memory(mib);
              memory.clear();
              haul_grant grant{};
              CHILD_EQUAL(haul_share(memory.data(), mib, HAUL_SHARE_READ, &grant), 0);
              struct sigaction action {};
              action.sa_handler = [](int) { forked = fork(); };
              CHILD_EQUAL(sigaction(SIGINT, &action, nullptr), 0);
              CHILD_EQUAL(kill(service.pid(), SIGSTOP), 0);
              const pthread_t asker = pthread_self();
              std::thread caller([asker] {
                sleep_ms(500);
                pthread_kill(asker, SIGINT);
              });
              haul_space space{};
              std::size_t bytes = 0;
              const int code = haul_space_open_grant(&grant, &space, &bytes);
              if (forked == 0) _exit(code == HAUL_EAGAIN ? 0 : 1);
              CHILD_EQUAL(code, HAUL_ETIMEDOUT);
              caller.join();
              CHILD_CHECK(forked > 0);
              int status = -1;
              CHILD_EQUAL(waitpid(forked, &status, 0), forked.load());
              CHILD_EQUAL(status, 0);
              CHILD_EQUAL(kill(service.pid(), SIGCONT), 0);
              return 0;
            }),
            0);
}

// exit() with a chunk in the hands of the stopped service.
int exits_beside(const Service& service, bool shut_down) {
  service.use();
  setenv("HAUL_MOVER_PATIENCE_MS", "500", 1);
  constexpr std::size_t bytes = 64 * mib;
  const Shared src(bytes), dst(bytes);
  src.fill(1);
  dst.clear();
  CHILD_CHECK(attach());
  haul_request request = haul_request_copy(dst.data(), src.data(), bytes);
  request.flags = HAUL_DEDICATED;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  std::size_t good = 0;
  while (good == 0 && haul_progress(ticket, &good) == 0) {
  }
  CHILD_EQUAL(kill(service.pid(), SIGSTOP), 0);
  if (shut_down) CHILD_EQUAL(haul_shutdown(), 0);
  exit(5);
}

TEST(StoppedService, DoesNotKeepExit) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&service] { return exits_beside(service, false); }), 5);
}

TEST(StoppedService, DoesNotKeepShutdown) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&service] { return exits_beside(service, true); }), 5);
}

// What haul_unshare() says of a grant after haul_shutdown().
int takes_back_after_shutdown(const Service& service, bool stopped) {
  service.use();
  const Shared memory(mib);
  memory.clear();
  haul_grant grant{};
  CHILD_EQUAL(haul_share(memory.data(), mib, HAUL_SHARE_WRITE, &grant), 0);
  if (stopped) CHILD_EQUAL(kill(service.pid(), SIGSTOP), 0);
  CHILD_EQUAL(haul_shutdown(), 0);
  CHILD_EQUAL(haul_unshare(&grant), stopped ? HAUL_ETIMEDOUT : 0);
  CHILD_EQUAL(kill(service.pid(), SIGCONT), 0);
  return 0;
}

// The service, once it runs again, would go on in memory that this process has granted.
TEST(StoppedService, AGrantIsNotTakenBackAfterShutdown) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&service] { return takes_back_after_shutdown(service, true); }), 0);
}

// A service that runs lets go while haul shuts down.
TEST(StoppedService, AGrantIsTakenBackAfterShutdownOfOneThatRuns) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&service] { return takes_back_after_shutdown(service, false); }), 0);
}

}  // namespace
