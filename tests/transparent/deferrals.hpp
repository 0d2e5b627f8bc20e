// What the tests of deferred calls share: whether any are to be expected, how many there were, and
// what plan protected, paper 000's own way, does not keep up (protected_test.cpp).
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "transparent/support.hpp"

namespace transparent {

#define IN_CHILD(...) EXPECT_EQ(run_child([] { __VA_ARGS__ }), 0)

inline std::uint64_t deferred_calls() {
  return counted(&own_table(), static_cast<int>(Way::deferred)).calls;
}
// (A mover, or the thread that serves touches, that is just being made or given up refuses.)
inline std::uint64_t deferrals_begun() {
  return deferred_calls() + refused(NotShared::no_mover) + refused(NotShared::no_userfault);
}
inline std::uint64_t touches() {
  return own_table().touches.load();
}

// System calls on memory that the program may not touch yet fail with EFAULT.
inline bool system_calls_may_fail() {
  return plan_is("protected");
}
// Memory that the program gives back without libc is still thought to be the copy's.
inline bool sees_libc_alone() {
  return plan_is("protected");
}
// The kernel splits huge pages of which a part is protected.
inline bool splits_huge_pages() {
  return plan_is("protected");
}

// May this process have a userfaultfd that serves the kernel's own accesses?
inline bool can_defer() {
  const long fd = syscall(SYS_userfaultfd, O_CLOEXEC);
  if (fd >= 0) close(static_cast<int>(fd));
  const int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (device >= 0) close(device);
  return fd >= 0 || device >= 0;
}

}  // namespace transparent
