// Signals under the plan protected: a program's handlers may touch what is not there yet, and its
// own faults, handlers of faults and masks are what they are without haul.
#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>

#include <thread>

#include "transparent/under_protection.hpp"

namespace transparent {
namespace {

volatile const UnderProtection* handled = nullptr;
volatile bool right_in_handler = false;

TEST(Protected, HandlersTouchIt) {
  IN_CHILD({
    struct sigaction action {};
    action.sa_handler = [](int) {
      right_in_handler = const_cast<const UnderProtection*>(handled)->right(size - 65536, size);
    };
    sigaction(SIGUSR1, &action, nullptr);
    const UnderProtection copy(21);
    handled = &copy;
    raise(SIGUSR1);
    CHILD_CHECK(right_in_handler && copy.right());
  });
  // One that blocks all signals could not be served: nothing is pending when it is installed.
  IN_CHILD({
    const UnderProtection copy(22);
    struct sigaction action {};
    action.sa_handler = [](int) {
      right_in_handler = const_cast<const UnderProtection*>(handled)->right(size - 65536, size);
    };
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, nullptr);
    CHILD_CHECK(rights_of(copy.to() + size / 2) == "rw-p");
    handled = &copy;
    raise(SIGUSR1);
    CHILD_CHECK(right_in_handler && copy.right());
    copy_works();
  });
  IN_CHILD({
    const UnderProtection copy(23);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    CHILD_CHECK(copy.right());
    const std::uint64_t before = protected_calls();
    copy_works();
    CHILD_CHECK(protected_calls() == before);
  });
}

// ---- the program's own faults

sigjmp_buf guard;
volatile sig_atomic_t faults = 0;
void* volatile fault_address = nullptr;

void leave(int, siginfo_t* info, void*) {
  faults = faults + 1;
  fault_address = info->si_addr;
  siglongjmp(guard, 1);
}
void leave_simply(int) {
  faults = faults + 1;
  siglongjmp(guard, 1);
}

[[gnu::noinline]] void must_fault(unsigned char* at) {
  const int before = faults;
  if (sigsetjmp(guard, 1) == 0) {
    *static_cast<volatile unsigned char*>(at) = 1;
    CHILD_CHECK(!"it faults");
  }
  CHILD_CHECK(faults == before + 1);
}

void handle_faults() {
  struct sigaction action {};
  action.sa_sigaction = leave;
  action.sa_flags = SA_SIGINFO;
  struct sigaction old {};
  CHILD_CHECK(sigaction(SIGSEGV, &action, &old) == 0);
  CHILD_CHECK(old.sa_handler == SIG_DFL && (old.sa_flags & SA_SIGINFO) == 0);
}

TEST(Protected, AProgramThatHandlesFaultsBefore) {
  IN_CHILD({
    handle_faults();
    const std::uint64_t before = protected_calls();
    copy_works();
    CHILD_CHECK(protected_calls() == before);
    const Memory hole(mib);
    must_fault(hole.data() - 1);
    CHILD_CHECK(fault_address == hole.data() - 1);
  });
}

TEST(Protected, AProgramThatHandlesFaultsAfterwards) {
  IN_CHILD({
    const UnderProtection copy(24);
    struct sigaction seen {};
    CHILD_CHECK(sigaction(SIGSEGV, nullptr, &seen) == 0 && seen.sa_handler == SIG_DFL);
    handle_faults();
    CHILD_CHECK(rights_of(copy.to() + size / 2) == "rw-p");
    const int before = faults;
    CHILD_CHECK(copy.right());
    copy.from()[0] = 1;
    CHILD_CHECK(faults == before);
    must_fault(nullptr);
    CHILD_CHECK(fault_address == nullptr);
    const std::uint64_t calls = protected_calls();
    copy_works();
    CHILD_CHECK(protected_calls() == calls);
  });
  IN_CHILD({
    const UnderProtection copy(25);
    CHILD_CHECK(signal(SIGSEGV, leave_simply) == SIG_DFL);
    CHILD_CHECK(copy.right());
    must_fault(nullptr);
    must_fault(nullptr);
  });
}

// Whatever function says it.
TEST(Protected, AProgramThatIgnoresOrBlocksFaults) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  constexpr int fault_bit = 1 << (SIGSEGV - 1);
  using Deed = void();
  Deed* const deeds[] = {[] { sigignore(SIGSEGV); }, [] { sighold(SIGSEGV); },
                         [] { sigblock(fault_bit); }, [] { sigsetmask(fault_bit); }};
#pragma GCC diagnostic pop
  for (Deed* const deed : deeds)
    EXPECT_EQ(end_of_child([&] {
                const UnderProtection copy(32);
                deed();
                CHILD_CHECK(copy.right());
                copy.from()[0] = 1;
                const std::uint64_t calls = protected_calls();
                copy_works();
                CHILD_CHECK(protected_calls() == calls);
              }),
              0);
}

TEST(Protected, RealFaultsEndTheProgram) {
  EXPECT_EQ(end_of_child(
                [] {
                  const UnderProtection copy(26);
                  *static_cast<volatile int*>(nullptr) = 1;
                },
                1000 + SIGSEGV),
            1000 + SIGSEGV);
  EXPECT_EQ(end_of_child(
                [] {
                  const UnderProtection copy(27);
                  CHILD_CHECK(copy.right());
                  const Memory only(mib);
                  mprotect(only.data(), mib, PROT_READ);
                  only.data()[5] = 1;
                },
                1000 + SIGSEGV),
            1000 + SIGSEGV);
  EXPECT_EQ(end_of_child(
                [] {
                  const UnderProtection copy(28);
                  raise(SIGSEGV);
                },
                1000 + SIGSEGV),
            1000 + SIGSEGV);
  // A thread that runs out of its stack.
  EXPECT_EQ(end_of_child(
                [] {
                  const UnderProtection copy(29);
                  std::thread([] {
                    volatile unsigned char* at =
                        static_cast<unsigned char*>(__builtin_frame_address(0));
                    for (;; at -= 512) *at = 1;
                  }).join();
                },
                1000 + SIGSEGV),
            1000 + SIGSEGV);
}

}  // namespace
}  // namespace transparent
