// What is in flight is waited for as long as it comes forward, and no longer.
#include "mover/settle.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/os/os.hpp"
#include "execution/own_rings.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

constexpr std::uint64_t ms = 1'000'000;

class Settle : public testing::Test {
 protected:
  static constexpr std::size_t bytes = 1 << 20;

  void SetUp() override {
    Error error;
    ring_ = attach_ring(&error);
    ASSERT_NE(ring_, nullptr);
  }
  void TearDown() override { EXPECT_FALSE(settle_all(0)); }

  Job publish() {
    Job job;
    job.dst = reinterpret_cast<std::uintptr_t>(dst_.data());
    job.src_or_pattern = reinterpret_cast<std::uintptr_t>(src_.data());
    job.chunks = Chunks::cut(bytes, 256 << 10, 64 << 10, 12);
    EXPECT_TRUE(ring_->has_room());
    ring_->publish(job, nullptr);
    EXPECT_GT(job.chunks.count(), 3u);
    return job;
  }

  void carry_out(const Job& job, unsigned chunk) {
    ASSERT_EQ(ring_->tenancy(job.seq).claim(job.chunks, 1u << chunk), static_cast<int>(chunk));
    run_here(*ring_, job, chunk);
  }

  Ring* ring_ = nullptr;
  std::vector<unsigned char> src_ = std::vector<unsigned char>(bytes, 7), dst_ = src_;
};

TEST_F(Settle, WhatNobodyMovesIsLeftAndCounted) {
  const Job job = publish();
  carry_out(job, 0);
  const Unsettled left = settle_all(30 * ms);
  EXPECT_EQ(left.requests, 1u);
  EXPECT_EQ(left.whole_bytes, bytes);
  EXPECT_EQ(left.bytes, bytes - job.chunks.end(0));
  EXPECT_EQ(left.ring, ring_->index);
  EXPECT_FALSE(left.service);
  // It has claimed nothing of it itself.
  EXPECT_EQ(ring_->tenancy(job.seq).unreported(job.chunks), 0u);
  for (unsigned chunk = 1; chunk < job.chunks.count(); ++chunk) carry_out(job, chunk);
}

TEST_F(Settle, WhatComesForwardIsWaitedForHoweverLongItTakes) {
  const Job job = publish();
  std::thread mover([&] {
    for (unsigned chunk = 0; chunk < job.chunks.count(); ++chunk) {
      os::sleep_ns(200 * ms);
      carry_out(job, chunk);
    }
  });
  // A slow machine may take the mover its CPU: the patience is long against a step.
  EXPECT_FALSE(settle_all(20'000 * ms));
  mover.join();
}

TEST_F(Settle, NothingInFlightIsNotWaitedFor) {
  EXPECT_FALSE(settle_all(3'600'000 * ms));
}

}  // namespace
}  // namespace haul
