// A process changes what it is while haul's threads run: session, root directory, descriptor table,
// user, dumpability, name space, stack limits. Copies go on, made by the mover that was there.
#include <grp.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/stat.h>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

// A mover that has worked, so that the change meets all of haul's threads and descriptors.
void start_haul() {
  always_mover();
  copy_works(mib, 1);
  haul_wake();
  copy_works(4 * mib, 2);
}

// Copies of each size and kind, a fork and the end of haul: what any program may ask of it.
int still_works() {
  copy_works(100, 3);
  copy_works(mib, 4);
  haul_wake();
  copy_works(8 * mib, 5);
  CHILD_EQUAL(haul_free(haul_alloc(mib)), 0);
  // (A sanitizer's own locks do not survive a fork of threads.)
  if (!sanitizer) {
    CHILD_EQUAL(run_child([] {
                  copy_works(mib, 6);
                  return 0;
                }),
                0);
  }
  CHILD_EQUAL(haul_shutdown(), 0);
  return 0;
}

TEST(Personality, ANewSession) {
  EXPECT_EQ(run_child([] {
              start_haul();
              CHILD_CHECK(setsid() != -1);
              return still_works();
            }),
            0);
}

TEST(Personality, AnotherUserForGood) {
  if (unprivileged()) GTEST_SKIP() << "only root may change its user";
  EXPECT_EQ(run_child([] {
              start_haul();
              CHILD_EQUAL(setgroups(0, nullptr), 0);
              CHILD_EQUAL(setresgid(65534, 65534, 65534), 0);
              CHILD_EQUAL(setresuid(65534, 65534, 65534), 0);
              return still_works();
            }),
            0);
}

TEST(Personality, AnotherUserForAWhile) {
  if (unprivileged()) GTEST_SKIP() << "only root may change its user";
  EXPECT_EQ(run_child([] {
              start_haul();
              CHILD_EQUAL(seteuid(65534), 0);
              copy_works(4 * mib, 7);
              CHILD_EQUAL(seteuid(0), 0);
              return still_works();
            }),
            0);
}

TEST(Personality, AnotherRootDirectory) {
  if (unprivileged()) GTEST_SKIP() << "only root may change its root directory";
  char directory[] = "/tmp/haul-edges-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  EXPECT_EQ(run_child([&] {
              start_haul();
              CHILD_EQUAL(chroot(directory), 0);
              CHILD_EQUAL(chdir("/"), 0);
              return still_works();
            }),
            0);
  // Before its first call: nothing of /proc or /sys is to be had.
  EXPECT_EQ(run_child([&] {
              CHILD_EQUAL(chroot(directory), 0);
              CHILD_EQUAL(chdir("/"), 0);
              start_haul();
              return still_works();
            }),
            0);
  rmdir(directory);
}

TEST(Personality, ADescriptorTableOfItsOwn) {
  EXPECT_EQ(run_child([] {
              start_haul();
              // The caller's thread gets a table of its own; haul's threads keep the old one.
              CHILD_EQUAL(unshare(CLONE_FILES), 0);
              return still_works();
            }),
            0);
}

TEST(Personality, AFileSystemViewOfItsOwn) {
  EXPECT_EQ(run_child([] {
              start_haul();
              CHILD_EQUAL(unshare(CLONE_FS), 0);
              CHILD_EQUAL(chdir("/proc"), 0);
              umask(0777);
              return still_works();
            }),
            0);
}

TEST(Personality, NotDumpable) {
  EXPECT_EQ(run_child([] {
              start_haul();
              CHILD_EQUAL(prctl(PR_SET_DUMPABLE, 0), 0);
              return still_works();
            }),
            0);
  EXPECT_EQ(run_child([] {
              CHILD_EQUAL(prctl(PR_SET_DUMPABLE, 0), 0);
              start_haul();
              return still_works();
            }),
            0);
}

TEST(Personality, NoNewPrivilegesAndAFilterOfSystemCalls) {
  if (sanitizer) GTEST_SKIP() << "sanitizers make system calls of their own";
  EXPECT_EQ(run_child([] {
              start_haul();
              CHILD_CHECK(refuse_system_calls(
                  {SYS_socket, SYS_memfd_create, SYS_sched_setaffinity, SYS_process_vm_readv,
                   SYS_pidfd_open, SYS_userfaultfd, SYS_connect},
                  EPERM));
              copy_works(100, 3);
              copy_works(8 * mib, 5);
              CHILD_EQUAL(haul_shutdown(), 0);
              return 0;
            }),
            0);
}

TEST(Personality, ANetworkOfItsOwn) {
  if (unprivileged()) GTEST_SKIP() << "only root may leave its network";
  EXPECT_EQ(run_child([] {
              start_haul();
              // The lease is a name in the network's name space.
              if (unshare(CLONE_NEWNET) != 0) return skip_status;
              return still_works();
            }) % skip_status,
            0);
}

}  // namespace
