// Calls that have returned before their bytes are there (plan deferred): whatever the program does
// next, it must find the bytes, and its source as free as after memcpy(). Under the other plans the
// same holds trivially.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <thread>

#include "transparent/deferrals.hpp"
#include "transparent/support.hpp"

namespace transparent {
namespace {

constexpr std::size_t size = 32 * mib;

// A copy into new memory that is, under the plan, under way when the constructor returns.
class UnderWay {
 public:
  explicit UnderWay(std::uint64_t seed, std::size_t shift = 0)
      : from_(size + 4096), to_(size + 4096), seed_(seed), shift_(shift) {
    from_.fill(seed);
    begin();
  }
  // (A mover that is just being made or given up refuses.)
  void begin() {
    const std::uint64_t before = deferrals_begun();
    CHILD_CHECK(call_memcpy(to(), from_.data(), size) == to());
    if (plan_is("deferred") && can_defer()) CHILD_CHECK(deferrals_begun() == before + 1);
  }
  unsigned char* from() const { return from_.data(); }
  unsigned char* to() const { return to_.data() + shift_; }
  std::uint64_t word(std::size_t at) const { return Memory::word(seed_, at); }
  bool right(std::size_t begin = 0, std::size_t end = size) const {
    for (std::size_t at = begin / 8; at < end / 8; ++at) {
      std::uint64_t found;
      __builtin_memcpy(&found, to() + at * 8, 8);
      if (found != word(at)) return false;
    }
    return true;
  }

