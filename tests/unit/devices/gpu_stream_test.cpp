// The engine cuda's streams and slots (devices/cuda/gpu_stream) on a driver that executes when the
// test lets it: CPU and copy engine work side by side, every byte arrives, progress is never ahead
// of the bytes, and each copy is reported once, whatever fails when.
#include "devices/cuda/gpu_stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "devices/cuda/results.hpp"
#include "repeats.hpp"

namespace haul::cuda {
namespace {

// One stream, whose work waits for run(). Events are numbers of what must have been executed.
struct FakeDriver {
  struct Work {
    unsigned char* dst;
    const unsigned char* src;
    std::size_t bytes;
  };
  std::deque<Work> queue;
  std::uint64_t added = 0, executed = 0;
  std::vector<std::uint64_t*> events;
  Result failing_copy = success, failing_record = success, failing_query = success;
  std::vector<void*> pinned;

  void run(std::size_t count) {
    for (; count != 0 && !queue.empty(); --count) {
      std::memcpy(queue.front().dst, queue.front().src, queue.front().bytes);
      queue.pop_front();
      ++executed;
    }
  }
};
FakeDriver* fake = nullptr;

Result add(void* dst, const void* src, std::size_t bytes) {
  if (fake->failing_copy != success) return fake->failing_copy;
  fake->queue.push_back(
      {static_cast<unsigned char*>(dst), static_cast<const unsigned char*>(src), bytes});
  ++fake->added;
  return success;
}

Driver make_driver() {
  Driver driver;
  driver.stream_create = [](Stream*, unsigned) { return success; };
  driver.event_create = [](Event* event, unsigned) {
    auto* const made = new std::uint64_t(0);
    fake->events.push_back(made);
    *event = reinterpret_cast<Event>(made);
    return success;
  };
  driver.event_record = [](Event event, Stream) {
    *reinterpret_cast<std::uint64_t*>(event) = fake->added;
    return fake->failing_record;
  };
  driver.event_query = [](Event event) {
    if (fake->failing_query != success) return fake->failing_query;
    return *reinterpret_cast<std::uint64_t*>(event) <= fake->executed ? success : not_ready;
  };
  driver.host_alloc = [](void** at, std::size_t bytes, unsigned) {
    *at = std::malloc(bytes);
    fake->pinned.push_back(*at);
    return success;
  };
  driver.host_free = [](void* at) {
    std::erase(fake->pinned, at);
    std::free(at);
    return success;
  };
  driver.to_device = [](Pointer dst, const void* src, std::size_t bytes, Stream) {
    return add(reinterpret_cast<void*>(dst), src, bytes);
  };
  driver.from_device = [](void* dst, Pointer src, std::size_t bytes, Stream) {
    return add(dst, reinterpret_cast<const void*>(src), bytes);
  };
  driver.within_device = [](Pointer dst, Pointer src, std::size_t bytes, Stream) {
    return add(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes);
  };
  return driver;
}

class GpuStreams : public testing::TestWithParam<GpuWay> {
 protected:
  static constexpr std::size_t slot_bytes = 1000;

  void SetUp() override {
    fake = &fake_;
    driver_ = make_driver();
    begin(3);
  }
  void TearDown() override {
    if (stream_) stream_->free_slots();
    EXPECT_TRUE(fake_.pinned.empty());
    for (std::uint64_t* event : fake_.events) delete event;
  }

  // A stream with nothing on it, on a driver that fails nowhere.
  void begin(unsigned slots) {
    if (stream_) stream_->free_slots();
    fake_.failing_copy = fake_.failing_record = fake_.failing_query = success;
    fake_.queue.clear();
    fake_.executed = fake_.added;
    stream_ = std::make_unique<GpuStream>();
    ASSERT_EQ(stream_->open(driver_, GetParam()), success);
    ASSERT_EQ(stream_->set_slots(slots, slot_bytes), success);
  }

  // One copy, with memory for both sides. (`from` on the GPU's side for the way out.)
  struct Copy {
    std::vector<unsigned char> from, to;
    std::atomic<std::uint64_t> word{0};
    bool reported = false;
    Outcome outcome;
  };

