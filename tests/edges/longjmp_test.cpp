// A handler of the program's leaves a faulting copy by siglongjmp(), as guards around memcpy() do:
// haul goes on as before. And a handler that does not leave takes nothing away from the copy.
#include <gtest/gtest.h>
#include <setjmp.h>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

sigjmp_buf guard;

void leave(int) {
  siglongjmp(guard, 1);
}

void catch_faults(bool on_a_stack_of_its_own) {
  static unsigned char stack[64 * 1024];
  struct sigaction action {};
  action.sa_handler = leave;
  if (on_a_stack_of_its_own) {
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    CHILD_EQUAL(sigaltstack(&alternate, nullptr), 0);
    action.sa_flags = SA_ONSTACK;
  }
  CHILD_EQUAL(sigaction(SIGSEGV, &action, nullptr), 0);
}

// An inline copy from where nothing can be read.
[[gnu::noinline]] void fault(const Buffer& bad, const Buffer& dst, unsigned flags) {
  haul_request request = haul_request_copy(dst.data(), bad.data(), bad.size());
  request.flags = HAUL_INLINE | flags;
  haul_ticket ticket;
  haul_submit(&request, 1, &ticket);
  const bool it_has_not_faulted = true;
  CHILD_CHECK(!it_has_not_faulted);
}

[[gnu::noinline]] void fault_and_recover(const Buffer& bad, const Buffer& dst, unsigned flags) {
  if (sigsetjmp(guard, 1) == 0) fault(bad, dst, flags);
}

// What needs the thread's queue and ring.
[[gnu::noinline]] void works_in_full() {
  const Buffer src(mib), dst(mib);
  src.fill(5);
  haul_request request = haul_request_copy(dst.data(), src.data(), mib);
  request.flags = HAUL_COMPLETE | HAUL_FENCE;
  haul_ticket ticket;
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  CHILD_EQUAL(haul_wait(ticket), 0);
  haul_completion entry;
  for (unsigned turn = 0; haul_reap(&entry, 1) != 1; ++turn) {
    CHILD_CHECK(turn < 5000);
    sleep_ms(1);
  }
  CHILD_EQUAL(entry.status, 0);
  CHILD_EQUAL(std::memcmp(src.data(), dst.data(), mib), 0);
}

// From frames that lie deeper than the faulting ones did.
[[gnu::noinline]] void works_deep_down() {
  volatile unsigned char overwrite[16 * 1024];
  for (std::size_t at = 0; at < sizeof overwrite; ++at) overwrite[at] = 1;
  works_in_full();
  CHILD_EQUAL(overwrite[100], 1);
}

int recovers(bool on_a_stack_of_its_own) {
  always_mover();
  const Buffer bad(mib), dst(mib);
  copy_works(mib, 1);
  CHILD_EQUAL(mprotect(bad.data(), mib, PROT_NONE), 0);
  catch_faults(on_a_stack_of_its_own);
  // More often than the queue has room for entries: those of the requests that were left are free.
  for (int round = 0; round < 1100; ++round) {
    fault_and_recover(bad, dst, round % 2 != 0 ? unsigned{HAUL_COMPLETE} : 0u);
    if (round % 100 == 0) works_in_full();
    if (round % 100 == 50) works_deep_down();
  }
  works_in_full();
  CHILD_EQUAL(run_child([] {
                works_in_full();
                return 0;
              }),
              0);
  CHILD_EQUAL(haul_shutdown(), 0);
  return 0;
}

TEST(Longjmp, OutOfAFaultingCopyIsRecoveredFrom) {
  if (sanitizer) GTEST_SKIP() << "a sanitizer takes the fault, and minds the frames";
  EXPECT_EQ(run_child([] { return recovers(false); }), 0);
}

TEST(Longjmp, FromAnAlternateStackToo) {
  if (sanitizer) GTEST_SKIP() << "a sanitizer takes the fault, and minds the frames";
  EXPECT_EQ(run_child([] { return recovers(true); }), 0);
}

// A handler amid an inline copy, on whichever stack: the room that this has in the queue stays its.
const Buffer* late = nullptr;
int taken = 0;

void repair(int) {
  const Buffer src(kib), dst(kib);
  haul_request request = haul_request_copy(dst.data(), src.data(), kib);
  request.flags = HAUL_INLINE | HAUL_COMPLETE;
  haul_ticket ticket;
  taken = haul_submit(&request, 1, &ticket);
  CHILD_EQUAL(mprotect(late->data(), late->size(), PROT_READ | PROT_WRITE), 0);
}

int keeps_its_room(bool on_a_stack_of_its_own) {
  always_mover();
  const Buffer src(mib), dst(mib);
  late = &src;
  src.fill(3);
  copy_works(mib, 1);
  catch_faults(on_a_stack_of_its_own);
  struct sigaction action {};
  CHILD_EQUAL(sigaction(SIGSEGV, nullptr, &action), 0);
  action.sa_handler = repair;
  CHILD_EQUAL(sigaction(SIGSEGV, &action, nullptr), 0);
  for (int round = 0; round < 1100; ++round) {
    CHILD_EQUAL(mprotect(src.data(), mib, PROT_NONE), 0);
    haul_request request = haul_request_copy(dst.data(), src.data(), mib);
    request.flags = HAUL_INLINE | HAUL_COMPLETE;
    haul_ticket ticket;
    taken = 0;
    CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
    CHILD_EQUAL(taken, 1);
    CHILD_EQUAL(std::memcmp(src.data(), dst.data(), mib), 0);
    haul_completion entries[3];
    CHILD_EQUAL(haul_reap(entries, 3), 2);
  }
  return 0;
}

TEST(Longjmp, AHandlerThatReturnsTakesNoRoomAway) {
  if (sanitizer) GTEST_SKIP() << "a sanitizer takes the fault";
  EXPECT_EQ(run_child([] { return keeps_its_room(false); }), 0);
  EXPECT_EQ(run_child([] { return keeps_its_room(true); }), 0);
}

}  // namespace
