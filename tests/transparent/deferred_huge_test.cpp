// Calls into huge pages that are there (plan deferred): these are put aside until their bytes have
// come. Whatever the program does next, it must find the bytes, what lay before and behind them,
// and its huge pages. Under the other plans the same holds trivially.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "transparent/deferrals.hpp"

namespace transparent {
namespace {

constexpr std::size_t huge = 2 * mib, blocks = 5, room = (blocks + 2) * huge;
constexpr unsigned char old = 0xd0;

// Of the mapping that has this address.
std::size_t huge_bytes_at(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  while (std::getline(maps, line)) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<unsigned long>(address);
      inside = begin <= at && at < end;
    } else if (inside && line.rfind("AnonHugePages:", 0) == 0) {
      return std::strtoul(line.c_str() + 14, nullptr, 10) * kib;
    }
  }
  return 0;
}

// Huge pages that hold old bytes, and a call that overwrites all but `before` of them at the front
// and `behind` at the end, which is under way when the constructor returns. A value below 0: a copy
// of words.
class Overwritten {
 public:
  explicit Overwritten(std::size_t before = 0, std::size_t behind = 0, int value = -1)
      : from_(room), length_(room - before - behind), before_(before), value_(value) {
    void* const map =
        mmap(nullptr, room + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHILD_CHECK(map != MAP_FAILED);
    mapped_ = static_cast<unsigned char*>(map);
    base_ = reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(map) + huge - 1) &
                                             ~(huge - 1));
    madvise(base_, room, MADV_HUGEPAGE);
    std::memset(base_, old, room);
    mprotect(base_, room, PROT_READ | PROT_WRITE);  // waits for it
    is_huge_ = huge_bytes_at(base_ + huge) >= room;
    if (value < 0) from_.fill(3);
  }
  ~Overwritten() { munmap(mapped_, room + huge); }
  Overwritten(const Overwritten&) = delete;
  Overwritten& operator=(const Overwritten&) = delete;

  // (While the kernel changes a mapping it moves no page, so not all are deferred.)
  void begin() {
    if (value_ < 0) {
      call_memcpy(to(), from_.data(), length_);
    } else {
      call_memset(to(), value_, length_);
    }
  }
  bool is_huge() const { return is_huge_; }
  unsigned char* base() const { return base_; }
  unsigned char* to() const { return base_ + before_; }
  unsigned char* from() const { return from_.data(); }
  std::size_t length() const { return length_; }
  bool right(std::size_t begin, std::size_t end) const {
    for (; begin < end && begin % 8 != 0; ++begin)
      if (to()[begin] != byte(begin)) return false;
    for (; begin + 8 <= end; begin += 8) {
      std::uint64_t found;
      __builtin_memcpy(&found, to() + begin, 8);
      if (found != word(begin)) return false;
    }
    for (; begin < end; ++begin)
      if (to()[begin] != byte(begin)) return false;
    return true;
  }
  bool right() const {
    for (std::size_t i = 0; i < before_; ++i)
      if (base_[i] != old) return false;
    for (std::size_t i = before_ + length_; i < room; ++i)
      if (base_[i] != old) return false;
    return right(0, length_);
  }
  unsigned char byte(std::size_t at) const {
    return static_cast<unsigned char>(word(at) >> at % 8 * 8);
  }
  std::uint64_t word(std::size_t at) const {
    return value_ < 0 ? Memory::word(3, at / 8)
                      : static_cast<std::uint64_t>(value_) * 0x0101010101010101u;
  }

 private:
  Memory from_;
  std::size_t length_, before_;
  int value_;
  bool is_huge_ = false;
  unsigned char *mapped_ = nullptr, *base_ = nullptr;
};

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
        long result = SYS_munmap;
        asm volatile("syscall" : "+a"(result) : "D"(at), "S"(bytes) : "rcx", "r11", "memory");
        constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        CHILD_CHECK(result == 0);
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
      register long mode asm("r10") = MREMAP_MAYMOVE | MREMAP_FIXED;
      register void* target asm("r8") = now;
      long result = SYS_mremap;
      asm volatile("syscall"
                   : "+a"(result)
                   : "D"(call.to()), "S"(room), "d"(room), "r"(mode), "r"(target)
                   : "rcx", "r11", "memory");
      CHILD_CHECK(reinterpret_cast<void*>(result) == now);
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

// More than there are places for is not deferred, or in part, and right.
TEST(DeferredHuge, MoreThanThereIsRoomFor) {
  IN_CHILD({
    constexpr std::size_t much = 520 * mib;
    const Memory memory(much);
    madvise(memory.data(), much, MADV_HUGEPAGE);
    for (std::size_t i = 0; i < much; i += 4096) memory.data()[i] = old;
    call_memset(memory.data(), 0x19, much);
    for (std::size_t i = 0; i < much; i += 512) CHILD_CHECK(memory.data()[i] == 0x19);
  });
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
