// move_bytes is memmove, for every level, affinity, size, alignment and overlap.
#include "levels.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace haul::copy {
namespace {

using Move = EachLevel;

constexpr std::size_t canary_bytes = 192;

// Two buffers that stay; only what a copy may touch, and its surroundings, is looked at.
class CopyArena {
 public:
  explicit CopyArena(std::size_t largest)
      : src_(random_bytes(largest + 2 * canary_bytes + 128, 1)),
        dst_(random_bytes(largest + 2 * canary_bytes + 128, 2)),
        expected_(dst_),
        src_before_(src_),
        inverse_(src_) {
    for (auto& byte : inverse_) byte = static_cast<unsigned char>(~byte);
  }

  void check(Level level, std::size_t len, std::size_t src_shift, std::size_t dst_shift,
             Affinity dst_affinity, Affinity src_affinity, std::size_t whole_bytes = 0) {
    check_by(len, src_shift, dst_shift, [&](void* dst, const void* src) {
      ASSERT_TRUE(move_bytes_at(level, dst, src, len, dst_affinity, src_affinity, whole_bytes));
    });
    if (!testing::Test::HasFatalFailure()) return;
    FAIL() << level_name(level) << " affinities " << static_cast<int>(dst_affinity) << ","
           << static_cast<int>(src_affinity) << " whole " << whole_bytes;
  }

  template <class Copy>
  void check_by(std::size_t len, std::size_t src_shift, std::size_t dst_shift, Copy copy) {
    unsigned char* dst = dst_.data() + canary_bytes + dst_shift;
    unsigned char* expected = expected_.data() + canary_bytes + dst_shift;
    const unsigned char* src = src_.data() + canary_bytes + src_shift;
    // Anew each time, so that bytes left over from the former copy cannot pass for copied ones.
    std::memcpy(dst, inverse_.data() + canary_bytes + src_shift, len);
    std::memcpy(expected, src, len);
    copy(dst, src);
    const std::size_t around = len + 2 * canary_bytes;
    const bool same = std::memcmp(dst - canary_bytes, expected - canary_bytes, around) == 0 &&
                      std::memcmp(src - canary_bytes, src_before_.data() + src_shift, around) == 0;
    ASSERT_TRUE(same) << "len " << len << " src+" << src_shift << " dst+" << dst_shift;
  }

