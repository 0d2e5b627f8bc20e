// The converter, on streams made by hand: which calls of copy routines it marks, and as what.
#include <gtest/gtest.h>

#include "unit/sim/convert_fixture.hpp"

namespace bcisim::test {
namespace {

constexpr std::uint64_t user = 0x7f0000001000, buffer = 0xffff888000002000;

class ConvertCopies : public ConvertFixture {
 protected:
  // Calls a routine from kernel + `from`; then its instructions are to be added.
  StreamMaker& call(std::uint64_t routine, std::uint64_t from = 0) {
    const auto distance = static_cast<std::uint32_t>(routine - (kernel + from + 5));
    stream.at(
        kernel + from,
        {0xe8, static_cast<std::uint8_t>(distance), static_cast<std::uint8_t>(distance >> 8),
         static_cast<std::uint8_t>(distance >> 16), static_cast<std::uint8_t>(distance >> 24)});
    return stream.store(stack);
  }
  // mov r8, [rsi]; mov [rdi], r8: `words` times, from routine + 0x10 on.
  void move(std::uint64_t routine, std::uint64_t to, std::uint64_t from, unsigned words) {
    for (unsigned i = 0; i < words; ++i) {
      stream.at(routine + 0x10, {0x4c, 0x8b, 0x06}).load(from + 8 * i);
      stream.at(routine + 0x13, {0x4c, 0x89, 0x07}).store(to + 8 * i);
      if (i + 1 != words) stream.at(routine + 0x16, {0x75, 0xf8});  // jnz back
    }
    stream.at(routine + 0x16, {0x75, 0xf8});
  }
  StreamMaker& begin(std::uint64_t routine) { return stream.at(routine, {0xeb, 0x0e}); }
  StreamMaker& leave(std::uint64_t routine, std::uint64_t back_to = kernel + 5) {
    return stream.at(routine + 0x18, {0xc3}).load(stack).at(back_to, {0x90});
  }
  void copy(std::uint64_t routine, std::uint64_t to, std::uint64_t from, unsigned words,
            std::uint64_t call_from = 0) {
    call(routine, call_from);
    begin(routine);
    move(routine, to, from, words);
    leave(routine, kernel + call_from + 5);
  }
  void expect_call(std::size_t index, CopyKind kind, std::uint64_t to, std::uint64_t from,
                   std::uint64_t bytes, std::uint64_t site = kernel + 5) {
    ASSERT_GT(whole.contents.copies.size(), index);
    const CopyCall& found = whole.contents.copies[index];
    EXPECT_EQ(found.kind, kind);
    EXPECT_EQ(found.site, site);
    EXPECT_EQ(found.destination, to);
    EXPECT_EQ(found.source, from);
    EXPECT_EQ(found.bytes, bytes);
  }
  // Indices of the first instruction of each copy and of the one behind its last.
  std::vector<std::uint32_t> bounds() const {
    std::vector<std::uint32_t> all;
    for (const Event& event : whole.contents.events)
      if (event.kind <= Event::Kind::copy_end) all.push_back(event.before);
    return all;
  }

