// A second thread watches a copy run: progress only grows, and never claims a block that is not
// there.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "conformance/drive.hpp"
#include "conformance/peer.hpp"

namespace haul::conformance {
namespace {

constexpr std::size_t chunk_bytes = 3 * 1024 * 1024 + 777;

struct Watched {
  const std::atomic<std::uint64_t>* word;
  const std::uint8_t* dst;
  const std::uint8_t* expected;
  std::uint64_t generation;
  std::uint32_t block_log2;
  std::atomic<bool> over{false};
  // What the watcher found.
  std::uint64_t steps = 0;
  bool grows = true, right_generation = true, true_to_the_bytes = true;
};

void watch(Watched& watched) {
  std::uint64_t seen = 0;
  while (true) {
    const bool over = watched.over.load(std::memory_order_acquire);
    const std::uint64_t word = watched.word->load(std::memory_order_acquire);
    if (word != 0) {
      if (word >> 32 != watched.generation) watched.right_generation = false;
      const std::uint64_t blocks = word & 0xffffffff;
      if (blocks < seen) watched.grows = false;
      if (blocks > seen) {
        const std::size_t from = seen << watched.block_log2;
        const std::size_t to = blocks << watched.block_log2;
        if (to > chunk_bytes ||
            std::memcmp(watched.dst + from, watched.expected + from, to - from) != 0) {
          watched.true_to_the_bytes = false;
          return;
        }
        seen = blocks;
        ++watched.steps;
      }
    }
    if (over) return;
  }
}

class Watermarks : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    std::string why;
    engine_ = prepare(GetParam(), why);
    if (engine_ == nullptr) GTEST_SKIP() << "engine unavailable: " << why;
    Random random(11);
    source_.resize(chunk_bytes);
    scramble(random, source_.data(), chunk_bytes);
    pattern_ = random();
  }

  // One chunk in pieces, watched; the destination begins as the source's complement.
  void watched_chunk(Piece piece, std::uint8_t* dst_seen, Random& random) {
    std::vector<std::uint8_t> expected = source_;
    if (piece.operation == Operation::fill) {
      for (std::size_t at = 0; at < chunk_bytes; ++at) {
        expected[at] = static_cast<std::uint8_t>(pattern_ >> (at & 7) * 8);
      }
    }
    for (std::size_t at = 0; at < chunk_bytes; ++at) {
      dst_seen[at] = static_cast<std::uint8_t>(~expected[at]);
    }
    std::atomic<std::uint64_t> word{0};
    Watched watched;
    watched.word = &word;
    watched.dst = dst_seen;
    watched.expected = expected.data();
    watched.generation = 0xabcd1234;
    watched.block_log2 = static_cast<std::uint32_t>(between(random, 6, 16));
    std::thread watcher(watch, std::ref(watched));
    const std::uintptr_t dst = piece.dst, src = piece.src;
    for (std::size_t done = 0; done < chunk_bytes;) {
      piece.length = std::min<std::size_t>(
          {chunk_bytes - done, between(random, 1, chunk_bytes), engine_->most_bytes()});
      piece.dst = dst + done;
      piece.src = src + done;
      piece.pattern = pattern_at(pattern_, 8, done);
      piece.whole_bytes = chunk_bytes;
      piece.watermark = Watermark{&word, watched.generation << 32, done, watched.block_log2};
      const Outcome outcome = run(*engine_, piece);
      EXPECT_EQ(outcome.code, Code::ok);
      EXPECT_EQ(outcome.good_bytes, piece.length);
      if (outcome.good_bytes != piece.length) break;
      done += piece.length;
    }
    watched.over.store(true, std::memory_order_release);
    watcher.join();
    EXPECT_TRUE(watched.grows) << "the watermark went back";
    EXPECT_TRUE(watched.right_generation);
    EXPECT_TRUE(watched.true_to_the_bytes) << "the watermark ran ahead of the bytes";
    EXPECT_EQ(word.load() & 0xffffffff, chunk_bytes >> watched.block_log2);
    EXPECT_EQ(std::memcmp(dst_seen, expected.data(), chunk_bytes), 0);
  }

  Piece piece_of(Operation operation, Random& random) const {
    Piece piece;
    piece.operation = operation;
    piece.dst_affinity = static_cast<Affinity>(between(random, 0, 2));
    piece.src_affinity = static_cast<Affinity>(between(random, 0, 2));
    piece.src = reinterpret_cast<std::uintptr_t>(source_.data());
    return piece;
  }