 private:
  std::vector<unsigned char> src_, dst_, expected_, src_before_, inverse_;
};

TEST_P(Move, every_small_size_at_many_alignments) {
  CopyArena arena(700);
  constexpr std::size_t shifts[] = {0, 1, 7, 8, 15, 16, 31, 33, 48, 63};
  for (std::size_t len = 0; len <= 600; ++len) {
    for (const std::size_t src_shift : shifts) {
      for (const std::size_t dst_shift : shifts) {
        arena.check(GetParam(), len, src_shift, dst_shift, Affinity::cacheable,
                    Affinity::cacheable);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Move, in_order_by_every_size_at_many_alignments) {
  CopyArena arena(10'000);
  std::mt19937_64 random(4);
  for (std::size_t len = 0; len <= 9'000; len += len < 1'200 ? 1 : 37) {
    for (int i = 0; i < 20; ++i) {
      arena.check_by(len, random() % 64, random() % 64, [&](void* dst, const void* src) {
        ASSERT_TRUE(move_in_order_at(GetParam(), dst, src, len));
      });
      if (HasFatalFailure()) FAIL() << level_name(GetParam());
    }
  }
}

TEST_P(Move, every_small_size_with_every_pair_of_affinities) {
  CopyArena arena(400);
  std::mt19937_64 random(3);
  for (std::size_t len = 0; len <= 300; ++len) {
    for (const Affinity dst : all_affinities) {
      for (const Affinity src : all_affinities) {
        for (int i = 0; i < 2 * thoroughness; ++i) {
          arena.check(GetParam(), len, random() % 64, random() % 64, dst, src);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Sizes spread evenly over the orders of magnitude, and those around every threshold.
TEST_P(Move, large_sizes_with_every_pair_of_affinities) {
  constexpr std::size_t largest = std::size_t{1} << 20;
  CopyArena arena(largest);
  std::mt19937_64 random(4);
  for (const Affinity dst : all_affinities) {
    for (const Affinity src : all_affinities) {
      for (int i = 0; i < 15 * thoroughness; ++i) {
        const std::size_t len = 1 + random() % (std::size_t{1} << (9 + random() % 12));
        arena.check(GetParam(), len, random() % 64, random() % 64, dst, src);
        if (HasFatalFailure()) return;
      }
      for (const std::size_t edge : {512u, 2048u, 4096u, 16384u, 32768u, 65536u}) {
        for (std::size_t len = edge - 2; len <= edge + 2; ++len) {
          arena.check(GetParam(), len, random() % 64, random() % 64, dst, src);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// A piece is moved in the manner of the whole: strings, or streams where no cache can hold it.
TEST_P(Move, a_piece_of_a_large_copy) {
  CopyArena arena(70000);
  std::mt19937_64 random(5);
  for (const std::size_t whole : {std::size_t{1} << 20, std::size_t{1} << 40}) {
    for (const Affinity dst : all_affinities) {
      for (const Affinity src : all_affinities) {
        for (const std::size_t len : {1u, 65u, 300u, 4095u, 4096u, 4097u, 16384u, 65536u}) {
          arena.check(GetParam(), len, random() % 64, random() % 64, dst, src, whole);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Both directions, in one buffer, against memmove of a copy of it.
void check_overlap(Level level, std::size_t len, std::size_t distance, bool forward,
                   std::size_t shift, Affinity dst_affinity, Affinity src_affinity) {
  static std::vector<unsigned char> fresh = random_bytes(600000, 6);
  const std::size_t total = 2 * canary_bytes + shift + distance + len;
  std::vector<unsigned char> actual(fresh.begin(),
                                    fresh.begin() + static_cast<std::ptrdiff_t>(total));
  std::vector<unsigned char> expected = actual;
  const std::size_t low = canary_bytes + shift, high = low + distance;
  const std::size_t to = forward ? low : high, from = forward ? high : low;
  std::memmove(expected.data() + to, expected.data() + from, len);
  ASSERT_TRUE(move_bytes_at(level, actual.data() + to, actual.data() + from, len, dst_affinity,
                            src_affinity));
  ASSERT_TRUE(actual == expected) << level_name(level) << " len " << len << " distance " << distance
                                  << (forward ? " down" : " up") << " shift " << shift;
}

TEST_P(Move, overlap_by_every_short_distance) {
  std::mt19937_64 random(7);
  for (std::size_t distance = 0; distance <= 200; ++distance) {
    for (const std::size_t len :
         {1u,   3u,   7u,   12u,  17u,  31u,  40u,  63u,  64u,  65u,   100u,
          128u, 130u, 200u, 256u, 257u, 300u, 511u, 513u, 700u, 1500u, 5000u}) {
      for (const bool forward : {false, true}) {
        check_overlap(GetParam(), len, distance, forward, random() % 64,
                      all_affinities[random() % 3], all_affinities[random() % 3]);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Move, overlap_of_large_copies) {
  std::mt19937_64 random(8);
  for (const Affinity dst : all_affinities) {
    for (const Affinity src : all_affinities) {
      for (int i = 0; i < 6 * thoroughness; ++i) {
        const std::size_t len = 10000 + random() % 200000;
        const std::size_t distance = i % 3 == 0 ? 1 + random() % 300 : 1 + random() % len;
        check_overlap(GetParam(), len, distance, i % 2 == 0, random() % 64, dst, src);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Neighbours in one buffer do not overlap, but share a cache line: its flush must lose nothing.
TEST_P(Move, a_destination_in_the_same_cache_line_as_the_source) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 50 * thoroughness; ++i) {
    const std::size_t len = 256 + random() % 3000;
    check_overlap(GetParam(), len, len + random() % 3, i % 2 == 0, random() % 64,
                  all_affinities[random() % 3], all_affinities[random() % 3]);
    if (HasFatalFailure()) return;
  }
}

// Neither reads nor writes nor prefetches into a fault: the pages beyond both ends are forbidden.
TEST_P(Move, touches_nothing_beyond_the_ends) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t room = 20 * page;
  unsigned char* map[2];
  for (auto& side : map) {
    void* base = mmap(nullptr, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(base, MAP_FAILED);
    side = static_cast<unsigned char*>(base) + page;
    ASSERT_EQ(mprotect(side, room, PROT_READ | PROT_WRITE), 0);
  }
  std::vector<std::size_t> sizes;
  for (std::size_t len = 0; len <= 600; ++len) sizes.push_back(len);
  for (const std::size_t len : {1000u, 4096u, 5000u, 16384u, 16500u, 66000u}) sizes.push_back(len);
  for (const std::size_t len : sizes) {
    for (const Affinity dst : all_affinities) {
      for (const Affinity src : all_affinities) {
        for (std::size_t i = 0; i < len; i += 37) map[1][i] = map[1][room - len + i] = 0x5a;
        ASSERT_TRUE(move_bytes_at(GetParam(), map[0], map[1], len, dst, src));
        ASSERT_EQ(std::memcmp(map[0], map[1], len), 0);
        ASSERT_TRUE(
            move_bytes_at(GetParam(), map[0] + room - len, map[1] + room - len, len, dst, src));
        ASSERT_EQ(std::memcmp(map[0] + room - len, map[1] + room - len, len), 0);
      }
    }
  }
  for (auto* side : map) munmap(side - page, room + 2 * page);
}

INSTANTIATE_TEST_SUITE_P(Levels, Move, testing::Values(Level::portable, Level::avx2, Level::avx512),
                         param_name);

TEST(MoveDispatch, nothing_at_all) {
  move_bytes(nullptr, nullptr, 0, Affinity::cacheable, Affinity::cacheable);
  move_bytes(nullptr, nullptr, 0, Affinity::non_cacheable, Affinity::neutral);
}

TEST(MoveDispatch, takes_the_best_level) {
  const std::vector<unsigned char> src = random_bytes(300000, 10);
  for (const std::size_t len : {0u, 5u, 64u, 65u, 1000u, 20000u, 300000u}) {
    std::vector<unsigned char> dst(300000, 0);
    move_bytes(dst.data(), src.data(), len, Affinity::cacheable, Affinity::cacheable);
    EXPECT_TRUE(
        std::equal(src.begin(), src.begin() + static_cast<std::ptrdiff_t>(len), dst.begin()));
    EXPECT_TRUE(std::all_of(dst.begin() + static_cast<std::ptrdiff_t>(len), dst.end(),
                            [](unsigned char byte) { return byte == 0; }));
  }
}

TEST(MoveDispatch, refuses_a_level_that_the_cpu_lacks) {
  unsigned char dst = 1;
  const unsigned char src = 2;
  for (const Level level : {Level::portable, Level::avx2, Level::avx512}) {
    dst = 1;
    const bool can = level <= best_level();
    EXPECT_EQ(move_bytes_at(level, &dst, &src, 1, Affinity::cacheable, Affinity::cacheable), can);
    EXPECT_EQ(dst, can ? 2 : 1);
    EXPECT_EQ(fill_bytes_at(level, &dst, 1, 3, 1, Affinity::cacheable), can);
    EXPECT_EQ(dst, can ? 3 : 1);
  }
}

}  // namespace
}  // namespace haul::copy
