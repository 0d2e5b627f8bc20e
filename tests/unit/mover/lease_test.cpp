// The lease: one holder at a time, given back, and not inherited.
#include "mover/cores/lease.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/knobs.hpp"

namespace haul {
namespace {

// Lease 15: no mover of another test or process wants it.
constexpr unsigned index = 15;

int in_child(int (*body)()) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Lease, OneProcessAtATimeHoldsIt) {
  if (knob_number(Knob::mover_lease) == 1)
    GTEST_SKIP() << "HAUL_MOVER_LEASE=off grants every lease";
  ASSERT_EQ(take_lease(index), Code::ok);
  EXPECT_EQ(take_lease(index), Code::ok) << "it is ours already";
  EXPECT_EQ(in_child([] {
              drop_inherited_leases();
              return take_lease(index) == Code::again ? 0 : 1;
            }),
            0)
      << "the child's copy of the socket is not a lease, and the parent still holds it";
  drop_lease(index);
  EXPECT_EQ(in_child([] { return take_lease(index) == Code::ok ? 0 : 1; }), 0);
  EXPECT_EQ(take_lease(index), Code::ok) << "the child is dead, so its lease is free";
  drop_lease(index);
  drop_lease(index);
}

TEST(Lease, IsLostWithItsSocket) {
  if (knob_number(Knob::mover_lease) == 1)
    GTEST_SKIP() << "HAUL_MOVER_LEASE=off grants every lease";
  EXPECT_EQ(in_child([] {
              if (take_lease(index) != Code::ok || !holds_lease(index)) return 1;
              closefrom(3);
              if (holds_lease(index)) return 2;
              const int own = memfd_create("own", 0);  // at the lease's number, in all likelihood
              drop_lease(index);
              if (fcntl(own, F_GETFD) != 0) return 3;
              return take_lease(index) == Code::ok && holds_lease(index) ? 0 : 4;
            }),
            0);
}

}  // namespace
}  // namespace haul
