// What the parent's movers leave in a child at each point of a chunk's way, and that a look ends
// it: once, in the child's own memory, or with HAUL_EIO.
#include "execution/inherit.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "completion/ledger.hpp"
#include "execution/help.hpp"
#include "execution/own_rings.hpp"
#include "mover/settle.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

class Inherit : public testing::Test {
 protected:
  static constexpr std::size_t bytes = 1 << 20;

  void SetUp() override {
    Error error;
    ring_ = attach_ring(&error);
    ASSERT_NE(ring_, nullptr);
    src_.resize(bytes);
    dst_.assign(bytes, 0);
    for (std::size_t i = 0; i < bytes; ++i) src_[i] = static_cast<unsigned char>(i * 7 + i / 256);
  }
  void TearDown() override {
    tend_all_inherited(*ring_);
    ring_->inherited_below.store(0);
    ring_->interrupted.store(0);
  }

  Job publish(void* dst, const void* src, bool fence = false) {
    Job job;
    job.fence = fence;
    job.dst = reinterpret_cast<std::uintptr_t>(dst);
    job.src_or_pattern = reinterpret_cast<std::uintptr_t>(src);
    job.chunks = overlaps(job.dst, job.src_or_pattern, bytes)
                     ? Chunks::single(bytes, 12)
                     : Chunks::cut(bytes, 256 << 10, 64 << 10, 12);
    Extras extras;
    extras.post = true;
    extras.notify = &notify_;
    extras.notify_value = ++value_;
    EXPECT_TRUE(ring_->has_room());
    ring_->publish(job, &extras);
    return job;
  }
  Job publish() { return publish(dst_.data(), src_.data()); }

  void claim(const Job& job, unsigned chunk) {
    ASSERT_EQ(ring_->tenancy(job.seq).claim(job.chunks, 1u << chunk), static_cast<int>(chunk));
  }
  void copy_and_report(const Job& job, unsigned chunk) {
    std::memcpy(dst_.data() + job.chunks.begin(chunk), src_.data() + job.chunks.begin(chunk),
                job.chunks.end(chunk) - job.chunks.begin(chunk));
    ring_->tenancy(job.seq).finish(chunk, false, job.chunks);
  }
  // As the handler in the child does.
  void fork_here() { ring_->inherited_below.store(ring_->next_seq()); }

  Code code_of(const Job& job) {
    const std::uint64_t word = ring_->state_word(job.seq).load();
    EXPECT_EQ(State::seq(word), job.seq) << "has not ended";
    return State::code(word);
  }
  void expect_whole(const Job& job) {
    EXPECT_EQ(code_of(job), Code::ok);
    EXPECT_EQ(std::memcmp(dst_.data(), src_.data(), bytes), 0);
    EXPECT_EQ(notify_.load(), value_);
    EXPECT_EQ(ring_->completions.front(), nullptr) << "completes in the parent";
    EXPECT_EQ(ring_->adopting.load(), 0u);
  }

  Ring* ring_ = nullptr;
  std::vector<unsigned char> src_, dst_;
  std::atomic<std::uint64_t> notify_{0};
  std::uint64_t value_ = 0;
};

TEST_F(Inherit, IsLeftAloneInAProcessThatWasNotForked) {
  const Job job = publish();
  claim(job, 0);
  tend_inherited(*ring_, job.seq, UINT64_MAX);
  EXPECT_LT(State::seq(ring_->state_word(job.seq).load()), job.seq);
  fork_here();
}

TEST_F(Inherit, ClaimedReportedAndFreeChunks) {
  const Job job = publish();
  ASSERT_GT(job.chunks.count(), 3u);
  claim(job, 0);
  copy_and_report(job, 0);
  claim(job, 2);
  fork_here();
  EXPECT_EQ(wait_for(*ring_, job.seq, no_deadline), Code::ok);
  expect_whole(job);
}

