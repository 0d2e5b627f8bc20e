// Another process's memory is reached with the rights of the thread that asks, whoever moves the
// bytes; and memory behind a protection key by who has opened it.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

constexpr std::size_t bytes = 256 * kib;
constexpr int nobody = 65534;

// A process of user `user` whose memory at `at` (mapped before the fork) has `fill` in it. It ends
// with its maker, whatever user that has become.
pid_t start_peer(const Buffer& at, uid_t user, unsigned char fill) {
  int ready[2], life[2];
  CHILD_EQUAL(pipe(ready), 0);
  CHILD_EQUAL(pipe(life), 0);
  const pid_t peer = start_child([&] {
    if (user != 0) {
      CHILD_EQUAL(setresgid(user, user, user), 0);
      CHILD_EQUAL(setresuid(user, user, user), 0);
      CHILD_EQUAL(prctl(PR_SET_DUMPABLE, 1), 0);
    }
    std::memset(at.data(), fill, bytes);
    CHILD_EQUAL(write(ready[1], "r", 1), 1);
    close(life[1]);
    char none;
    return static_cast<int>(read(life[0], &none, 1));
  });
  close(life[0]);
  char byte;
  CHILD_EQUAL(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  return peer;
}

// Copies the peer's memory: 0, or how it failed. By a waiter that helps, or by the mover alone.
int copy_from(haul_space peer, const Buffer& from, const Buffer& to, unsigned flags, bool helps) {
  to.clear();
  haul_request request = haul_request_copy(to.data(), from.data(), bytes);
  request.src.space = peer;
  request.flags = flags;
  haul_ticket ticket;
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  int result = 0;
  while (!helps && (result = haul_test(ticket)) == 0) sched_yield();
  if (helps) result = haul_wait(ticket);
  if (result > 0) result = 0;
  return result;
}

bool all_are(const Buffer& memory, unsigned char value) {
  for (std::size_t at = 0; at < bytes; ++at) {
    if (memory[at] != value) return false;
  }
  return true;
}

// Each way in which a request can be made and carried out.
template <class Check>
void each_way(Check check) {
  for (const unsigned flags : {0u, unsigned{HAUL_INLINE}, unsigned{HAUL_DEDICATED}}) {
    for (const bool helps : {false, true}) check(flags, helps);
  }
}

TEST(Rights, AThreadThatGaveUpItsUserReachesNoMore) {
  if (unprivileged()) GTEST_SKIP() << "only root has a user to give up";
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer theirs(bytes), here(bytes);
              const pid_t peer = start_peer(theirs, 1234, 'S');
              copy_works(mib, 1);
              haul_space space = 0;
              CHILD_EQUAL(haul_space_open(peer, &space), 0);
              each_way([&](unsigned flags, bool helps) {
                CHILD_EQUAL(copy_from(space, theirs, here, flags, helps), 0);
                CHILD_CHECK(all_are(here, 'S'));
              });
              // The system call itself, which changes this thread only.
              CHILD_EQUAL(syscall(SYS_setresuid, nobody, nobody, nobody), 0);
              each_way([&](unsigned flags, bool helps) {
                CHILD_EQUAL(copy_from(space, theirs, here, flags, helps), HAUL_EPERM);
                CHILD_CHECK(all_are(here, 0));
              });
              copy_works(mib, 2);
              return 0;
            }),
            0);
}

// The other way round: the mover lacks what the thread has.
TEST(Rights, AThreadReachesWhatOnlyItMay) {
  if (unprivileged()) GTEST_SKIP() << "only root has a user to give up";
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer theirs(bytes), here(bytes);
              const pid_t peer = start_peer(theirs, 1234, 'S');
              // The mover is made by a thread of less rights.
              pthread_t thread;
              CHILD_EQUAL(pthread_create(
                              &thread, nullptr,
                              [](void*) -> void* {
                                CHILD_EQUAL(syscall(SYS_setresuid, nobody, nobody, nobody), 0);
                                copy_works(mib, 1);
                                return nullptr;
                              },
                              nullptr),
                          0);
              CHILD_EQUAL(pthread_join(thread, nullptr), 0);
              haul_space space = 0;
              CHILD_EQUAL(haul_space_open(peer, &space), 0);
              each_way([&](unsigned flags, bool helps) {
                CHILD_EQUAL(copy_from(space, theirs, here, flags, helps), 0);
                CHILD_CHECK(all_are(here, 'S'));
              });
              return 0;
            }),
            0);
}