  void take(Copy& copy, std::uint64_t tag, std::size_t bytes, bool straight) {
    copy.from.resize(bytes);
    copy.to.assign(bytes, 0);
    for (unsigned char& byte : copy.from) byte = static_cast<unsigned char>(random_() | 1);
    const auto to = reinterpret_cast<std::uintptr_t>(copy.to.data()),
               from = reinterpret_cast<std::uintptr_t>(copy.from.data());
    GpuCopy wanted;
    wanted.tag = tag;
    wanted.device = GetParam() == GpuWay::out ? from : to;
    wanted.host = GetParam() == GpuWay::out ? to : from;
    wanted.length = bytes;
    wanted.straight = straight || GetParam() == GpuWay::within;
    wanted.watermark = Watermark{&copy.word, 0, 0, 6};
    const Result result = stream_->take(wanted);
    if (result != success) stream_->die();
  }

  void work(const StagingCopy& staging) {
    std::memcpy(reinterpret_cast<void*>(staging.dst), reinterpret_cast<const void*>(staging.src),
                staging.bytes);
    staging.done->store(1, std::memory_order_release);
  }

  static void expect_true_progress(const Copy& copy) {
    const std::size_t shown = (copy.word.load() & 0xffffffff) << 6;
    ASSERT_LE(shown, copy.from.size() + 63);
    const std::size_t sure = std::min(shown, copy.from.size());
    ASSERT_TRUE(std::equal(copy.to.begin(), copy.to.begin() + static_cast<std::ptrdiff_t>(sure),
                           copy.from.begin()))
        << "progress is ahead";
  }

  template <class Copies>
  std::size_t reap(Copies& copies) {
    Finished finished[3];
    const std::size_t count = stream_->finish(finished, 3);
    for (std::size_t i = 0; i < count; ++i) {
      Copy& copy = copies.at(finished[i].tag);
      EXPECT_FALSE(copy.reported) << "a copy is reported twice";
      copy.reported = true;
      copy.outcome = finished[i].outcome;
      EXPECT_LE(copy.outcome.good_bytes, copy.from.size());
      EXPECT_EQ(std::memcmp(copy.to.data(), copy.from.data(), copy.outcome.good_bytes), 0);
      EXPECT_EQ(copy.outcome.code == Code::ok, copy.outcome.good_bytes == copy.from.size());
    }
    return count;
  }

