// What a service leaves when it dies at each point of a chunk's way, and that this process ends it.
#include "client/recover.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "execution/own_rings.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

class Recover : public testing::Test {
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

  Job publish(bool post, Space dst_space = self_space) {
    Job job;
    job.service = true;
    job.dst_space = dst_space;
    job.dst = reinterpret_cast<std::uintptr_t>(dst_.data());
    job.src_or_pattern = reinterpret_cast<std::uintptr_t>(src_.data());
    job.chunks = Chunks::cut(bytes, 256 << 10, 64 << 10, 12);
    Extras extras;
    extras.post = post;
    extras.user_data = 7;
    extras.notify = &notify_;
    extras.notify_value = ++value_;
    if (post) {
      EXPECT_TRUE(ring_->completions.reserve());
    }
    EXPECT_TRUE(ring_->has_room());
    ring_->publish(job, &extras);
    EXPECT_GT(job.chunks.count(), 2u);
    return job;
  }

  // As the service would.
  void claim_and_copy(const Job& job, unsigned chunk, bool report) {
    ASSERT_EQ(ring_->tenancy(job.seq).claim(job.chunks, 1u << chunk), static_cast<int>(chunk));
    std::memcpy(dst_.data() + job.chunks.begin(chunk), src_.data() + job.chunks.begin(chunk),
                job.chunks.end(chunk) - job.chunks.begin(chunk));
    if (report) ring_->tenancy(job.seq).finish(chunk, false, job.chunks);
  }

  void expect_ended(const Job& job, Code code = Code::ok) {
    EXPECT_EQ(ring_->state_word(job.seq).load(), State::make(job.seq, code));
    if (code != Code::ok) return;
    EXPECT_EQ(std::memcmp(dst_.data(), src_.data(), bytes), 0);
    EXPECT_EQ(notify_.load(), value_);
  }

  unsigned entries() {
    unsigned count = 0;
    for (; ring_->completions.front() != nullptr; ring_->completions.pop()) {
      EXPECT_EQ(ring_->completions.front()->user_data, 7u);
      ++count;
    }
    return count;
  }

  Ring* ring_ = nullptr;
  std::vector<unsigned char> src_, dst_;
  std::atomic<std::uint64_t> notify_{0};
  std::uint64_t value_ = 0;
};

TEST_F(Recover, BeforeAnyClaim) {
  const Job job = publish(true);
  recover_from_service();
  expect_ended(job);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Recover, AfterAClaim) {
  const Job job = publish(true);
  ring_->tenancy(job.seq).claim(job.chunks);
  recover_from_service();
  expect_ended(job);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Recover, AfterTheCopyOfSomeChunks) {
  const Job job = publish(false);
  claim_and_copy(job, 0, true);
  claim_and_copy(job, 2, false);
  recover_from_service();
  expect_ended(job);
}

TEST_F(Recover, AfterTheLastReport) {
  const Job job = publish(true);
  for (unsigned chunk = 0; chunk < job.chunks.count(); ++chunk) claim_and_copy(job, chunk, true);
  recover_from_service();
  expect_ended(job);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Recover, AfterTheCompletionWasPosted) {
  const Job job = publish(true);
  for (unsigned chunk = 0; chunk < job.chunks.count(); ++chunk) claim_and_copy(job, chunk, true);
  Completion entry;
  entry.ticket = Ticket::pending(ring_->cookie, ring_->index, job.seq);
  entry.user_data = 7;
  ring_->completions.post(entry);
  recover_from_service();
  expect_ended(job);
  EXPECT_EQ(entries(), 1u) << "not twice";
}

TEST_F(Recover, ManyInFlightAndAFence) {
  std::vector<Job> jobs;
  for (unsigned i = 0; i < 20; ++i) {
    Job job = publish(false);
    jobs.push_back(job);
    ring_->tenancy(job.seq).claim(job.chunks);
  }
  recover_from_service();
  for (const Job& job : jobs)
    EXPECT_EQ(ring_->state_word(job.seq).load(), State::make(job.seq, Code::ok));
  EXPECT_EQ(ring_->helpers.load(), 0u);
  EXPECT_EQ(ring_->recovering.load(), 0u);
}

TEST_F(Recover, GrantedMemoryFailsWithWhatWasShown) {
  const Job job = publish(true, 0x101);  // a space that only the service reaches
  claim_and_copy(job, 0, true);
  ASSERT_EQ(ring_->tenancy(job.seq).claim(job.chunks), 1);
  ring_->tenancy(job.seq).watermarks->word[1].store(
      std::uint64_t{ring_->tenancy(job.seq).generation} << 32 | 3);
  recover_from_service();
  expect_ended(job, Code::io);
  ASSERT_NE(ring_->completions.front(), nullptr);
  EXPECT_EQ(ring_->completions.front()->code, Code::io);
  EXPECT_EQ(ring_->completions.front()->good_bytes, job.chunks.end(0) + 3 * 4096);
  EXPECT_EQ(entries(), 1u);
}

}  // namespace
}  // namespace haul