// setresuid() of libc changes all threads: the mover's too, and what it then may.
TEST(Rights, AProcessThatGaveUpItsUserReachesWhatThatMay) {
  if (unprivileged()) GTEST_SKIP() << "only root has a user to give up";
  EXPECT_EQ(
      run_child([] {
        always_mover();
        const Buffer theirs(bytes), here(bytes);
        const pid_t peers[] = {start_peer(theirs, 1234, 'S'), start_peer(theirs, nobody, 'N')};
        copy_works(mib, 1);
        haul_space spaces[2];
        for (int i = 0; i < 2; ++i) CHILD_EQUAL(haul_space_open(peers[i], &spaces[i]), 0);
        CHILD_EQUAL(setresgid(nobody, nobody, nobody), 0);
        CHILD_EQUAL(setresuid(nobody, nobody, nobody), 0);
        for (int round = 0; round < 20; ++round) {
          each_way([&](unsigned flags, bool helps) {
            CHILD_EQUAL(copy_from(spaces[0], theirs, here, flags, helps), HAUL_EPERM);
            CHILD_CHECK(all_are(here, 0));
            CHILD_EQUAL(copy_from(spaces[1], theirs, here, flags, helps), 0);
            CHILD_CHECK(all_are(here, 'N'));
          });
          sleep_ms(2);
        }
        return 0;
      }),
      0);
}

// A helper that waits for another's request does not lend it its rights.
TEST(Rights, AWaiterDoesNotLendItsOwn) {
  if (unprivileged()) GTEST_SKIP() << "only root has a user to give up";
  EXPECT_EQ(run_child([] {
              always_mover();
              static const Buffer theirs(bytes), here(bytes);
              static haul_space space = 0;
              static haul_ticket tickets[64];
              const pid_t peer = start_peer(theirs, 1234, 'S');
              CHILD_EQUAL(haul_space_open(peer, &space), 0);
              // Mover and asker are of less rights than the main thread, which waits.
              pthread_t thread;
              CHILD_EQUAL(pthread_create(
                              &thread, nullptr,
                              [](void*) -> void* {
                                CHILD_EQUAL(syscall(SYS_setresuid, nobody, nobody, nobody), 0);
                                copy_works(mib, 1);
                                haul_request request =
                                    haul_request_copy(here.data(), theirs.data(), bytes);
                                request.src.space = space;
                                request.flags = HAUL_DEDICATED;
                                for (haul_ticket& ticket : tickets)
                                  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
                                return nullptr;
                              },
                              nullptr),
                          0);
              CHILD_EQUAL(pthread_join(thread, nullptr), 0);
              for (const haul_ticket ticket : tickets) CHILD_EQUAL(haul_wait(ticket), HAUL_EPERM);
              CHILD_CHECK(all_are(here, 0));
              return 0;
            }),
            0);
}

TEST(Rights, MemoryBehindAProtectionKeyIsCopiedByWhoMayTouchIt) {
  const int probe = pkey_alloc(0, 0);
  if (probe < 0) GTEST_SKIP() << "this CPU or kernel has no protection keys";
  pkey_free(probe);
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(4 * mib), dst(4 * mib);
              src.fill(1);
              copy_works(mib, 1);  // the mover is made, and has opened no key
              const int key = pkey_alloc(0, 0);
              CHILD_CHECK(key > 0);
              CHILD_EQUAL(pkey_mprotect(src.data(), src.size(), PROT_READ | PROT_WRITE, key), 0);
              for (int round = 0; round < 20; ++round) {
                dst.clear();
                CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), src.size())), 0);
                CHILD_CHECK(std::memcmp(dst.data(), src.data(), src.size()) == 0);
                haul_request request = haul_request_copy(dst.data(), src.data(), src.size());
                request.flags = HAUL_DEDICATED;
                haul_ticket ticket;
                CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
                CHILD_EQUAL(haul_wait(ticket), 0);
              }
              CHILD_EQUAL(pkey_free(key), 0);
              return 0;
            }),
            0);
}

}  // namespace
