// Marks that are gone, and marks that are under way.
#include "base/thread/stack_mark.hpp"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <sys/mman.h>

#include <new>

#include "base/machine/cpu.hpp"

namespace haul {
namespace {

[[gnu::noinline]] bool below(const StackMark* mark) {
  return StackMark::left_behind(mark, stack_pointer());
}

TEST(StackMark, UnderWayIsNotLeftBehind) {
  const StackMark mark;
  EXPECT_FALSE(below(&mark));
}

TEST(StackMark, ThatLeftByALongjmpIs) {
  static const StackMark* left = nullptr;
  static jmp_buf out;
  struct Deep {
    [[gnu::noinline]] static void leave() {
      const StackMark mark;
      left = &mark;
      longjmp(out, 1);
    }
  };
  if (setjmp(out) == 0) Deep::leave();
  EXPECT_TRUE(StackMark::left_behind(left, stack_pointer()));
}

TEST(StackMark, WhoseBytesAreOthersIs) {
  alignas(StackMark) unsigned char room[sizeof(StackMark)];
  const StackMark* const mark = new (room) StackMark;
  EXPECT_FALSE(below(mark));
  room[3] = static_cast<unsigned char>(room[3] + 1);
  EXPECT_TRUE(below(mark));
}

TEST(StackMark, WhoseStackIsUnmappedIs) {
  void* const room =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  const StackMark* const mark = new (room) StackMark;
  munmap(room, 4096);
  EXPECT_TRUE(below(mark));
}

}  // namespace
}  // namespace haul
