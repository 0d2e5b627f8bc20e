// SIGKILL at any instant: peers are not harmed, nobody hangs, nothing is left behind.
#include <dirent.h>
#include <gtest/gtest.h>

#include <atomic>

#include "../e2e/support.hpp"

namespace {

using namespace e2e;

struct Mailbox {
  std::atomic<std::uint64_t> address, rounds;
  std::atomic<int> pid;
  std::atomic<bool> stop;
};

Mailbox& mailbox() {
  return *static_cast<Mailbox*>(
      mmap(nullptr, sizeof(Mailbox), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

constexpr std::size_t bytes = 16 * mib;

// The process that writes into a peer dies: the peer goes on with its own copies.
TEST(Killed, TheWriterDiesAndThePeerGoesOn) {
  for (int round = 0; round < 8; ++round) {
    Mailbox& box = mailbox();
    const pid_t peer = start_child([&box] {
      always_mover();
      const Buffer target(bytes);
      box.address = reinterpret_cast<std::uint64_t>(target.data());
      while (!box.stop) copy_works(512 * kib, 1);
      for (std::size_t at = 0; at < bytes; ++at) CHILD_CHECK(target[at] == 0 || target[at] == 0x42);
      return 0;
    });
    const pid_t writer = start_child([&box, peer] {
      always_mover();
      while (box.address == 0) sleep_ms(1);
      haul_space space = 0;
      if (haul_space_open(peer, &space) != 0) return skip_status;
      const Buffer src(bytes);
      std::memset(src.data(), 0x42, bytes);
      for (;;) {
        haul_request request =
            haul_request_copy(reinterpret_cast<void*>(box.address.load()), src.data(), bytes);
        request.dst.space = space;
        request.flags = HAUL_DEDICATED;
        haul_ticket ticket{};
        CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
        ++box.rounds;
        if (box.rounds % 3 == 0) haul_wait(ticket);
      }
      return 0;
    });
    for (int turn = 0; box.rounds < 3 && turn < 3000; ++turn) sleep_ms(1);
    sleep_ms(static_cast<unsigned>(round));
    kill(writer, SIGKILL);
    const int end = end_of(writer);
    box.stop = true;
    EXPECT_EQ(end_of(peer), 0);
    if (end == skip_status) GTEST_SKIP() << "process_vm_writev is refused here";
    EXPECT_EQ(end, 1000 + SIGKILL);
  }
}

// The peer dies: requests end with HAUL_EPEER (or were done before), none hangs.
TEST(Killed, ThePeerDiesAndTheCopyEnds) {
  for (int round = 0; round < 8; ++round) {
    Mailbox& box = mailbox();
    const pid_t peer = start_child([&box] {
      const Buffer target(bytes);
      box.address = reinterpret_cast<std::uint64_t>(target.data());
      for (;;) pause();
      return 0;
    });
    while (box.address == 0) sleep_ms(1);
    const int end = run_child([&box, peer, round] {
      always_mover();
      haul_space space = 0;
      if (haul_space_open(peer, &space) != 0) return skip_status;
      const Buffer src(bytes);
      haul_ticket tickets[16];
      for (haul_ticket& ticket : tickets) {
        haul_request request =
            haul_request_copy(reinterpret_cast<void*>(box.address.load()), src.data(), bytes);
        request.dst.space = space;
        request.flags = HAUL_DEDICATED;
        CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
      }
      for (int i = 0; i < round; ++i) sched_yield();
      kill(peer, SIGKILL);
      for (const haul_ticket& ticket : tickets) {
        const int result = haul_wait(ticket);
        CHILD_CHECK(result == 0 || result == HAUL_EPEER);
      }
      // It is certainly gone by now (a zombie at most: it has no memory).
      for (int turn = 0; turn < 500; ++turn) {
        haul_request request =
            haul_request_copy(reinterpret_cast<void*>(box.address.load()), src.data(), 4096);
        request.dst.space = space;
        haul_ticket ticket{};
        CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
        const int result = haul_wait(ticket);
        CHILD_CHECK(result == 0 || result == HAUL_EPEER);
        if (result == HAUL_EPEER) {
          haul_space again = 0;
          CHILD_EQUAL(haul_space_open(peer, &again), HAUL_EPEER);
          CHILD_EQUAL(haul_space_close(space), 0);
          copy_works(mib, 1);
          return 0;
        }
        sleep_ms(2);
      }
      return 1;
    });
    kill(peer, SIGKILL);
    end_of(peer);
    if (end == skip_status) GTEST_SKIP() << "process_vm_writev is refused here";
    EXPECT_EQ(end, 0);
  }
}

// Files of ours in the memory file system.
int shared_memory_files() {
  int count = 0;
  DIR* directory = opendir("/dev/shm");
  if (directory == nullptr) return 0;
  while (const dirent* entry = readdir(directory)) {
    count += std::strstr(entry->d_name, "haul") != nullptr;
  }
  closedir(directory);
  return count;
}

// Killed at random instants of every kind of work, a hundred times: no file, no shared memory, no
// lease is left.
TEST(Killed, AnyInstantLeavesNothingBehind) {
  const int before = shared_memory_files();
  for (unsigned round = 0; round < 100; ++round) {
    Mailbox& box = mailbox();
    const pid_t victim = start_child([&box] {
      quiet_environment();
      setenv("HAUL_PLAN_MOVER", "thread", 1);
      for (;;) {
        ++box.rounds;
        copy_works(256 * kib, 1);
        haul_wake();
      }
      return 0;
    });
    usleep((round * 7919) % 9000);
    kill(victim, SIGKILL);
    EXPECT_EQ(end_of(victim), 1000 + SIGKILL);
    munmap(&box, sizeof box);
  }
  EXPECT_EQ(shared_memory_files(), before);
  EXPECT_EQ(run_child([] {
              quiet_environment();
              setenv("HAUL_PLAN_MOVER", "thread", 1);
              copy_works(8 * mib, 1);
              return 0;
            }),
            0);
}

}  // namespace
