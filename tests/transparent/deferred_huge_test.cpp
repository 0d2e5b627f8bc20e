// Calls into huge pages that are there (plan deferred): these are put aside until their bytes have
// come. Whatever the program does next, it must find the bytes, what lay before and behind them,
// and its huge pages. Under the other plans the same holds trivially.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <thread>

#include "transparent/overwritten.hpp"

namespace transparent {
namespace {

constexpr int values[] = {-1, 0, 0x5e};

TEST(DeferredHuge, ReturnsBeforeTheBytesAreThere) {
  if (!plan_is("deferred")) return;
  if (!can_defer())
    GTEST_SKIP() << "the kernel does not let this user have a userfaultfd that serves it";
  const std::uint64_t before = deferred_calls();
  int missing = 0;
  for (int turn = 0; turn < 9; ++turn) {
    Overwritten call(0, 0, values[turn % 3]);
    if (!call.is_huge()) GTEST_SKIP() << "the kernel gives no huge pages now";
    call.begin();
    unsigned char resident = 1;
    mincore(call.to() + room - 4096, 4096, &resident);
    missing += (resident & 1) == 0;
    ASSERT_TRUE(call.right());
    EXPECT_EQ(huge_bytes_at(call.base() + huge), room);
  }
  EXPECT_GT(missing, 0);
  EXPECT_GT(deferred_calls(), before);
}

TEST(DeferredHuge, IsWholeWhereverItIsTouchedFirst) {
  IN_CHILD(for (const int value
                : values) for (const std::size_t before
                               : {std::size_t{0}, std::size_t{8}, huge / 2 + 4088, huge}) {
    for (const std::size_t behind : {std::size_t{0}, std::size_t{24}, huge - 40}) {
      Overwritten call(before, behind, value);
      call.begin();
      const std::size_t middle = call.length() / 2, end = call.length();
      CHILD_CHECK(call.right(middle, middle + 1) && call.right(0, 1) && call.right(end - 1, end));
      CHILD_CHECK(call.right());
      mprotect(call.base(), room, PROT_READ | PROT_WRITE);  // one mapping again
      if (call.is_huge() && !splits_huge_pages())
        CHILD_CHECK(huge_bytes_at(call.base() + huge) == room);
    }
  });
}

TEST(DeferredHuge, MayBeWritten) {
  IN_CHILD(for (const int value
                : values) {
    Overwritten call(8, 8, value);
    call.begin();
    for (std::size_t at = call.length(); at > mib; at -= mib + 4096) {
      call.to()[at - 1] = static_cast<unsigned char>(~call.byte(at - 1));
      if (value < 0) call.from()[at - 1 - 64] ^= 0xff;
    }
    for (std::size_t at = call.length(); at > mib; at -= mib + 4096) {
      CHILD_CHECK(call.to()[at - 1] == static_cast<unsigned char>(~call.byte(at - 1)));
      call.to()[at - 1] = call.byte(at - 1);
    }
    CHILD_CHECK(call.right());
  });
}

TEST(DeferredHuge, TheSourceMayBeWritten) {
  IN_CHILD({
    Overwritten call(16, 0);
    call.begin();
    for (std::size_t at = call.length(); at >= 4096 * 37; at -= 4096 * 37) call.from()[at - 1] = 0;
    call_memset(call.from(), 0xee, call.length());
    CHILD_CHECK(call.right());
    Overwritten again(0, 16);
    again.begin();
    CHILD_CHECK(munmap(again.from(), room) == 0);
    CHILD_CHECK(again.right());
  });
}

// Again and again into the same memory, from it and over it.
TEST(DeferredHuge, Chains) {
  IN_CHILD({
    Overwritten first(8, 8), second(0, huge / 2, 0x11);
    for (int turn = 0; turn < 6; ++turn) {
      first.begin();
      second.begin();
      const Memory copied(room);
      call_memcpy(copied.data(), first.to(), first.length());
      CHILD_CHECK(std::memcmp(copied.data(), first.to(), first.length()) == 0);
      CHILD_CHECK(first.right() && second.right());
      call_memset(first.to(), turn, first.length());
      call_memcpy(second.to(), first.to(), second.length() / 2);
      for (std::size_t i = 0; i < second.length() / 2; i += 77)
        CHILD_CHECK(second.to()[i] == turn && first.to()[i] == turn);
    }
  });
}

TEST(DeferredHuge, SystemCallsReadAndWriteIt) {
  if (system_calls_may_fail()) return;
  IN_CHILD(for (const int value
                : values) {
    Overwritten call(0, 0, value);
    call.begin();
    int ends[2];
    CHILD_CHECK(pipe(ends) == 0);
    unsigned char bytes[8];
    for (const std::size_t at : {room - 4096, room / 2, std::size_t{0}}) {
      CHILD_CHECK(write(ends[1], call.to() + at, 8) == 8 && read(ends[0], bytes, 8) == 8);
      for (std::size_t i = 0; i < 8; ++i) CHILD_CHECK(bytes[i] == call.byte(at + i));
    }
    CHILD_CHECK(write(ends[1], "abcdefgh", 8) == 8);
    CHILD_CHECK(read(ends[0], call.to() + 3 * huge, 8) == 8);
    CHILD_CHECK(std::memcmp(call.to() + 3 * huge, "abcdefgh", 8) == 0);
    CHILD_CHECK(call.right(0, 3 * huge) && call.right(3 * huge + 8, room));
    close(ends[0]);
    close(ends[1]);
  });
}

TEST(DeferredHuge, ForkIsASnapshot) {
  IN_CHILD(for (const int value
                : values) {
    Overwritten call(4096, 8, value);
    call.begin();
    const pid_t child = start_child([&] {
      CHILD_CHECK(call.right());
      call.begin();
      CHILD_CHECK(call.right());
      copy_works();
    });
    CHILD_CHECK(end_of(child) == 0);
    CHILD_CHECK(call.right());
  });
}

// A child has the old pages, too, and must keep them; the kernel moves no page that two have.
TEST(DeferredHuge, AChildSharesThePages) {
  IN_CHILD(for (const int value
                : values) {
    Overwritten call(8, 8, value);
    int ends[2];
    CHILD_CHECK(pipe(ends) == 0);
    const pid_t child = start_child([&] {
      char go = 0;
      CHILD_CHECK(read(ends[0], &go, 1) == 1);
      for (std::size_t i = 0; i < room; i += 8) CHILD_CHECK(call.base()[i] == old);
    });
    // One block is the parent's alone again.
    call.base()[4 * huge] = old;
    call.begin();
    CHILD_CHECK(call.right());
    CHILD_CHECK(write(ends[1], "g", 1) == 1);
    CHILD_CHECK(end_of(child) == 0);
    close(ends[0]);
    close(ends[1]);
  });
}

// By libc's functions, and unmapped by a system call that nobody sees.
TEST(DeferredHuge, TheMemoryGoes) {
  IN_CHILD(for (const int value
                : values) {
    for (int how = 0; how < 4; ++how) {
      Overwritten call(0, 0, value);
      call.begin();
      // All of it, or a part that begins and ends within blocks.
      const bool all = how < 2, unmaps = how % 2 == 1;
      if (unmaps && sees_libc_alone()) continue;
      unsigned char* const at = all ? call.to() : call.to() + huge + 64 * kib;
      const std::size_t bytes = all ? room : 3 * huge;
      if (unmaps) {
        constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        CHILD_CHECK(unmap_unseen(at, bytes) == 0);
        CHILD_CHECK(mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == at);
      } else {
        CHILD_CHECK(madvise(at, bytes, MADV_DONTNEED) == 0);
      }
      for (std::size_t i = 0; i < bytes; i += 512) CHILD_CHECK(at[i] == 0);
      const auto begin = static_cast<std::size_t>(at - call.to());
      CHILD_CHECK(call.right(0, begin) && call.right(begin + bytes, room));
    }
  });
}

TEST(DeferredHuge, TheMemoryMoves) {
  IN_CHILD(for (int how = 0; how < 2; ++how) {
    if (how == 1 && !plan_is("deferred")) continue;
    Overwritten call(0, 0, 0x21);
    call.begin();
    constexpr int rights = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void* const now = mmap(nullptr, room, rights, flags, -1, 0);
    if (how == 0) {
      CHILD_CHECK(mremap(call.to(), room, room, MREMAP_MAYMOVE | MREMAP_FIXED, now) == now);
    } else {
      CHILD_CHECK(remap_unseen(call.to(), room, room, MREMAP_MAYMOVE | MREMAP_FIXED, now) == now);
    }
    for (std::size_t i = 0; i < room; ++i) CHILD_CHECK(static_cast<unsigned char*>(now)[i] == 0x21);
    munmap(now, room);
  });
}

TEST(DeferredHuge, ReallocAndFree) {
  IN_CHILD({
    auto* block = static_cast<unsigned char*>(std::malloc(room));
    madvise(reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(block) + huge) & ~(huge - 1)),
            room - 2 * huge, MADV_HUGEPAGE);
    for (std::size_t i = 0; i < room; ++i) block[i] = old;
    for (int turn = 0; turn < 4; ++turn) {
      call_memset(block + 1, turn, room - 2);
      block = static_cast<unsigned char*>(std::realloc(block, turn % 2 == 0 ? 2 * room : room));
      CHILD_CHECK(block[0] == old);
      for (std::size_t i = 1; i < room - 2; ++i) CHILD_CHECK(block[i] == turn);
    }
    call_memset(block, 7, room);
    std::free(block);
  });
}

