// The cycle-stepped model: what it takes for short programs, exceptions, locks.
#include "model/stepped/core.hpp"

#include <gtest/gtest.h>

#include "unit/sim/micro_cases.hpp"

namespace bcisim::test {
namespace {

TEST(SteppedCore, AgreesWithArithmeticByHand) {
  for (const MicroCase& one : micro_cases()) expect_case<SteppedCore>(one);
}

TEST(SteppedCore, SaysNothingOfNothing) {
  SteppedCore core(Parameters{}, Scheme::fast_bci);
  core.finish();
  EXPECT_EQ(core.result().cycles, 0u);
  EXPECT_EQ(core.result().instructions, 0u);
}

TEST(SteppedCore, CountsWhatItSees) {
  SteppedCore core(no_walks(), Scheme::fast_bci);
  MicroTrace()
      .load(data_page(0))
      .load(data_page(0) + 64)
      .branch(true)
      .at(code + 32)
      .branch(false)
      .fill(data_page(8), 100)
      .copy(data_page(16), data_page(32), 128)
      .play(core);
  core.finish();
  const Result& result = core.result();
  EXPECT_EQ(result.instructions, 6u);
  EXPECT_EQ(result.copies, 2u);
  EXPECT_EQ(result.copy_bytes, 228u);
  EXPECT_EQ(result.branches, 2u);
  EXPECT_EQ(result.mispredicted, 1u);
  EXPECT_EQ(result.tlb_misses, 1 + 1 + 1 + 2u);
  EXPECT_EQ(result.accesses, 3u);
  EXPECT_EQ(result.l1_misses, 3u);
  EXPECT_EQ(result.l2_misses, 3u);
  EXPECT_EQ(result.copy_l2_misses, 1 + 2u) << "the fill's second block is read since it has a rest";
  EXPECT_EQ(result.bus_blocks, 6u);
}

// What happened to the copy whose number is 1.
struct Seen {
  std::vector<Cycle> validated, retired, done;
};
Seen watch(SteppedCore& core, const MicroTrace& program) {
  Seen seen;
  core.set_observer([&seen](const Happening& one) {
    if (one.number != 1) return;
    if (one.kind == Happening::Kind::validated) seen.validated.push_back(one.at);
    if (one.kind == Happening::Kind::retired) seen.retired.push_back(one.at);
    if (one.kind == Happening::Kind::done) seen.done.push_back(one.at);
  });
  program.play(core);
  core.finish();
  return seen;
}

// The pages are validated in 321 and 322; the second raises an exception, after which the copy is
// executed again from the start: both pages in 322 and 323, so v 324.
TEST(SteppedCore, ExceptionsComeBeforeRetirement) {
  for (const Scheme scheme : {Scheme::fast_bci, Scheme::dma, Scheme::copy_engine}) {
    SteppedCore core(no_walks(), scheme);
    std::vector<std::uint64_t> asked;
    core.set_page_fault([&asked](std::uint64_t address, bool is_written) {
      asked.push_back(address);
      return is_written && asked.size() == 2;
    });
    MicroTrace program;
    program.add().copy(data_page(1), data_page(2), 64);
    const Seen seen = watch(core, program);
    EXPECT_EQ(asked,
              (std::vector<std::uint64_t>{data_page(2), data_page(1), data_page(2), data_page(1)}));
    EXPECT_EQ(seen.validated, std::vector<Cycle>{324});
    EXPECT_EQ(seen.done, std::vector<Cycle>{645});
    EXPECT_EQ(seen.retired, std::vector<Cycle>{scheme == Scheme::copy_engine ? 645u : 324u});
    EXPECT_EQ(core.result().copies, 1u);
  }
}

TEST(SteppedCore, PagesStayLockedUntilTheCopyIsDone) {
  SteppedCore core(no_walks(), Scheme::fast_bci);
  bool done = false;
  Cycle done_at = 0;
  core.set_observer([&](const Happening& one) {
    if (one.kind == Happening::Kind::done) done = true, done_at = one.at;
  });
  const auto translation = [](std::uint64_t address) {
    return Tlb::page_of(address, address + physical_offset);
  };
  const auto invalidate = [&](unsigned page) {
    return core.data_tlb().invalidate(translation(data_page(page)));
  };
  MicroTrace().add().copy(data_page(1), data_page(2), 64).play(core);
  // Additions in one block, until the copy is under way: from 323 to 644.
  unsigned under_way = 0;
  for (unsigned i = 0; core.now() < 600 && i < 10000; ++i) {
    MicroTrace().add().play(core);
    if (core.now() <= 323) continue;
    ++under_way;
    ASSERT_FALSE(done);
    ASSERT_FALSE(invalidate(1));
    ASSERT_FALSE(invalidate(2));
    ASSERT_TRUE(invalidate(3)) << "not a page of the copy";
  }
  EXPECT_GT(under_way, 100u);
  while (!done && core.now() < 1000) MicroTrace().add().play(core);
  EXPECT_EQ(done_at, 644u);
  EXPECT_TRUE(invalidate(1));
  EXPECT_TRUE(invalidate(2));
}

// An exception takes the locks away again.
TEST(SteppedCore, AnExceptionUnlocksPages) {
  SteppedCore core(no_walks(), Scheme::fast_bci);
  std::vector<bool> went;
  core.set_page_fault([&](std::uint64_t, bool is_written) {
    if (is_written) return went.size() == 1;
    // Before the first page of each execution nothing is locked.
    went.push_back(
        core.data_tlb().invalidate(Tlb::page_of(data_page(2), data_page(2) + physical_offset)));
    return false;
  });
  MicroTrace().add().copy(data_page(1), data_page(2), 64).play(core);
  core.finish();
  EXPECT_EQ(went, (std::vector<bool>{true, true}));
}

}  // namespace
}  // namespace bcisim::test
