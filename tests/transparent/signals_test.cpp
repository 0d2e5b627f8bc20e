// Large calls in signal handlers, and under cancellation.
#include <gtest/gtest.h>
#include <pthread.h>

#include "transparent/support.hpp"

namespace {

using namespace transparent;

const Memory* from = nullptr;
const Memory* to = nullptr;
volatile sig_atomic_t handled = 0;

void copy_in_handler(int) {
  call_memcpy(to->data(), from->data(), 2 * mib);
  handled = handled + 1;
}

void raise_and_check(int flags, void* stack, std::size_t stack_bytes) {
  const Memory source(2 * mib);
  source.fill(4);
  from = &source;
  struct sigaction action {};
  action.sa_handler = copy_in_handler;
  action.sa_flags = flags;
  if (stack != nullptr) {
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = stack_bytes;
    CHILD_CHECK(sigaltstack(&alternate, nullptr) == 0);
    action.sa_flags |= SA_ONSTACK;
  }
  CHILD_CHECK(sigaction(SIGUSR1, &action, nullptr) == 0);
  for (int turn = 0; turn < 5; ++turn) {
    const Memory destination(2 * mib);
    to = &destination;
    raise(SIGUSR1);
    CHILD_CHECK(handled == turn + 1);
    CHILD_CHECK(destination.holds(4, 2 * mib));
  }
}

TEST(Signals, TheFirstLargeCallMayBeAHandlers) {
  EXPECT_EQ(run_child([] {
              raise_and_check(0, nullptr, 0);
              copy_works();
            }),
            0);
  EXPECT_EQ(run_child([] {
              raise_and_check(SA_NODEFER, nullptr, 0);
              copy_works();
            }),
            0);
}

// What programs were compiled with as SIGSTKSZ, behind a page that must not be touched. (The
// kernel's part of it may be 3 KiB, as large as a core's registers.)
TEST(Signals, AHandlerMayHaveALittleStack) {
  EXPECT_EQ(run_child([] {
              const Memory stack(8 * kib);
              raise_and_check(0, stack.data(), stack.size());
              copy_works();
            }),
            0);
}

void* copy_on_thread(void*) {
  for (int turn = 0; turn < 6; ++turn) copy_works(4 * mib);
  return nullptr;
}

// The smallest stack that a thread may have, for the first large call of a process and for later
// ones.
TEST(Signals, AThreadMayHaveALittleStack) {
  EXPECT_EQ(run_child([] {
              pthread_attr_t attributes;
              pthread_attr_init(&attributes);
              CHILD_CHECK(pthread_attr_setstacksize(&attributes, 16 * kib) == 0);
              for (int turn = 0; turn < 3; ++turn) {
                pthread_t thread;
                CHILD_CHECK(pthread_create(&thread, &attributes, copy_on_thread, nullptr) == 0);
                CHILD_CHECK(pthread_join(thread, nullptr) == 0);
                copy_works(4 * mib);
              }
            }),
            0);
}

TEST(Signals, AHandlerMayInterruptACopy) {
  EXPECT_EQ(run_child([] {
              const Memory source(2 * mib), destination(2 * mib);
              source.fill(4);
              from = &source;
              to = &destination;
              struct sigaction action {};
              action.sa_handler = copy_in_handler;
              CHILD_CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
              for (int turn = 0; turn < 100 && handled < 20; ++turn) {
                ualarm(500 + 100 * static_cast<useconds_t>(turn), 0);
                copy_works(16 * mib);
              }
              ualarm(0, 0);
              CHILD_CHECK(handled > 0 && destination.holds(4, 2 * mib));
            }),
            0);
}

struct Cancelled {
  pthread_barrier_t begun, requested;
  const Memory source{4 * mib}, destination{4 * mib};
  bool copied = false;
  bool went_on = false;
};

void* cancelled_thread(void* argument) {
  auto* const test = static_cast<Cancelled*>(argument);
  pthread_barrier_wait(&test->begun);
  pthread_barrier_wait(&test->requested);
  // The request is pending, and none of these is a cancellation point.
  call_memcpy(test->destination.data(), test->source.data(), 4 * mib);
  for (int turn = 0; turn < 20; ++turn) {
    const Memory more(2 * mib);
    call_memset(more.data(), turn, 2 * mib);
  }
  test->copied = true;
  pthread_testcancel();
  test->went_on = true;
  return nullptr;
}

TEST(Signals, CancellationWaitsForTheProgramsOwnPoint) {
  EXPECT_EQ(run_child([] {
              static Cancelled test;
              test.source.fill(8);
              pthread_barrier_init(&test.begun, nullptr, 2);
              pthread_barrier_init(&test.requested, nullptr, 2);
              pthread_t thread;
              CHILD_CHECK(pthread_create(&thread, nullptr, cancelled_thread, &test) == 0);
              pthread_barrier_wait(&test.begun);
              CHILD_CHECK(pthread_cancel(thread) == 0);
              pthread_barrier_wait(&test.requested);
              void* result = nullptr;
              CHILD_CHECK(pthread_join(thread, &result) == 0);
              CHILD_CHECK(result == PTHREAD_CANCELED);
              CHILD_CHECK(test.copied && !test.went_on);
              CHILD_CHECK(test.destination.holds(8, 4 * mib));
              copy_works();
            }),
            0);
}

}  // namespace