  FakeDriver fake_;
  Driver driver_;
  std::unique_ptr<GpuStream> stream_;
  std::mt19937_64 random_{7};
};

INSTANTIATE_TEST_SUITE_P(Ways, GpuStreams, testing::Values(GpuWay::in, GpuWay::out, GpuWay::within),
                         [](const auto& test) {
                           return test.param == GpuWay::in    ? "in"
                                  : test.param == GpuWay::out ? "out"
                                                              : "within";
                         });

// Random copies, random order of who comes next; at a random moment, in some rounds, an end of
// another kind.
TEST_P(GpuStreams, WhateverComesWhen) {
  enum class End { well, dies, refuses, record_fails, query_fails, stops };
  for (const End end :
       {End::well, End::dies, End::refuses, End::record_fails, End::query_fails, End::stops}) {
    for (unsigned round = 0; round < testing_haul::repeats(150); ++round) {
      SCOPED_TRACE(testing::Message() << "end " << static_cast<int>(end) << " round " << round);
      ASSERT_NO_FATAL_FAILURE(begin(2 + static_cast<unsigned>(random_() % 4)));
      std::deque<Copy> copies;
      std::vector<StagingCopy> with_cpus;
      std::size_t reported = 0;
      const std::size_t wanted = 1 + random_() % 30;
      const std::uint64_t when = end == End::well ? UINT64_MAX : random_() % 200;
      bool ended = false, forgotten = false;
      for (std::uint64_t step = 0; step < 200'000 && reported < wanted && !forgotten; ++step) {
        if (step == when) {
          ended = true;
          switch (end) {
            case End::well: break;
            case End::dies: stream_->die(); break;
            case End::refuses: fake_.failing_copy = invalid_value; break;
            case End::record_fails: fake_.failing_record = 999; break;
            case End::query_fails: fake_.failing_query = 700; break;
            case End::stops: forgotten = stream_->stop(); break;
          }
        }
        switch (random_() % 6) {
          case 0:
            if (copies.size() < wanted && stream_->has_room() && !(ended && end == End::stops)) {
              copies.emplace_back();
              take(copies.back(), copies.size() - 1, 1 + random_() % 5000, random_() % 4 == 0);
            } else if (copies.size() < wanted && ended && end == End::stops) {
              copies.emplace_back();  // nothing more is given to it
              ++reported;
            }
            break;
          case 1: {
            StagingCopy staging;
            if (stream_->take_staging(&staging)) with_cpus.push_back(staging);
            break;
          }
          case 2:
            if (!with_cpus.empty()) {
              const std::size_t which = random_() % with_cpus.size();
              work(with_cpus[which]);
              with_cpus.erase(with_cpus.begin() + static_cast<std::ptrdiff_t>(which));
            }
            break;
          case 3: fake_.run(1); break;
          case 4:
            if (stream_->advance() != success) stream_->die();
            break;
          default: reported += reap(copies);
        }
        for (const Copy& copy : copies) ASSERT_NO_FATAL_FAILURE(expect_true_progress(copy));
      }
      if (forgotten) {
        EXPECT_TRUE(with_cpus.empty());
        EXPECT_TRUE(fake_.queue.empty());
        continue;
      }
      EXPECT_EQ(reported, wanted) << "a copy was lost";
      EXPECT_TRUE(stream_->idle());
      if (end == End::well) {
        for (const Copy& copy : copies) EXPECT_EQ(copy.outcome.code, Code::ok);
      }
    }
  }
}

// While the one is at a slot, the other is at the next.
TEST_P(GpuStreams, TwoWorkAtATime) {
  if (GetParam() == GpuWay::within) return;  // which needs no slots
  std::deque<Copy> copies(1);
  take(copies[0], 0, 3 * slot_bytes, false);
  StagingCopy first, second, third;
  if (GetParam() == GpuWay::in) {
    ASSERT_TRUE(stream_->take_staging(&first));
    work(first);
    EXPECT_EQ(stream_->advance(), success);
    EXPECT_EQ(fake_.queue.size(), 1u);
    ASSERT_TRUE(stream_->take_staging(&second)) << "the second slot while the GPU has the first";
    ASSERT_TRUE(stream_->take_staging(&third)) << "and the third, by another CPU";
    EXPECT_FALSE(stream_->take_staging(&first)) << "there are three";
    work(third);
    EXPECT_EQ(stream_->advance(), success);
    EXPECT_EQ(fake_.queue.size(), 1u) << "the third waits for the second";
    work(second);
    EXPECT_EQ(stream_->advance(), success);
    EXPECT_EQ(fake_.queue.size(), 3u);
  } else {
    EXPECT_EQ(fake_.queue.size(), 3u) << "all slots are with the GPU at once";
    EXPECT_FALSE(stream_->take_staging(&first));
    fake_.run(2);
    EXPECT_EQ(stream_->advance(), success);
    ASSERT_TRUE(stream_->take_staging(&first));
    ASSERT_TRUE(stream_->take_staging(&second)) << "two CPUs, while the third is with the GPU";
    EXPECT_EQ(fake_.queue.size(), 1u);
  }
}

TEST_P(GpuStreams, ADepthOfSixteen) {
  std::deque<Copy> copies;
  for (unsigned i = 0; i < GpuStream::depth; ++i) {
    EXPECT_TRUE(stream_->has_room());
    copies.emplace_back();
    take(copies.back(), i, 10, i % 2 == 0);
  }
  EXPECT_FALSE(stream_->has_room());
  EXPECT_EQ(reap(copies), 0u);
}

TEST(CudaResults, EachHasASentenceThatFits) {
  for (int result = 1; result < 1000; ++result) {
    char whole[400], sentence[176];
    describe_result(result, "GPU 15 failed", whole, sizeof whole);
    describe_result(result, "GPU 15 failed", sentence, sizeof sentence);
    EXPECT_STREQ(whole, sentence);
    const char* const cause = std::strchr(sentence, ':');
    ASSERT_NE(cause, nullptr);
    EXPECT_NE(std::strchr(cause, ';'), nullptr) << "no remedy: " << sentence;
  }
}

}  // namespace
}  // namespace haul::cuda