// Locked before, and locked or protected meanwhile.
TEST(DeferredHuge, LockedMemory) {
  IN_CHILD(for (int how = 0; how < 4; ++how) {
    Overwritten call(8, 8, how % 2 == 0 ? -1 : 0x31);
    if (how == 0) mlock(call.base(), room);
    call.begin();
    if (how == 1) mlock(call.base() + huge, 2 * huge);
    if (how == 2) CHILD_CHECK(mprotect(call.base(), room, PROT_READ) == 0);
    if (how == 3) mlockall(MCL_CURRENT | MCL_FUTURE);  // (Nothing is put aside any more.)
    CHILD_CHECK(call.right());
    if (how == 3) munlockall();
    if (how == 2) continue;
    call.begin();
    CHILD_CHECK(call.right());
  });
}

TEST(DeferredHuge, ManyAtOnce) {
  IN_CHILD({
    std::thread threads[4];
    for (int i = 0; i < 4; ++i)
      threads[i] = std::thread([i] {
        Overwritten call(8 * static_cast<std::size_t>(i), 8, values[i % 3]);
        for (int turn = 0; turn < 8; ++turn) {
          call.begin();
          CHILD_CHECK(call.right());
          if (turn % 3 == 2) CHILD_CHECK(madvise(call.base() + 2 * huge, huge, MADV_DONTNEED) == 0);
          call.begin();
          std::thread([&] { CHILD_CHECK(call.right(room / 2, room / 2 + huge)); }).join();
          CHILD_CHECK(call.right());
        }
      });
    for (std::thread& one : threads) one.join();
  });
}

