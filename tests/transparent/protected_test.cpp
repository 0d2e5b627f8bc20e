// What a program does while a call that has returned is not done, under the plan protected: it must
// find the bytes, and its source as free as after memcpy(). Under libc's plan the same holds
// trivially.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "transparent/under_protection.hpp"

namespace transparent {
namespace {

TEST(Protected, TakesRightsAndGivesThemBack) {
  IN_CHILD({
    const std::uint64_t before = own_table().touches.load();
    for (const bool there : {false, true}) {
      const UnderProtection copy(1, there);
      if (plan_is("protected") && refused(NotShared::no_mover) == 0) {
        CHILD_CHECK(rights_of(copy.to() + size / 2) == "---p");
        CHILD_CHECK(rights_of(copy.from() + size / 2) == "r--p");
      }
      CHILD_CHECK(copy.right());
      CHILD_CHECK(rights_of(copy.to() + size / 2) == "rw-p");
      CHILD_CHECK(rights_of(copy.from() + size / 2) == "rw-p");
    }
    copy_works();  // counts what was waited for
    if (plan_is("protected")) CHILD_CHECK(own_table().touches.load() > before);
  });
}

TEST(Protected, IsWholeWhereverItIsTouchedFirst) {
  IN_CHILD(for (const bool there
                : {false, true}) {
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 8}) {
      for (const std::size_t shift : {std::size_t{0}, std::size_t{8}, std::size_t{4088}}) {
        const UnderProtection copy(2, there, shift, 4096 - shift);
        CHILD_CHECK(copy.right(at, at + 8));
        CHILD_CHECK(copy.right());
        const UnderProtection other(3, there, shift);
        std::thread([&] { CHILD_CHECK(other.right(at, at + 8)); }).join();
        CHILD_CHECK(other.right());
      }
    }
  });
}

TEST(Protected, TheSourceMayBeWritten) {
  IN_CHILD(for (const std::size_t shift
                : {std::size_t{0}, std::size_t{16}}) {
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      const UnderProtection copy(4, true, shift);
      copy.from()[at] ^= 0xff;
      call_memset(copy.from(), 0xee, size);
      CHILD_CHECK(copy.right());
      const UnderProtection other(5, false, shift);
      std::thread([&] { call_memset(other.from(), 0xee, size); }).join();
      CHILD_CHECK(other.right());
    }
  });
}

TEST(Protected, TheDestinationMayBeWritten) {
  IN_CHILD({
    const UnderProtection copy(6);
    copy.to()[size - 1] ^= 0xff;
    copy.to()[size / 2] ^= 0xff;
    CHILD_CHECK(copy.right(8, size / 2));
    CHILD_CHECK(copy.right(size / 2 + 8, size - 8));
    CHILD_CHECK(!copy.right(size / 2, size / 2 + 8) && !copy.right(size - 8, size));
  });
}

// What lies beside the two sides in their first and last pages is never protected.
TEST(Protected, TheNeighboursStayFree) {
  IN_CHILD({
    const Memory from(size + 8192), to(size + 8192);
    from.fill(7);
    call_memcpy(to.data() + 100, from.data() + 200, size);
    const std::uint64_t before = own_table().touches.load();
    int ends[2];
    CHILD_CHECK(pipe(ends) == 0 && write(ends[1], "12345678", 8) == 8);
    CHILD_CHECK(read(ends[0], from.data() + 190, 2) == 2);
    CHILD_CHECK(read(ends[0], from.data() + 200 + size, 2) == 2);
    CHILD_CHECK(read(ends[0], to.data() + 90, 2) == 2);
    CHILD_CHECK(read(ends[0], to.data() + 100 + size, 2) == 2);
    CHILD_CHECK(own_table().touches.load() == before);
    CHILD_CHECK(std::memcmp(to.data() + 100, from.data() + 200, size) == 0);
  });
}

