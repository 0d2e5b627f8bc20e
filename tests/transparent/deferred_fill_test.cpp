// Fills of new memory that have returned before their bytes are there (plan deferred): as
// deferred_test asks of copies, whatever the program does next must find the bytes. Under the other
// plans the same holds trivially.
#include <gtest/gtest.h>
#include <sys/uio.h>

#include <thread>

#include "transparent/deferrals.hpp"

namespace transparent {
namespace {

constexpr std::size_t size = 24 * mib;

// Every byte of [begin, end) is this one.
bool all_are(const unsigned char* at, int value, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i)
    if (at[i] != value) return false;
  return true;
}

// A fill of new memory that is, under the plan, under way when the constructor returns. The bytes
// before and behind it, in pages that it shares, are other ones.
class FillUnderWay {
 public:
  explicit FillUnderWay(int value, std::size_t shift = 0)
      : memory_(size + 8192), value_(value), shift_(shift) {
    if (shift != 0) to()[-1] = to()[size] = static_cast<unsigned char>(~value);
    const std::uint64_t before = deferrals_begun();
    CHILD_CHECK(call_memset(to(), value, size) == to());
    if (plan_is("deferred") && can_defer()) CHILD_CHECK(deferrals_begun() == before + 1);
  }
  unsigned char* to() const { return memory_.data() + shift_; }
  bool right(std::size_t begin = 0, std::size_t end = size) const {
    return all_are(to() + begin, value_, end - begin) &&
           (shift_ == 0 ||
            (to()[-1] == static_cast<unsigned char>(~value_) && to()[size] == to()[-1]));
  }

 private:
  Memory memory_;
  int value_;
  std::size_t shift_;
};

constexpr int values[] = {0, 0xa5, 0xff};

TEST(DeferredFill, ReturnsBeforeTheBytesAreThere) {
  if (!plan_is("deferred")) return;
  if (!can_defer())
    GTEST_SKIP() << "the kernel does not let this user have a userfaultfd that serves it";
  const std::uint64_t before = touches();
  int missing = 0;
  for (int turn = 0; turn < 8; ++turn) {
    const FillUnderWay fill(turn % 2 == 0 ? 0 : 0x5a);
    unsigned char resident = 1;
    mincore(fill.to() + size - 4096, 4096, &resident);
    missing += (resident & 1) == 0;
    ASSERT_TRUE(fill.right(size - 4096, size));
    ASSERT_TRUE(fill.right());
  }
  EXPECT_GT(missing, 0);
  copy_works();  // counts what was waited for
  EXPECT_GT(touches(), before);
}

TEST(DeferredFill, IsWholeWhereverItIsTouchedFirst) {
  IN_CHILD(for (const int value
                : values) for (const std::size_t shift
                               : {std::size_t{0}, std::size_t{8}, std::size_t{4088}}) {
    const FillUnderWay fill(value, shift);
    CHILD_CHECK(fill.right(0, 8));
    CHILD_CHECK(fill.right(size / 2, size / 2 + 8));
    for (std::size_t at = size - 8; at > mib; at -= mib + 40) CHILD_CHECK(fill.right(at, at + 8));
    CHILD_CHECK(fill.right());
  });
}

TEST(DeferredFill, MayBeWritten) {
  IN_CHILD(for (const int value
                : values) {
    const FillUnderWay fill(value);
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) fill.to()[at] ^= 0x11;
    CHILD_CHECK(fill.right(1, size / 2) && fill.right(size / 2 + 1, size - 1));
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1})
      CHILD_CHECK(fill.to()[at] == (value ^ 0x11));
  });
}

// Fills of different values are under way at once, and are touched in turn; one goes into what
// another copies from, one over what another fills.
TEST(DeferredFill, ManyAtOnce) {
  IN_CHILD({
    const FillUnderWay zero(0), ones(0xff), other(0x3c);
    for (std::size_t at = 4096; at < size; at += 3 * mib)
      CHILD_CHECK(ones.right(at, at + 1) && zero.right(at, at + 1) && other.right(at, at + 1));
    const Memory again(size);
    call_memset(again.data(), 1, size);
    call_memset(again.data() + mib, 2, size - 2 * mib);
    CHILD_CHECK(all_are(again.data(), 1, mib) && all_are(again.data() + mib, 2, size - 2 * mib) &&
                all_are(again.data() + size - mib, 1, mib));
    CHILD_CHECK(zero.right() && ones.right() && other.right());
  });
}

TEST(DeferredFill, IsASourceAndADestination) {
  IN_CHILD({
    const FillUnderWay fill(0x77);
    const Memory copied(size);
    call_memcpy(copied.data(), fill.to(), size);
    call_memset(fill.to(), 0x11, size);
    CHILD_CHECK(all_are(copied.data(), 0x77, size));
    CHILD_CHECK(all_are(fill.to(), 0x11, size));
    const FillUnderWay over(0x12);
    copied.fill(1);
    call_memcpy(over.to(), copied.data(), size);
    CHILD_CHECK(std::memcmp(over.to(), copied.data(), size) == 0);
  });
}