TEST(DeferredHuge, HalfAGibibyte) {
  IN_CHILD({
    constexpr std::size_t much = 520 * mib;
    const Memory memory(much);
    madvise(memory.data(), much, MADV_HUGEPAGE);
    for (std::size_t i = 0; i < much; i += 4096) memory.data()[i] = old;
    call_memset(memory.data(), 0x19, much);
    for (std::size_t i = 0; i < much; i += 512) CHILD_CHECK(memory.data()[i] == 0x19);
  });
}

std::size_t address_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  CHILD_CHECK(file >> pages);
  return pages * 4096;
}

// What a call has put aside takes addresses only while it is pending. (The first makes threads, and
// keeps a place for a page of each mover.)
TEST(DeferredHuge, TakesNoAddressesForGood) {
  IN_CHILD({
    Overwritten call;
    std::size_t first = 0;
    for (int turn = 0; turn < 20; ++turn) {
      call.begin();
      CHILD_CHECK(call.right());
      mprotect(call.base(), room, PROT_READ | PROT_WRITE);  // waits for it
      if (turn == 4) first = address_bytes();
    }
    CHILD_CHECK(address_bytes() <= first + 4 * mib);
    CHILD_CHECK(address_bytes() < 256 * mib || !plan_is("deferred"));
  });
}

// A limit counts what is put aside, so there nothing is: the program gets all that it would have
// without.
TEST(DeferredHuge, LeavesLimitedAddressesToTheProgram) {
  for (const auto which : {RLIMIT_AS, RLIMIT_DATA})
    EXPECT_EQ(run_child([&] {
                Overwritten call;
                const rlimit limit{address_bytes() + 8 * huge, RLIM_INFINITY};
                CHILD_CHECK(setrlimit(which, &limit) == 0);
                const std::uint64_t before = deferred_calls();
                call.begin();
                CHILD_CHECK(deferred_calls() == before);
                const Memory most(7 * huge);
                CHILD_CHECK(call.right());
              }),
              0)
        << which;
}

TEST(DeferredHuge, EndsWithTheProcess) {
  IN_CHILD({
    Overwritten call;
    call.begin();
    execl("/bin/true", "true", nullptr);
    _exit(1);
  });
  IN_CHILD({
    Overwritten call;
    call.begin();
    _exit(0);
  });
}

}  // namespace
}  // namespace transparent