 private:
  Memory from_, to_;
  std::uint64_t seed_;
  std::size_t shift_;
};

// Does the plan defer at all? Then the last page is not there yet, and a touch is waited for.
TEST(Deferred, ReturnsBeforeTheBytesAreThere) {
  if (!plan_is("deferred")) return;
  if (!can_defer())
    GTEST_SKIP() << "the kernel does not let this user have a userfaultfd that serves it";
  const std::uint64_t before = touches();
  int missing = 0;
  for (int turn = 0; turn < 8; ++turn) {
    const UnderWay copy(1);
    unsigned char resident = 1;
    mincore(copy.to() + size - 4096, 4096, &resident);
    missing += (resident & 1) == 0;
    ASSERT_TRUE(copy.right(size - 4096, size));
    ASSERT_TRUE(copy.right());
  }
  EXPECT_GT(missing, 0);
  copy_works();  // counts what was waited for
  EXPECT_GT(touches(), before);
}

TEST(Deferred, IsWholeWhereverItIsTouchedFirst) {
  IN_CHILD(for (const std::size_t shift
                : {std::size_t{0}, std::size_t{8}, std::size_t{4088}}) {
    const UnderWay copy(2, shift);
    for (std::size_t at = size - 8; at > mib; at -= mib + 40) CHILD_CHECK(copy.right(at, at + 8));
    CHILD_CHECK(copy.right());
  });
}

TEST(Deferred, TheSourceMayBeWritten) {
  IN_CHILD(for (const std::size_t shift
                : {std::size_t{0}, std::size_t{16}}) {
    const UnderWay copy(3, shift);
    for (std::size_t at = size; at >= 4096 * 37; at -= 4096 * 37) copy.from()[at - 1] = 0;
    call_memset(copy.from(), 0xee, size);
    CHILD_CHECK(copy.right());
  });
}

TEST(Deferred, TheDestinationMayBeWritten) {
  IN_CHILD({
    const UnderWay copy(4);
    copy.to()[size - 1] ^= 0xff;
    copy.to()[size / 2] ^= 0xff;
    CHILD_CHECK(copy.right(8, size / 2));
    CHILD_CHECK(copy.right(size / 2 + 8, size - 8));
    CHILD_CHECK(!copy.right(size / 2, size / 2 + 8) && !copy.right(size - 8, size));
  });
}

TEST(Deferred, Chains) {
  IN_CHILD({
    const UnderWay first(5);
    const Memory second(size), third(size);
    call_memcpy(second.data(), first.to(), size);
    call_memcpy(third.data(), second.data(), size);
    call_memset(first.from(), 0, size);
    CHILD_CHECK(third.holds(5, size));
    CHILD_CHECK(second.holds(5, size));
  });
}

// Two copies of one source, then copies that share its pages in part.
TEST(Deferred, ManyReadOneSource) {
  IN_CHILD({
    const Memory from(size), all(size), again(size), front(size / 2), back(size / 2);
    from.fill(6);
    call_memcpy(all.data(), from.data(), size);
    call_memcpy(again.data(), from.data(), size);
    call_memcpy(front.data(), from.data(), size / 2);
    call_memcpy(back.data(), from.data() + size / 4 + 8, size / 2);
    call_memset(from.data(), 0, size);
    CHILD_CHECK(all.holds(6, size) && again.holds(6, size) && front.holds(6, size / 2));
    for (std::size_t at = 0; at < size / 16; ++at)
      CHILD_CHECK(reinterpret_cast<const std::uint64_t*>(back.data())[at] ==
                  Memory::word(6, at + size / 32 + 1));
  });
}

TEST(Deferred, SystemCallsReadAndWriteIt) {
  if (system_calls_may_fail()) return;
  IN_CHILD({
    const UnderWay copy(7);
    int ends[2];
    CHILD_CHECK(pipe(ends) == 0);
    std::uint64_t word = 0;
    for (const std::size_t at : {size - 4096, size / 2, size / 4}) {
      CHILD_CHECK(write(ends[1], copy.to() + at, 8) == 8 && read(ends[0], &word, 8) == 8);
      CHILD_CHECK(word == copy.word(at / 8));
    }
    // Into the source, and into the destination.
    CHILD_CHECK(write(ends[1], "ABCDEFGHabcdefgh", 16) == 16);
    CHILD_CHECK(read(ends[0], copy.from() + size - 8, 8) == 8);
    CHILD_CHECK(read(ends[0], copy.to() + size / 8, 8) == 8);
    CHILD_CHECK(copy.right(size - 8, size) &&
                std::memcmp(copy.to() + size / 8, "abcdefgh", 8) == 0);
    CHILD_CHECK(copy.right(size / 8 + 8, size));
  });
}

TEST(Deferred, SocketsSendIt) {
  if (system_calls_may_fail()) return;
  IN_CHILD({
    const UnderWay copy(8);
    int ends[2];
    CHILD_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    std::thread sender([&] {
      for (std::size_t sent = 0; sent < size;) {
        const iovec parts[2] = {{copy.to() + sent, 8}, {copy.to() + sent + 8, size - sent - 8}};
        const ssize_t now = writev(ends[1], parts, size - sent > 8 ? 2 : 1);
        CHILD_CHECK(now > 0);
        sent += static_cast<std::size_t>(now);
      }
    });
    std::uint64_t words[512];
    for (std::size_t at = 0; at < size;) {
      CHILD_CHECK(recv(ends[0], words, sizeof words, MSG_WAITALL) == sizeof words);
      for (const std::uint64_t word : words) {
        CHILD_CHECK(word == copy.word(at / 8));
        at += 8;
      }
    }
    sender.join();
  });
}

TEST(Deferred, AnotherProcessReadsIt) {
  if (system_calls_may_fail()) return;
  IN_CHILD({
    const UnderWay copy(9);
    std::uint64_t word = 0;
    const iovec here{&word, 8}, there{copy.to() + size - 8, 8};
    CHILD_CHECK(process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 8);
    CHILD_CHECK(word == copy.word(size / 8 - 1));
  });
}

TEST(Deferred, ForkIsASnapshot) {
  IN_CHILD({
    const UnderWay copy(10);
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

TEST(Deferred, VforkSharesIt) {
  IN_CHILD({
    const UnderWay copy(11);
    const pid_t child = vfork();
    if (child == 0)
      _exit(copy.to()[size - 8] == static_cast<unsigned char>(copy.word(size / 8 - 1)) ? 0 : 1);
    CHILD_CHECK(end_of(child) == 0);
    CHILD_CHECK(copy.right());
  });
}

TEST(Deferred, TheSourceMayGo) {
  IN_CHILD({
    // unmapped, given back, forbidden, moved, mapped over
    for (int how = 0; how < 5; ++how) {
      const UnderWay copy(12);
      void* const from = copy.from();
      if (how == 0) CHILD_CHECK(munmap(from, size) == 0);
      if (how == 1) CHILD_CHECK(madvise(from, size, MADV_DONTNEED) == 0);
      if (how == 2) CHILD_CHECK(mprotect(from, size, PROT_NONE) == 0);
      if (how == 3) CHILD_CHECK(mremap(from, size, 2 * size, MREMAP_MAYMOVE) != MAP_FAILED);
      if (how == 4)
        CHILD_CHECK(mmap(from, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                    from);
      CHILD_CHECK(copy.right());
    }
  });
}

TEST(Deferred, MallocTakesTheSourceBack) {
  IN_CHILD({
    for (int how = 0; how < 3; ++how) {
      auto* from = static_cast<std::uint64_t*>(std::malloc(size));
      for (std::size_t at = 0; at < size / 8; ++at) from[at] = Memory::word(13, at);
      void* const to = std::malloc(size);
      call_memcpy(to, from, size);
      void* again = nullptr;
      if (how == 0) std::free(from);
      if (how == 1) again = std::realloc(from, 64);
      if (how == 2) again = std::realloc(from, 3 * size);
      for (std::size_t at = 0; at < size / 8; ++at)
        CHILD_CHECK(static_cast<std::uint64_t*>(to)[at] == Memory::word(13, at));
      std::free(to);
      std::free(again);
    }
  });
}

TEST(Deferred, TheDestinationMoves) {
  IN_CHILD({
    const Memory from(size);
    from.fill(14);
    // By libc's function; by a system call that nobody sees; by realloc().
    for (int how = 0; how < 3; ++how) {
      // (The kernel moves one mapping at a time, and a page whose first use is waited for is one.)
      if (how == 1 && !plan_is("deferred")) continue;
      constexpr int rights = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
      void* to = how == 2 ? std::malloc(size) : mmap(nullptr, size, rights, flags, -1, 0);
      call_memcpy(to, from.data(), size);
      void* now = nullptr;
      if (how == 0) now = mremap(to, size, 4 * size, MREMAP_MAYMOVE);
      if (how == 1) now = remap_unseen(to, size, 4 * size, MREMAP_MAYMOVE);
      if (how == 2) now = std::realloc(to, 4 * size);
      for (std::size_t at = 0; at < size / 8; ++at)
        CHILD_CHECK(static_cast<std::uint64_t*>(now)[at] == Memory::word(14, at));
    }
  });
}

// New memory where a destination was is new, also if nobody saw that go.
TEST(Deferred, TheDestinationGoes) {
  IN_CHILD({
    for (int how = 0; how < 3; ++how) {
      const UnderWay copy(15);
      void* const to = copy.to();
      if (how == 0) CHILD_CHECK(munmap(to, size) == 0);
      if (how == 1) CHILD_CHECK(madvise(to, size, MADV_DONTNEED) == 0);
      if (how == 2) CHILD_CHECK(unmap_unseen(to, size) == 0);
      constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
      if (how != 1) CHILD_CHECK(mmap(to, size, PROT_READ | PROT_WRITE, flags, -1, 0) == to);
      for (std::size_t at = 0; at < size; at += 512) CHILD_CHECK(copy.to()[at] == 0);
    }
  });
}

// Pages that are given back while a mover is at them read as zero from then on, however close the
// two are. (Of 12,000 pages about fifteen did not, before the turnstile of preload/defer/events.)
TEST(Deferred, PartsOfTheDestinationGoUnseenWhileTheirBytesCome) {
  if (plan_is("protected")) return;  // where the kernel tells nobody
  constexpr std::size_t some = 8 * mib;
  const Memory from(some);
  from.fill(23);
  const unsigned turns = plan_is("deferred") ? 300 : 20;
  unsigned kept = 0, random = 1;
  for (unsigned turn = 0; turn < turns; ++turn) {
    const Memory to(some);
    if (turn % 2 == 1) madvise(to.data(), some, MADV_HUGEPAGE);
    call_memcpy(to.data(), from.data(), some);
    for (unsigned i = 0; i < 40; ++i) {
      random = random * 1664525 + 1013904223;
      unsigned char* const page = to.data() + (random >> 8) % (some / 4096) * 4096;
      ASSERT_EQ(drop_unseen(page, 4096), 0);
      if (*reinterpret_cast<volatile std::uint64_t*>(page + 8) != 0) ++kept;
    }
  }
  EXPECT_EQ(kept, 0u) << "of " << 40 * turns;
}

TEST(Deferred, OthersTouchItAtTheSameTime) {
  IN_CHILD({
    const UnderWay copy(16);
    std::thread readers[4];
    for (std::size_t i = 0; i < 4; ++i)
      readers[i] =
          std::thread([&, i] { CHILD_CHECK(copy.right(i * size / 4, (i + 1) * size / 4)); });
    std::thread writer([&] { call_memset(copy.from(), 0, size); });
    for (std::thread& reader : readers) reader.join();
    writer.join();
  });
}

// A daemon closes all that it did not open.
TEST(Deferred, DescriptorsMayBeClosed) {
  IN_CHILD({
    for (int turn = 0; turn < 3; ++turn) {
      const UnderWay copy(17);
      syscall(SYS_close_range, 3u, ~0u, 0u);
      CHILD_CHECK(copy.right());
    }
  });
}

TEST(Deferred, ThreadsEndAndExecBegins) {
  IN_CHILD({
    const Memory from(size), to(size);
    from.fill(18);
    std::thread([&] { call_memcpy(to.data(), from.data(), size); }).join();
    CHILD_CHECK(to.holds(18, size));
    const UnderWay copy(18);
    execl("/bin/true", "true", nullptr);
    _exit(1);
  });
  IN_CHILD({
    const UnderWay copy(19);
    // (Ends with a copy under way.)
  });
}

volatile const UnderWay* handled = nullptr;
volatile bool right_in_handler = false;

TEST(Deferred, HandlersTouchIt) {
  IN_CHILD({
    struct sigaction action {};
    action.sa_handler = [](int) {
      right_in_handler = const_cast<const UnderWay*>(handled)->right(size - 65536, size);
    };
    sigaction(SIGUSR1, &action, nullptr);
    const UnderWay copy(21);
    handled = &copy;
    raise(SIGUSR1);
    CHILD_CHECK(right_in_handler && copy.right());
  });
}

// A file's memory, shared memory, and what is half there: not deferred, or in part, and right.
TEST(Deferred, OddMemory) {
  IN_CHILD({
    const Memory from(size);
    from.fill(22);
    const auto right = [](const void* at) {
      for (std::size_t i = 0; i < size / 8; ++i)
        if (static_cast<const std::uint64_t*>(at)[i] != Memory::word(22, i)) return false;
      return true;
    };
    constexpr int rights = PROT_READ | PROT_WRITE;
    void* shared = mmap(nullptr, size, rights, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    call_memcpy(shared, from.data(), size);
    const Memory half(size);
    for (std::size_t at = 0; at < size / 2 - 4096; at += 12288) half.data()[at] = 1;
    call_memcpy(half.data(), shared, size);
    call_memset(shared, 0, size);
    CHILD_CHECK(right(half.data()));
    const Memory pieces(size);
    for (std::size_t at = 0; at < size / 2 - 4096; at += 12288) pieces.data()[at] = 1;
    call_memcpy(pieces.data(), from.data(), size);
    CHILD_CHECK(right(pieces.data()));
  });
}

}  // namespace
}  // namespace transparent
