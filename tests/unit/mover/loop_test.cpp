// What a mover looks at: the rings in use, and no more.
#include "mover/loop.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace haul {
namespace {

// Threads that have a ring each until the last of them is let go.
class Holders {
 public:
  explicit Holders(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        Error error;
        if (attach_ring(&error) == nullptr) ADD_FAILURE() << error.sentence;
        for (++there_; !over_;) std::this_thread::yield();
      });
    }
    while (there_ < count) std::this_thread::yield();
  }
  ~Holders() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Holders(const Holders&) = delete;
  Holders& operator=(const Holders&) = delete;

 private:
  std::vector<std::thread> threads_;
  std::atomic<unsigned> there_{0};
  std::atomic<bool> over_{false};
};

TEST(MoverLoop, LooksAtTheRingsInUse) {
  const auto loop = std::make_unique<MoverLoop>();
  loop->begin();
  loop->round();
  const std::uint32_t before = loop->seated();
  {
    const Holders many(100);
    loop->round();
    EXPECT_EQ(loop->seated(), before + 100);
  }
  loop->round();
  EXPECT_EQ(loop->seated(), before);
  const Holders few(3);
  loop->round();
  EXPECT_EQ(loop->seated(), before + 3);
}

// Whatever came to rest and woke in between: what is published is found.
TEST(MoverLoop, FindsWhatIsPublishedInARingThatWoke) {
  const auto loop = std::make_unique<MoverLoop>();
  loop->begin();
  for (unsigned turn = 0; turn < 50; ++turn) {
    std::unique_ptr<Holders> others;
    if (turn % 3 == 0) others = std::make_unique<Holders>(turn % 11 + 1);
    std::thread([&] {
      Error error;
      Ring* ring = attach_ring(&error);
      ASSERT_NE(ring, nullptr);
      for (unsigned n = 0; n < 40; ++n) {
        char src[64], dst[64] = {};
        std::memset(src, static_cast<int>(turn + n), sizeof src);
        Job job;
        job.dst = reinterpret_cast<std::uintptr_t>(dst);
        job.src_or_pattern = reinterpret_cast<std::uintptr_t>(src);
        job.chunks = Chunks::single(sizeof src, 12);
        ASSERT_TRUE(ring->has_room());
        ring->publish(job, nullptr);
        EXPECT_TRUE(loop->round());
        EXPECT_TRUE(ring->ended(job.seq));
        EXPECT_EQ(std::memcmp(dst, src, sizeof src), 0);
      }
    }).join();
    others.reset();
    if (turn % 2 == 0) loop->round();
  }
}

}  // namespace
}  // namespace haul