TEST_F(Inherit, WhatWasShownIsNotWrittenAgain) {
  const Job job = publish();
  claim(job, 1);
  const Tenancy tenancy = ring_->tenancy(job.seq);
  tenancy.watermarks->word[1].store(std::uint64_t{tenancy.generation} << 32 | 3);
  fork_here();
  tend_inherited(*ring_, job.seq, UINT64_MAX);
  EXPECT_EQ(code_of(job), Code::ok);
  EXPECT_EQ(dst_[job.chunks.begin(1)], 0);
  EXPECT_EQ(dst_[job.chunks.begin(1) + 3 * 4096], src_[job.chunks.begin(1) + 3 * 4096]);
}

TEST_F(Inherit, AllIsReportedAndTheLastFinisherIsNotHere) {
  const Job job = publish();
  for (unsigned chunk = 0; chunk < job.chunks.count(); ++chunk) {
    claim(job, chunk);
    copy_and_report(job, chunk);
  }
  fork_here();
  EXPECT_EQ(wait_for(*ring_, job.seq, no_deadline), Code::ok);
  expect_whole(job);
}

TEST_F(Inherit, AFrameThatCameOverWithTheForkReportsNothing) {
  const Job job = publish();
  claim(job, 0);
  const ChunkRun run(job, 0);
  fork_here();
  tend_inherited(*ring_, job.seq, UINT64_MAX);
  expect_whole(job);
  const std::uint64_t state = ring_->state_word(job.seq).load();
  report_chunk(*ring_, run);
  EXPECT_EQ(ring_->state_word(job.seq).load(), state);
}

TEST_F(Inherit, SidesThatOverlapFailOnceTheyWereBegun) {
  src_.resize(bytes + 4096);
  const Job free = publish(src_.data() + 4096, src_.data());
  fork_here();
  EXPECT_EQ(wait_for(*ring_, free.seq, no_deadline), Code::ok) << "nobody had begun it";
  ring_->inherited_below.store(0);
  const Job begun = publish(src_.data() + 4096, src_.data());
  claim(begun, 0);
  fork_here();
  EXPECT_EQ(wait_for(*ring_, begun.seq, no_deadline), Code::io);
  EXPECT_NE(notify_.load(), value_);
  Failure failure;
  ASSERT_TRUE(ledger_find(ring_->index, begun.seq, &failure));
  EXPECT_EQ(failure.good_bytes, 0u);
}

TEST_F(Inherit, SharedMemoryIsTheParents) {
  void* const shared =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  for (const bool as_source : {false, true}) {
    const Job job = as_source ? publish(dst_.data(), shared) : publish(shared, src_.data());
    fork_here();
    EXPECT_EQ(wait_for(*ring_, job.seq, no_deadline), Code::io);
    EXPECT_EQ(static_cast<unsigned char*>(shared)[77], 0);
    ring_->inherited_below.store(0);
  }
  munmap(shared, bytes);
}

TEST_F(Inherit, AFencedOneComesAfterTheEarlier) {
  const Job first = publish();
  claim(first, 1);
  std::vector<unsigned char> third(bytes);
  const Job second = publish(third.data(), dst_.data(), true);
  fork_here();
  EXPECT_EQ(wait_for(*ring_, second.seq, no_deadline), Code::ok);
  EXPECT_EQ(code_of(first), Code::ok);
  EXPECT_EQ(std::memcmp(third.data(), src_.data(), bytes), 0);
}

TEST_F(Inherit, ADeadlineIsKeptBetweenChunks) {
  const Job job = publish();
  fork_here();
  EXPECT_EQ(wait_for(*ring_, job.seq, 1), Code::timed_out);
  EXPECT_EQ(wait_for(*ring_, job.seq, no_deadline), Code::ok);
  expect_whole(job);
}

TEST_F(Inherit, NobodyElseWaitsForIt) {
  publish();
  fork_here();
  EXPECT_FALSE(settle_all(0)) << "an exit, or a fork of the child's own";
}

TEST_F(Inherit, AnInterruptedSubmitIsDoneByWhoLooks) {
  ring_->interrupted.store(ring_->next_seq());
  const Job job = publish();
  tend_inherited(*ring_, job.seq, UINT64_MAX);
  EXPECT_EQ(code_of(job), Code::ok);
  EXPECT_NE(ring_->completions.front(), nullptr) << "it is the child's own";
  ring_->completions.leave_to_parent(false);
}

}  // namespace
}  // namespace haul
