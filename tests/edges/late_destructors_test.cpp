// Threads whose thread-specific destructors copy, also after haul's own destructor has run: they
// leave no ring behind, or few.
#include <gtest/gtest.h>

#include "room_support.hpp"

namespace {

using namespace edges;

constinit pthread_key_t rearmed;
constinit unsigned char from[4096], to[4096];

// Comes round as often as pthread lets it.
void copies_and_comes_again(void* turns) {
  haul_wait(copy_by_mover(to, from, sizeof from));
  const auto left = reinterpret_cast<std::uintptr_t>(turns);
  if (left > 1) pthread_setspecific(rearmed, reinterpret_cast<void*>(left - 1));
}

int leave_by_destructors(bool first_ring_there) {
  always_mover();
  copy_works(mib, 1);
  CHILD_EQUAL(pthread_key_create(&rearmed, copies_and_comes_again), 0);
  const int open = descriptors();
  const std::size_t resident = resident_kib();
  for (int i = 0; i < 1200; ++i) {
    with_threads(
        1,
        [&](unsigned) {
          pthread_setspecific(rearmed, reinterpret_cast<void*>(10));
          if (first_ring_there) haul_wait(copy_by_mover(to, from, sizeof from));
        },
        [] {});
  }
  CHILD_CHECK(state_now().threads <= 3);
  CHILD_EQUAL(descriptors(), open);
  if (!sanitizer) CHILD_CHECK(resident_kib() <= resident + 4 * kib);
  return 0;
}

TEST(LateDestructors, ThatComeRoundAgainLeaveNoRings) {
  if (thread_sanitizer) GTEST_SKIP() << "its threads have ended before the last round";
  EXPECT_EQ(run_child([] { return leave_by_destructors(true); }), 0);
}

TEST(LateDestructors, ThatAreTheFirstToCopyLeaveNoRings) {
  if (thread_sanitizer) GTEST_SKIP() << "its threads have ended before the last round";
  EXPECT_EQ(run_child([] { return leave_by_destructors(false); }), 0);
}

// One whose first copy comes in the last round of all: nobody tells haul of that thread's end.
TEST(LateDestructors, OfTheLastRoundLeaveFewRings) {
  if (thread_sanitizer) GTEST_SKIP() << "its threads have ended before the last round";
  EXPECT_EQ(
      run_child([] {
        always_mover();
        copy_works(mib, 1);
        CHILD_EQUAL(pthread_key_create(&rearmed,
                                       [](void* round) {
                                         const auto now = reinterpret_cast<std::uintptr_t>(round);
                                         if (now < PTHREAD_DESTRUCTOR_ITERATIONS) {
                                           pthread_setspecific(rearmed,
                                                               reinterpret_cast<void*>(now + 1));
                                         } else {
                                           haul_wait(copy_by_mover(to, from, sizeof from));
                                         }
                                       }),
                    0);
        for (int i = 0; i < 1200; ++i) {
          with_threads(
              1, [](unsigned) { pthread_setspecific(rearmed, reinterpret_cast<void*>(1)); }, [] {});
        }
        CHILD_CHECK(state_now().threads <= 64);
        return 0;
      }),
      0);
}

}  // namespace
