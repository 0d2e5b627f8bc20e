// What the tests of deferred calls share: whether any are to be expected, and how many there were.
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
// (A mover that is just being made or given up refuses.)
inline std::uint64_t deferrals_begun() {
  return deferred_calls() +
         own_table().refusals[static_cast<std::size_t>(NotShared::no_mover)].load();
}
inline std::uint64_t touches() {
  return own_table().touches.load();
}

inline bool plan_is_deferred() {
  return std::string(std::getenv(plan_variable)) == "deferred";
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