// Copies of copies, of one source, and into pages that the one before has in part.
TEST(Protected, CopiesShareMemory) {
  IN_CHILD({
    const Memory first(size), second(size), third(size), fourth(size), half(size);
    first.fill(8);
    call_memcpy(second.data(), first.data(), size);
    call_memcpy(third.data(), first.data(), size);
    call_memcpy(half.data(), first.data() + size / 4 + 8, size / 2);
    call_memcpy(fourth.data(), second.data(), size);
    call_memset(first.data(), 0, size);
    CHILD_CHECK(second.holds(8, size) && third.holds(8, size) && fourth.holds(8, size));
    for (std::size_t at = 0; at < size / 16; ++at)
      CHILD_CHECK(reinterpret_cast<const std::uint64_t*>(half.data())[at] ==
                  Memory::word(8, at + size / 32 + 1));
  });
  IN_CHILD({
    const Memory from(size), to(size);
    from.fill(9);
    constexpr std::size_t step = 5 * mib + 1000;  // a page in the middle has two copies' bytes
    for (std::size_t at = 0; at < size; at += step)
      call_memcpy(to.data() + at, from.data() + at, std::min(step, size - at));
    CHILD_CHECK(to.holds(9, size));
    for (std::size_t at = 0; at + 2 * mib <= size; at += mib)
      call_memcpy(to.data() + at, from.data() + mib, 2 * mib);
    call_memset(from.data(), 0, size);
    for (std::size_t at = 0; at < mib / 8; ++at)
      CHILD_CHECK(reinterpret_cast<const std::uint64_t*>(to.data())[at] ==
                  Memory::word(9, at + mib / 8));
  });
}

// The end of one copy must not free the source of another.
TEST(Protected, ASourceIsFreeWhenTheLastIsDone) {
  IN_CHILD(for (int turn = 0; turn < 3; ++turn) {
    const Memory from(size), first(mib), second(size);
    from.fill(31);
    constexpr std::size_t part = size - 3 * mib;  // where the second copy comes late
    call_memcpy(first.data(), from.data() + part, mib);
    call_memcpy(second.data(), from.data(), size);
    CHILD_CHECK(*reinterpret_cast<std::uint64_t*>(first.data() + 8192) ==
                Memory::word(31, part / 8 + 1024));
    from.data()[part + 4096] ^= 1;
    CHILD_CHECK(second.holds(31, size));
  });
}

TEST(Protected, ManyArePendingAtOnce) {
  IN_CHILD({
    constexpr std::size_t copies = 100, each = 2 * mib;
    const Memory from(copies * each), to(copies * each);
    from.fill(10);
    for (std::size_t i = 0; i < copies; ++i)
      call_memcpy(to.data() + i * each, from.data() + i * each, each);
    CHILD_CHECK(to.holds(10, copies * each));
    from.data()[0] = from.data()[copies * each - 1] = 0;
  });
}

