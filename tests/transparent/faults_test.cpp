// Copies that fault: the program's handlers see what they would see without the library, on the
// thread that copies, and may leave by siglongjmp().
#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/syscall.h>

#include "transparent/support.hpp"

namespace {

using namespace transparent;

sigjmp_buf guard;
volatile sig_atomic_t faults = 0;
volatile pid_t fault_thread = 0;
void* volatile fault_address = nullptr;

pid_t this_thread() {
  return static_cast<pid_t>(syscall(SYS_gettid));
}

void leave(int, siginfo_t* info, void*) {
  faults = faults + 1;
  fault_thread = this_thread();
  fault_address = info->si_addr;
  siglongjmp(guard, 1);
}

void handle_faults(bool on_a_stack_of_its_own = false) {
  static unsigned char stack[128 * kib];
  struct sigaction action {};
  action.sa_sigaction = leave;
  action.sa_flags = SA_SIGINFO;
  if (on_a_stack_of_its_own) {
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    CHILD_CHECK(sigaltstack(&alternate, nullptr) == 0);
    action.sa_flags |= SA_ONSTACK;
  }
  CHILD_CHECK(sigaction(SIGSEGV, &action, nullptr) == 0);
  CHILD_CHECK(sigaction(SIGBUS, &action, nullptr) == 0);
}

// One copy that faults within [begin, end), and on this thread.
[[gnu::noinline]] void must_fault(void* to, const void* from, const void* begin, const void* end) {
  const int before = faults;
  if (sigsetjmp(guard, 1) == 0) {
    call_memcpy(to, from, 2 * mib);
    CHILD_CHECK(!"it faults");
  }
  CHILD_CHECK(faults == before + 1);
  CHILD_CHECK(fault_thread == this_thread());
  CHILD_CHECK(fault_address >= begin && fault_address < end);
}

void leaves_and_goes_on(bool on_a_stack_of_its_own) {
  copy_works();
  handle_faults(on_a_stack_of_its_own);
  for (int turn = 0; turn < 30; ++turn) {
    const Memory good(2 * mib), bad(2 * mib);
    good.fill(1);
    // Nothing of it, or its second half, may be touched.
    unsigned char* const hole = bad.data() + (turn % 2 == 0 ? 0 : mib);
    unsigned char* const end = bad.data() + 2 * mib;
    CHILD_CHECK(mprotect(hole, static_cast<std::size_t>(end - hole), PROT_NONE) == 0);
    must_fault(bad.data(), good.data(), hole, end);
    must_fault(good.data(), bad.data(), hole, end);
    copy_works();
    int state = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    CHILD_CHECK(state == PTHREAD_CANCEL_ENABLE);
  }
}

TEST(Faults, AHandlerMayLeaveTheCopy) {
  EXPECT_EQ(run_child([] { leaves_and_goes_on(false); }), 0);
}

TEST(Faults, FromAnAlternateStackToo) {
  EXPECT_EQ(run_child([] { leaves_and_goes_on(true); }), 0);
}

TEST(Faults, OfAFileThatHasShrunkAreBusErrors) {
  EXPECT_EQ(run_child([] {
              handle_faults();
              const Memory good(2 * mib);
              good.fill(2);
              const int file = memfd_create("shrinks", MFD_CLOEXEC);
              for (const int kind : {MAP_SHARED, MAP_PRIVATE}) {
                CHILD_CHECK(ftruncate(file, 2 * mib) == 0);
                auto* const map = static_cast<unsigned char*>(
                    mmap(nullptr, 2 * mib, PROT_READ | PROT_WRITE, kind, file, 0));
                CHILD_CHECK(map != MAP_FAILED);
                CHILD_CHECK(ftruncate(file, mib) == 0);
                must_fault(map, good.data(), map + mib, map + 2 * mib);
                must_fault(good.data(), map, map + mib, map + 2 * mib);
                munmap(map, 2 * mib);
              }
              copy_works();
            }),
            0);
}

// A mover that was there before the program began to handle faults gets none of them.
TEST(Faults, AreNeverSeenOnAnotherThread) {
  EXPECT_EQ(run_child([] {
              for (int turn = 0; turn < 10; ++turn) copy_works(4 * mib);
              handle_faults();
              const Memory good(2 * mib), bad(2 * mib);
              good.fill(1);
              for (std::size_t at = 0; at < 2 * mib; at += 64 * kib) {
                unsigned char* const hole = bad.data() + at;
                CHILD_CHECK(mprotect(bad.data(), 2 * mib, PROT_READ | PROT_WRITE) == 0);
                CHILD_CHECK(mprotect(hole, 4096, PROT_NONE) == 0);
                must_fault(bad.data(), good.data(), hole, hole + 4096);
                must_fault(good.data(), bad.data(), hole, hole + 4096);
              }
            }),
            0);
}

void repair(int, siginfo_t* info, void*) {
  faults = faults + 1;
  fault_thread = this_thread();
  const std::uintptr_t page =
      reinterpret_cast<std::uintptr_t>(info->si_addr) & ~std::uintptr_t{4095};
  if (mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE) != 0) _exit(1);
}

// As checkpointers and collectors do that follow what is written.
TEST(Faults, AHandlerMayRepairPageByPage) {
  EXPECT_EQ(run_child([] {
              struct sigaction action {};
              action.sa_sigaction = repair;
              action.sa_flags = SA_SIGINFO;
              CHILD_CHECK(sigaction(SIGSEGV, &action, nullptr) == 0);
              const Memory from(2 * mib), to(2 * mib);
              from.fill(6);
              CHILD_CHECK(mprotect(to.data(), 2 * mib, PROT_READ) == 0);
              call_memcpy(to.data(), from.data(), 2 * mib);
              CHILD_CHECK(to.holds(6, 2 * mib));
              CHILD_CHECK(faults == 512 && fault_thread == this_thread());
            }),
            0);
}

TEST(Faults, ThatNobodyHandlesEndTheProgram) {
  EXPECT_EQ(run_child([] {
              copy_works();
              const Memory good(2 * mib), bad(2 * mib);
              CHILD_CHECK(mprotect(bad.data() + mib, mib, PROT_NONE) == 0);
              call_memcpy(bad.data(), good.data(), 2 * mib);
            }),
            1000 + SIGSEGV);
}

}  // namespace