TEST(DeferredFill, SystemCallsReadAndWriteIt) {
  IN_CHILD(for (const int value
                : values) {
    const FillUnderWay fill(value);
    int ends[2];
    CHILD_CHECK(pipe(ends) == 0);
    unsigned char bytes[8];
    for (const std::size_t at : {size - 4096, size / 2, std::size_t{0}}) {
      CHILD_CHECK(write(ends[1], fill.to() + at, 8) == 8 && read(ends[0], bytes, 8) == 8);
      CHILD_CHECK(all_are(bytes, value, 8));
    }
    CHILD_CHECK(write(ends[1], "abcdefgh", 8) == 8);
    CHILD_CHECK(read(ends[0], fill.to() + size / 8, 8) == 8);
    CHILD_CHECK(std::memcmp(fill.to() + size / 8, "abcdefgh", 8) == 0);
    CHILD_CHECK(fill.right(0, size / 8) && fill.right(size / 8 + 8, size));
    close(ends[0]);
    close(ends[1]);
  });
}

TEST(DeferredFill, ForkIsASnapshot) {
  IN_CHILD(for (const int value
                : values) {
    const FillUnderWay fill(value);
    const pid_t child = start_child([&] {
      CHILD_CHECK(fill.right());
      call_memset(fill.to(), 9, size);
      copy_works();
    });
    CHILD_CHECK(end_of(child) == 0);
    CHILD_CHECK(fill.right());
  });
}

TEST(DeferredFill, TheMemoryMoves) {
  IN_CHILD({
    // By libc's function; by a system call that nobody sees; by realloc().
    for (int how = 0; how < 3; ++how) {
      // (The kernel moves one mapping at a time, and a page whose first use is waited for is one.)
      if (how == 1 && !plan_is("deferred")) continue;
      constexpr int rights = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
      void* to = how == 2 ? std::malloc(size) : mmap(nullptr, size, rights, flags, -1, 0);
      call_memset(to, 0x21 + how, size);
      void* now = nullptr;
      if (how == 0) now = mremap(to, size, 4 * size, MREMAP_MAYMOVE);
      if (how == 1) now = remap_unseen(to, size, 4 * size, MREMAP_MAYMOVE);
      if (how == 2) now = std::realloc(to, 4 * size);
      CHILD_CHECK(all_are(static_cast<unsigned char*>(now), 0x21 + how, size));
    }
  });
}

// New memory where a fill was is new, also if nobody saw that go.
TEST(DeferredFill, TheMemoryGoes) {
  IN_CHILD({
    for (int how = 0; how < 3; ++how) {
      const FillUnderWay fill(0xee);
      void* const to = fill.to();
      if (how == 0) CHILD_CHECK(munmap(to, size) == 0);
      if (how == 1) CHILD_CHECK(madvise(to, size, MADV_DONTNEED) == 0);
      if (how == 2) CHILD_CHECK(unmap_unseen(to, size) == 0);
      constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
      if (how != 1) CHILD_CHECK(mmap(to, size, PROT_READ | PROT_WRITE, flags, -1, 0) == to);
      for (std::size_t at = 0; at < size; at += 512) CHILD_CHECK(fill.to()[at] == 0);
    }
  });
}

TEST(DeferredFill, MallocTakesItBack) {
  IN_CHILD({
    for (int turn = 0; turn < 12; ++turn) {
      auto* const block = static_cast<unsigned char*>(std::malloc(size));
      call_memset(block, turn, size);
      CHILD_CHECK(block[size - 1] == turn);
      auto* const less = static_cast<unsigned char*>(std::realloc(block, size / 2));
      CHILD_CHECK(all_are(less, turn, size / 2));
      std::free(less);
    }
  });
}

TEST(DeferredFill, OthersTouchItAtTheSameTime) {
  IN_CHILD({
    const FillUnderWay fill(0x44);
    std::thread readers[4];
    for (std::size_t i = 0; i < 4; ++i)
      readers[i] =
          std::thread([&, i] { CHILD_CHECK(fill.right(i * size / 4, (i + 1) * size / 4)); });
    for (std::thread& reader : readers) reader.join();
  });
}

TEST(DeferredFill, EndsWithTheProcess) {
  IN_CHILD({
    const FillUnderWay fill(0x45);
    execl("/bin/true", "true", nullptr);
    _exit(1);
  });
  IN_CHILD({ const FillUnderWay fill(0x46); });
}

// Huge pages or small ones, as the program has it.
TEST(DeferredFill, WhereHugePagesAreForbidden) {
  IN_CHILD(for (const int value
                : values) {
    const Memory memory(size);
    madvise(memory.data(), size, MADV_NOHUGEPAGE);
    call_memset(memory.data(), value, size);
    memory.data()[size / 2] = 7;
    CHILD_CHECK(all_are(memory.data(), value, size / 2));
    CHILD_CHECK(all_are(memory.data() + size / 2 + 1, value, size / 2 - 1));
  });
}

}  // namespace
}  // namespace transparent