TEST(Protected, MemoryMayGo) {
  IN_CHILD({
    // The source: unmapped, given back, forbidden, moved, mapped over.
    for (int how = 0; how < 5; ++how) {
      const UnderProtection copy(11, how % 2 == 0);
      void* const from = copy.from();
      if (how == 0) CHILD_CHECK(munmap(from, size) == 0);
      if (how == 1) CHILD_CHECK(madvise(from, size, MADV_DONTNEED) == 0);
      if (how == 2) CHILD_CHECK(mprotect(from, size, PROT_NONE) == 0);
      if (how == 3) CHILD_CHECK(mremap(from, size, 2 * size, MREMAP_MAYMOVE) != MAP_FAILED);
      if (how == 4)
        CHILD_CHECK(mmap(from, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                    from);
      CHILD_CHECK(copy.right());
      if (how == 2) CHILD_CHECK(rights_of(from) == "---p");
    }
    // The destination: unmapped, given back, moved.
    for (int how = 0; how < 3; ++how) {
      const UnderProtection copy(12);
      if (how == 0) CHILD_CHECK(munmap(copy.to(), size) == 0);
      if (how == 1) CHILD_CHECK(madvise(copy.to(), size, MADV_DONTNEED) == 0);
      if (how == 1)
        for (std::size_t at = 0; at < size; at += 512) CHILD_CHECK(copy.to()[at] == 0);
      if (how != 2) continue;
      auto* const now =
          static_cast<std::uint64_t*>(mremap(copy.to(), size, 4 * size, MREMAP_MAYMOVE));
      for (std::size_t at = 0; at < size / 8; ++at) CHILD_CHECK(now[at] == Memory::word(12, at));
    }
  });
}

TEST(Protected, MallocTakesMemoryBack) {
  IN_CHILD({
    for (int how = 0; how < 4; ++how) {
      auto* from = static_cast<std::uint64_t*>(std::malloc(size));
      for (std::size_t at = 0; at < size / 8; ++at) from[at] = Memory::word(13, at);
      void* to = std::malloc(size);
      call_memcpy(to, from, size);
      void* again = nullptr;
      if (how == 0) std::free(from);
      if (how == 1) again = std::realloc(from, 64);
      if (how == 2) again = std::realloc(from, 3 * size);
      if (how == 3) to = std::realloc(to, 3 * size);
      for (std::size_t at = 0; at < size / 8; ++at)
        CHILD_CHECK(static_cast<std::uint64_t*>(to)[at] == Memory::word(13, at));
      std::free(to);
      std::free(again);
      call_memcpy(to = std::malloc(size), from = static_cast<std::uint64_t*>(std::malloc(size)),
                  size);
      std::free(to);
      std::free(from);
    }
  });
}

TEST(Protected, ForkIsASnapshot) {
  IN_CHILD({
    const UnderProtection copy(14);
    const pid_t child = start_child([&] {
      CHILD_CHECK(copy.right());
      call_memset(copy.from(), 0, size);
      copy_works();
    });
    call_memset(copy.from(), 1, size);
    CHILD_CHECK(end_of(child) == 0);
    CHILD_CHECK(copy.right());
  });
}

// Threads copy and touch while another forks and forks: no child may find memory protected.
TEST(Protected, ForksAmongCopies) {
  IN_CHILD({
    std::atomic<bool> stop{false};
    const Memory shared(4 * mib);
    shared.fill(15);
    std::thread copier([&] {
      while (!stop.load()) {
        const Memory to(4 * mib);
        call_memcpy(to.data(), shared.data(), 4 * mib);
        CHILD_CHECK(to.holds(15, 4 * mib));
      }
    });
    for (int turn = 0; turn < 30; ++turn) {
      const pid_t child = start_child([&] {
        CHILD_CHECK(rights_of(shared.data() + 2 * mib) == "rw-p");
        CHILD_CHECK(shared.holds(15, 4 * mib));
        shared.data()[2 * mib] = 0;
      });
      CHILD_CHECK(end_of(child) == 0);
    }
    stop.store(true);
    copier.join();
  });
}

TEST(Protected, VforkSharesIt) {
  IN_CHILD({
    const UnderProtection copy(16);
    const pid_t child = vfork();
    if (child == 0)
      _exit(copy.to()[size - 8] == static_cast<unsigned char>(Memory::word(16, size / 8 - 1)) ? 0
                                                                                              : 1);
    CHILD_CHECK(end_of(child) == 0);
    CHILD_CHECK(copy.right());
  });
}

// A fork that libc does not see: the child has the memory, and no mover.
TEST(Protected, AChildThatNobodyKnowsOf) {
  IN_CHILD({
    const UnderProtection copy(32);
    long child = SYS_fork;
    asm volatile("syscall" : "+a"(child) : : "rcx", "r11", "memory");
    if (child == 0) {
      const bool right = copy.right();
      copy.from()[5] = 1;
      long result = SYS_exit_group;
      asm volatile("syscall" : "+a"(result) : "D"(right ? 0L : 1L) : "rcx", "r11", "memory");
    }
    CHILD_CHECK(end_of(static_cast<pid_t>(child)) == 0);
    CHILD_CHECK(copy.right());
  });
}

TEST(Protected, EndsWithCopiesUnderWay) {
  IN_CHILD({ const UnderProtection copy(17); });
  IN_CHILD({
    const UnderProtection copy(17);
    std::exit(0);
  });
  IN_CHILD({
    const UnderProtection copy(17);
    execl("/bin/true", "true", nullptr);
    _exit(1);
  });
  EXPECT_EQ(end_of_child(
                [] {
                  const UnderProtection copy(17);
                  kill(getpid(), SIGKILL);
                },
                1000 + SIGKILL),
            1000 + SIGKILL);
}

TEST(Protected, OthersTouchItAtTheSameTime) {
  IN_CHILD(for (int turn = 0; turn < 4; ++turn) {
    const UnderProtection copy(18, turn % 2 == 0);
    std::thread readers[4];
    for (std::size_t i = 0; i < 4; ++i)
      readers[i] =
          std::thread([&, i] { CHILD_CHECK(copy.right(i * size / 4, (i + 1) * size / 4)); });
    std::thread writer([&] { call_memset(copy.from(), 0, size); });
    for (std::thread& reader : readers) reader.join();
    writer.join();
  });
}

TEST(Protected, DescriptorsMayBeClosed) {
  IN_CHILD({
    for (int turn = 0; turn < 3; ++turn) {
      const UnderProtection copy(19);
      syscall(SYS_close_range, 3u, ~0u, 0u);
      CHILD_CHECK(copy.right());
    }
  });
}

}  // namespace
}  // namespace transparent
