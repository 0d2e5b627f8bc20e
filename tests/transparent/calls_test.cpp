// Each function that is replaced, as its manual page has it: what it returns, what it leaves alone,
// and how the checked ones end a program.
#include <gtest/gtest.h>

#include "transparent/support.hpp"

extern "C" {
void* __memcpy_chk(void*, const void*, std::size_t, std::size_t) noexcept;
void* __memmove_chk(void*, const void*, std::size_t, std::size_t) noexcept;
void* __mempcpy_chk(void*, const void*, std::size_t, std::size_t) noexcept;
void* __memset_chk(void*, int, std::size_t, std::size_t) noexcept;
void* __mempcpy(void*, const void*, std::size_t) noexcept;
void __bzero(void*, std::size_t) noexcept;
}

namespace {

using namespace transparent;

// Through pointers, as in support.hpp.
void* (*volatile call_mempcpy)(void*, const void*, std::size_t) = mempcpy;
void (*volatile call_bcopy)(const void*, void*, std::size_t) = bcopy;
void (*volatile call_bzero)(void*, std::size_t) = bzero;

constexpr std::size_t size = 2 * mib;

bool all_are(const unsigned char* at, std::size_t length, unsigned char value) {
  for (std::size_t i = 0; i < length; ++i)
    if (at[i] != value) return false;
  return true;
}

TEST(Calls, ReturnWhatLibcReturns) {
  const Memory from(size), to(size);
  from.fill(1);
  EXPECT_EQ(call_memcpy(to.data(), from.data(), size), to.data());
  EXPECT_EQ(call_memmove(to.data(), from.data(), size), to.data());
  EXPECT_EQ(call_memset(to.data(), 0, size), to.data());
  EXPECT_EQ(call_mempcpy(to.data(), from.data(), size), to.data() + size);
  EXPECT_EQ(__mempcpy(to.data(), from.data(), size), to.data() + size);
  EXPECT_EQ(__memcpy_chk(to.data(), from.data(), size, size), to.data());
  EXPECT_EQ(__memmove_chk(to.data(), from.data(), size, size), to.data());
  EXPECT_EQ(__mempcpy_chk(to.data(), from.data(), size, size + 1), to.data() + size);
  EXPECT_EQ(__memset_chk(to.data(), 1, size, ~std::size_t{0}), to.data());
}

template <class Call>
void moves(Call call) {
  const std::uint64_t before = taken_over();
  const Memory from(size), to(size);
  from.fill(7);
  call(to.data(), from.data());
  EXPECT_TRUE(to.holds(7, size));
  EXPECT_EQ(taken_over(), before + 1);
}

TEST(Calls, EachMovesItsBytesAndIsTakenOver) {
  moves([](void* to, const void* from) { call_memcpy(to, from, size); });
  moves([](void* to, const void* from) { call_memmove(to, from, size); });
  moves([](void* to, const void* from) { call_mempcpy(to, from, size); });
  moves([](void* to, const void* from) { __mempcpy(to, from, size); });
  moves([](void* to, const void* from) { call_bcopy(from, to, size); });
  moves([](void* to, const void* from) { __memcpy_chk(to, from, size, size); });
  moves([](void* to, const void* from) { __memmove_chk(to, from, size, size); });
  moves([](void* to, const void* from) { __mempcpy_chk(to, from, size, size); });
}

template <class Call>
void fills(unsigned char value, Call call) {
  const std::uint64_t before = taken_over();
  const Memory to(size);
  to.fill(3);
  call(to.data());
  EXPECT_TRUE(all_are(to.data(), size, value));
  EXPECT_EQ(taken_over(), before + 1);
}

TEST(Calls, EachFillsItsBytesAndIsTakenOver) {
  fills(0xa5, [](void* to) { call_memset(to, 0xa5, size); });
  fills(0x5a, [](void* to) { call_memset(to, 0x7f5a, size); });
  fills(0xff, [](void* to) { __memset_chk(to, -1, size, size); });
  fills(0, [](void* to) { call_bzero(to, size); });
  fills(0, [](void* to) { __bzero(to, size); });
}

TEST(Calls, AreTakenOverFromOneMebibyteOn) {
  const Memory from(size), to(size);
  std::uint64_t before = taken_over();
  call_memcpy(to.data(), from.data(), mib - 1);
  call_memset(to.data(), 0, mib - 1);
  EXPECT_EQ(taken_over(), before);
  call_memcpy(to.data(), from.data(), mib);
  call_memset(to.data(), 0, mib);
  EXPECT_EQ(taken_over(), before + 2);
}

TEST(Calls, ThatOverlapAreRight) {
  for (const std::size_t distance : {std::size_t{8}, std::size_t{4096}, mib}) {
    const Memory up(size + mib), down(size + mib);
    up.fill(5);
    down.fill(5);
    call_memmove(up.data() + distance, up.data(), size);
    call_memmove(down.data(), down.data() + distance, size);
    const auto* moved_up = reinterpret_cast<const std::uint64_t*>(up.data() + distance);
    const auto* moved_down = reinterpret_cast<const std::uint64_t*>(down.data());
    for (std::size_t i = 0; i < size / 8; ++i) {
      ASSERT_EQ(moved_up[i], Memory::word(5, i)) << distance;
      ASSERT_EQ(moved_down[i], Memory::word(5, i + distance / 8)) << distance;
    }
  }
}

TEST(Calls, ToWhereTheyComeFromChangeNothing) {
  const Memory memory(size);
  memory.fill(9);
  EXPECT_EQ(call_memmove(memory.data(), memory.data(), size), memory.data());
  EXPECT_EQ(call_memcpy(memory.data(), memory.data(), size), memory.data());
  EXPECT_TRUE(memory.holds(9, size));
}

TEST(Calls, LeaveErrnoAlone) {
  EXPECT_EQ(run_child([] {
              // The first of a process and the first from a place do more than the others.
              for (int turn = 0; turn < 20; ++turn) {
                const Memory from(size), to(size);
                from.fill(1);
                errno = 4242;
                call_memcpy(to.data(), from.data(), size);
                CHILD_CHECK(errno == 4242);
                call_memset(to.data(), 1, size);
                CHILD_CHECK(errno == 4242);
              }
            }),
            0);
}

// What a child prints that a checked function ends, and how it ends.
struct Ending {
  int status;
  char said[256];
};
template <class Call>
Ending ending_of(Call call) {
  Ending ending{};
  int ends[2];
  if (pipe(ends) != 0) return ending;
  ending.status = run_child([&] {
    setenv("LIBC_FATAL_STDERR_", "1", 1);
    dup2(ends[1], 2);
    const Memory from(size), to(size);
    call(to.data(), from.data());
  });
  close(ends[1]);
  const ssize_t got = read(ends[0], ending.said, sizeof ending.said - 1);
  close(ends[0]);
  ending.said[got > 0 ? got : 0] = '\0';
  return ending;
}

TEST(Calls, ThatAreCheckedEndAProgramThatOverflows) {
  const Ending endings[] = {
      ending_of([](void* to, const void* from) { __memcpy_chk(to, from, size, size - 1); }),
      ending_of([](void* to, const void* from) { __memmove_chk(to, from, size, 0); }),
      ending_of([](void* to, const void* from) { __mempcpy_chk(to, from, 16, 15); }),
      ending_of([](void* to, const void*) { __memset_chk(to, 0, size, mib); }),
  };
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.status, 1000 + SIGABRT);
    EXPECT_STREQ(ending.said, "*** buffer overflow detected ***: terminated\n");
  }
}

}  // namespace