  Engine* engine_ = nullptr;
  std::vector<std::uint8_t> source_;
  std::uint64_t pattern_ = 0;
};

TEST_P(Watermarks, NeverRunAheadOfTheBytes) {
  std::vector<std::uint8_t> dst(chunk_bytes);
  Random random(12);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(testing::Message() << "seed 12, round " << round);
    Piece piece = piece_of(round % 3 == 2 ? Operation::fill : Operation::copy, random);
    piece.dst = reinterpret_cast<std::uintptr_t>(dst.data());
    watched_chunk(piece, dst.data(), random);
  }
}

class WatermarksOfPeers : public Watermarks {};

TEST_P(WatermarksOfPeers, NeverRunAheadOfTheBytes) {
  // Before any thread: the peer is made by fork.
  Peer peer(chunk_bytes, Peer::Memory::visible);
  if (peer.space() == self_space) GTEST_SKIP() << "the kernel refuses: " << peer.why();
  Random random(13);
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(testing::Message() << "seed 13, round " << round);
    Piece piece = piece_of(round % 3 == 2 ? Operation::fill : Operation::copy, random);
    piece.dst_space = peer.space();
    piece.dst = peer.address();
    watched_chunk(piece, const_cast<std::uint8_t*>(peer.memory()), random);
  }
}

TEST_P(Watermarks, OverlappingRangesShowNothingUntilItIsTrue) {
  std::vector<std::uint8_t> arena(chunk_bytes + 5000);
  for (const std::size_t dst_at : {std::size_t{0}, std::size_t{5000}}) {
    std::memcpy(arena.data() + (5000 - dst_at), source_.data(), chunk_bytes);
    std::atomic<std::uint64_t> word{0};
    Watched watched;
    watched.word = &word;
    watched.dst = arena.data() + dst_at;
    watched.expected = source_.data();
    watched.generation = 5;
    watched.block_log2 = 12;
    std::thread watcher(watch, std::ref(watched));
    Piece piece;
    piece.dst = reinterpret_cast<std::uintptr_t>(arena.data() + dst_at);
    piece.src = reinterpret_cast<std::uintptr_t>(arena.data() + (5000 - dst_at));
    piece.length = chunk_bytes;
    piece.watermark = Watermark{&word, std::uint64_t{5} << 32, 0, 12};
    const Outcome outcome = run(*engine_, piece);
    watched.over.store(true, std::memory_order_release);
    watcher.join();
    EXPECT_EQ(outcome.good_bytes, chunk_bytes);
    EXPECT_TRUE(watched.true_to_the_bytes && watched.grows);
    EXPECT_EQ(std::memcmp(watched.dst, source_.data(), chunk_bytes), 0);
  }
}

// A page in the middle stops the copy, by an outcome or by SIGSEGV; what was published until then
// is what a watcher could have seen on the way.
TEST_P(Watermarks, AreShownOnTheWay) {
  if (engine_->facts().device || engine_->registers())
    return;  // shows a piece when it is whole, and is none in a child
  constexpr std::size_t page = 4096, length = 768 * page, bad_at = 512 * page;
  constexpr std::size_t coarsest = 256 * 1024;
  auto* const dst = static_cast<std::uint8_t*>(
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* const word =
      new (mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          std::atomic<std::uint64_t>(0);
  ASSERT_EQ(mprotect(dst + bad_at, page, PROT_NONE), 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGSEGV, SIG_DFL);
    Piece piece;
    piece.length = length;
    piece.dst = reinterpret_cast<std::uintptr_t>(dst);
    piece.src = reinterpret_cast<std::uintptr_t>(source_.data());
    piece.watermark = Watermark{word, 0, 0, 12};
    run(*engine_, piece);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) == 0);
  const std::size_t shown = static_cast<std::size_t>(word->load()) << 12;
  EXPECT_GE(shown, bad_at - coarsest);
  EXPECT_LE(shown, bad_at);
  munmap(dst, length);
  munmap(word, page);
}

INSTANTIATE_TEST_SUITE_P(AllEngines, Watermarks, testing::ValuesIn(subjects()),
                         [](const auto& test) { return subject_name(test.param); });
INSTANTIATE_TEST_SUITE_P(ReachingEngines, WatermarksOfPeers,
                         testing::ValuesIn(subjects_that_reach_peers()),
                         [](const auto& test) { return subject_name(test.param); });

}  // namespace
}  // namespace haul::conformance