  static constexpr std::uint64_t stack = 0xffffc90000001ff0;
  StreamMaker stream;
};

TEST_F(ConvertCopies, FromUserToUserAndBetween) {
  copy(copy_user, buffer, user, 10);
  copy(copy_user, user + 8, buffer + 8, 600, 0x20);
  copy(copy_user, buffer, buffer + 0x4000, 3, 0x30);
  copy(copy_user, user, user + 0x4000, 3, 0x40);
  run(stream.end());
  ASSERT_EQ(whole.contents.copies.size(), 4u);
  expect_call(0, CopyKind::from_user, buffer, user, 80);
  expect_call(1, CopyKind::to_user, user + 8, buffer + 8, 4800, kernel + 0x25);
  expect_call(2, CopyKind::copy, buffer, buffer + 0x4000, 24, kernel + 0x35);
  expect_call(3, CopyKind::user, user, user + 0x4000, 24, kernel + 0x45);
  EXPECT_EQ(whole.contents.copies[1].source_pages,
            (std::vector<std::uint64_t>{StreamMaker::physical_of(buffer) >> 12,
                                        (StreamMaker::physical_of(buffer) >> 12) + 1}));
  EXPECT_EQ(whole.contents.copies[1].destination_pages.size(), 2u);
  const std::vector<std::uint32_t> found = bounds();
  ASSERT_EQ(found.size(), 8u);
  EXPECT_EQ(found[0], 1u);               // behind the call
  EXPECT_EQ(found[1], 1 + 1 + 30 + 1u);  // behind the return
  EXPECT_EQ(summary.copies[static_cast<std::size_t>(CopyKind::to_user)].bytes, 4800u);
  EXPECT_EQ(summary.unmarked.all(), 0u);
  EXPECT_EQ(metadata["symbols"]["0xffffffff81000005"], "start+0x5");
}

TEST_F(ConvertCopies, MemcpyJumpsToItsTail) {
  call(memcpy);
  stream.at(memcpy, {0xe9, 0xfb, 0x00, 0x00, 0x00});  // jmp memcpy_orig
  begin(memcpy_orig);
  move(memcpy_orig, buffer, buffer + 0x800, 5);
  leave(memcpy_orig);
  run(stream.end());
  ASSERT_EQ(whole.contents.copies.size(), 1u);
  expect_call(0, CopyKind::copy, buffer, buffer + 0x800, 40);
}

TEST_F(ConvertCopies, ATailJumpIntoARoutineReturnsToItsCaller) {
  stream.at(kernel + 0x40, {0xe9, 0xbb, 0x11, 0x00, 0x00});  // jmp memcpy
  begin(memcpy);
  move(memcpy, buffer, buffer + 0x800, 2);
  leave(memcpy, kernel + 0x77);
  run(stream.end());
  ASSERT_EQ(whole.contents.copies.size(), 1u);
  expect_call(0, CopyKind::copy, buffer, buffer + 0x800, 16, kernel + 0x77);
}

TEST_F(ConvertCopies, AReturnByAThunkBelongsToTheRoutine) {
  call(memcpy);
  begin(memcpy);
  move(memcpy, buffer, buffer + 0x800, 2);
  stream.at(memcpy + 0x18, {0xe9, 0xe3, 0x03, 0x00, 0x00}).at(thunk, {0xc3}).load(stack);
  stream.at(kernel + 5, {0x90});
  run(stream.end());
  ASSERT_EQ(whole.contents.copies.size(), 1u);
  EXPECT_EQ(bounds()[1], whole.contents.instructions.size() - 1);
}

TEST_F(ConvertCopies, FillsAndChecksums) {
  call(memset);
  for (unsigned i = 0; i < 20; ++i) stream.at(memset, {0xf3, 0x48, 0xab}).store(buffer + 8 * i);
  stream.at(memset + 3, {0xc3}).load(stack).at(kernel + 5, {0x90});
  copy(checksum, buffer, user, 4, 0x20);
  run(stream.end());
  ASSERT_EQ(whole.contents.copies.size(), 2u);
  expect_call(0, CopyKind::fill, buffer, 0, 160);
  EXPECT_TRUE(whole.contents.copies[0].source_pages.empty());
  expect_call(1, CopyKind::with_checksum, buffer, user, 32, kernel + 0x25);
}

TEST_F(ConvertCopies, WhatARoutineKeepsOnItsStackIsNotCopied) {
  call(memcpy);
  begin(memcpy);
  stream.at(memcpy + 0x10, {0x53}).store(stack - 8);                          // push rbx
  stream.at(memcpy + 0x11, {0x48, 0x89, 0x44, 0x24, 0x08}).store(stack + 8);  // mov [rsp+8], rax
  stream.at(memcpy + 0x16, {0x4c, 0x8b, 0x06}).load(buffer);
  stream.at(memcpy + 0x19, {0x4c, 0x89, 0x07}).store(buffer + 64);
  stream.at(memcpy + 0x1c, {0x5b}).load(stack - 8).at(memcpy + 0x1d, {0xc3}).load(stack);
  stream.at(kernel + 5, {0x90});
  run(stream.end());
  ASSERT_EQ(whole.contents.copies.size(), 1u);
  expect_call(0, CopyKind::copy, buffer + 64, buffer, 8);
}

TEST_F(ConvertCopies, OverlappingAndBackwardMovesCount) {
  call(memcpy);
  for (const unsigned at : {17u, 9u, 0u}) {
    stream.at(memcpy, {0x4c, 0x8b, 0x06}).load(buffer + at, at == 0 ? 16 : 8);
    stream.at(memcpy + 3, {0x4c, 0x89, 0x07}).store(buffer + 0x100 + at, at == 0 ? 16 : 8);
    stream.at(memcpy + 6, {0x75, 0xf8});
  }
  stream.at(memcpy + 8, {0xc3}).load(stack).at(kernel + 5, {0x90});
  run(stream.end());
  ASSERT_EQ(whole.contents.copies.size(), 1u);
  expect_call(0, CopyKind::copy, buffer + 0x100, buffer, 25);
}

TEST_F(ConvertCopies, AnInterruptEndsACallAndTheRestIsOneOfItsOwn) {
  call(copy_user);
  begin(copy_user);
  stream.at(copy_user + 0x10, {0x4c, 0x8b, 0x06}).load(user);
  stream.at(copy_user + 0x13, {0x4c, 0x89, 0x07}).store(buffer);
  stream.at(copy_user + 0x16, {0x75, 0xf8});
  stream.at(copy_user + 0x10, {0x4c, 0x8b, 0x06});  // faults
  stream.at(page_fault, {0x90}).at(page_fault + 1, {0x48, 0xcf});
  move(copy_user, buffer + 8, user + 8, 3);
  leave(copy_user);
  run(stream.end());
  ASSERT_EQ(whole.contents.copies.size(), 2u);
  expect_call(0, CopyKind::from_user, buffer, user, 8);
  expect_call(1, CopyKind::from_user, buffer + 8, user + 8, 24);
  std::vector<Event::Kind> kinds;
  for (const Event& event : whole.contents.events) kinds.push_back(event.kind);
  EXPECT_EQ(kinds, (std::vector<Event::Kind>{Event::Kind::copy_begin, Event::Kind::copy_end,
                                             Event::Kind::interrupt, Event::Kind::copy_begin,
                                             Event::Kind::copy_end}));
  EXPECT_EQ(whole.contents.events[1].before, whole.contents.events[2].before);
  EXPECT_EQ(summary.faulted, 1u);
}

TEST_F(ConvertCopies, WordsLoadedAheadOfAnInterruptAreNotCounted) {
  const auto load = [&](unsigned i) {
    stream.at(copy_user + 0x10 + 3 * i, {0x4c, 0x8b, 0x06}).load(user + 8 * i);
  };
  const auto store = [&](unsigned i) {
    stream.at(copy_user + 0x1c + 3 * i, {0x4c, 0x89, 0x07}).store(buffer + 8 * i);
  };
  call(copy_user);
  begin(copy_user);
  for (unsigned i = 0; i < 4; ++i) load(i);
  store(0);
  stream.at(copy_user + 0x1f, {0x4c, 0x89, 0x07});  // faults
  stream.at(page_fault, {0x90}).at(page_fault + 1, {0x48, 0xcf});
  for (unsigned i = 1; i < 4; ++i) store(i);
  stream.at(copy_user + 0x28, {0x4c, 0x8b, 0x06}).load(user + 32);
  stream.at(copy_user + 0x2b, {0x4c, 0x89, 0x07}).store(buffer + 32);
  stream.at(copy_user + 0x2e, {0xc3}).load(stack).at(kernel + 5, {0x90});
  run(stream.end());
  ASSERT_EQ(whole.contents.copies.size(), 2u);
  expect_call(0, CopyKind::from_user, buffer, user, 8);
  expect_call(1, CopyKind::from_user, buffer + 32, user + 32, 8);
  EXPECT_EQ(summary.unmarked.all(), 0u);
}

TEST_F(ConvertCopies, NothingToCopyIsNoCall) {
  call(copy_user);
  stream.at(copy_user, {0xc3}).load(stack).at(kernel + 5, {0x90});
  run(stream.end());
  EXPECT_TRUE(whole.contents.copies.empty());
  EXPECT_EQ(summary.empty_calls, 1u);
  EXPECT_EQ(summary.unmarked.all(), 0u);
}

TEST_F(ConvertCopies, GapsAndUnequalSidesAreNotMarked) {
  call(memcpy);
  stream.at(memcpy, {0x4c, 0x8b, 0x06}).load(buffer).at(memcpy + 3, {0x4c, 0x89, 0x07});
  stream.store(buffer + 64, 4).at(memcpy + 6, {0xc3}).load(stack).at(kernel + 5, {0x90});
  call(memset, 0x20);
  stream.at(memset, {0x4c, 0x89, 0x07}).store(buffer);
  stream.at(memset + 3, {0x4c, 0x89, 0x07}).store(buffer + 16);
  stream.at(memset + 6, {0xc3}).load(stack).at(kernel + 0x25, {0x90});
  run(stream.end());
  EXPECT_TRUE(whole.contents.copies.empty());
  EXPECT_TRUE(bounds().empty());
  EXPECT_EQ(summary.unmarked.unequal, 1u);
  EXPECT_EQ(summary.unmarked.scattered, 1u);
}

TEST_F(ConvertCopies, ALongCopyIsHeldAndOneTooLongIsNot) {
  copy(memcpy, buffer, buffer + 0x1000000, 20000);
  copy(memcpy, buffer, buffer + 0x1000000, 400000, 0x20);  // 1,200,000 instructions
  copy(memcpy, buffer, buffer + 0x1000000, 2, 0x30);
  run(stream.end());
  ASSERT_EQ(whole.contents.copies.size(), 2u);
  expect_call(0, CopyKind::copy, buffer, buffer + 0x1000000, 160000);
  expect_call(1, CopyKind::copy, buffer, buffer + 0x1000000, 16, kernel + 0x35);
  EXPECT_EQ(summary.unmarked.too_long, 1u);
}

TEST_F(ConvertCopies, ACopyUpToTheEndOfTheAddressSpaceIsNotMarked) {
  copy(memcpy, buffer, 0 - std::uint64_t{160}, 20);
  copy(memcpy, 0 - std::uint64_t{160}, buffer, 20, 0x20);
  copy(memcpy, buffer, 0 - std::uint64_t{168}, 20, 0x30);
  run(stream.end());
  ASSERT_EQ(whole.contents.copies.size(), 1u);
  expect_call(0, CopyKind::copy, buffer, 0 - std::uint64_t{168}, 160, kernel + 0x35);
  EXPECT_EQ(summary.unmarked.too_long, 2u);
}

TEST_F(ConvertCopies, DevicesWithinACallKeepTheirPlace) {
  call(memcpy);
  begin(memcpy);
  stream.device(0x1000, 64, true);
  move(memcpy, buffer, buffer + 0x800, 1);
  leave(memcpy);
  run(stream.end());
  ASSERT_EQ(whole.contents.events.size(), 3u);
  EXPECT_EQ(whole.contents.events[0].kind, Event::Kind::copy_begin);
  EXPECT_EQ(whole.contents.events[0].before, 1u);
  EXPECT_EQ(whole.contents.events[1].kind, Event::Kind::device);
  EXPECT_EQ(whole.contents.events[1].before, 2u);
}

TEST_F(ConvertCopies, AStreamMayEndWithinACall) {
  call(memcpy);
  begin(memcpy);
  move(memcpy, buffer, buffer + 0x800, 3);
  run(stream.end());
  ASSERT_EQ(whole.contents.copies.size(), 1u);
  EXPECT_EQ(whole.contents.copies[0].bytes, 24u);
}

TEST_F(ConvertCopies, WithoutSymbolsThereAreNone) {
  symbols = "";
  copy(copy_user, buffer, user, 10);
  run(stream.end());
  EXPECT_TRUE(whole.contents.copies.empty());
}

}  // namespace
}  // namespace bcisim::test
