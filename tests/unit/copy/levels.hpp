// What the tests of this folder share: the levels that this CPU can, and memory with canaries.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/sanitizer.hpp"
#include "copy/copy.hpp"

namespace haul::copy {

inline constexpr Affinity all_affinities[] = {Affinity::cacheable, Affinity::non_cacheable,
                                              Affinity::neutral};

// Repetitions are multiples of this. An instrumented build has one road only, and is slow.
inline constexpr int thoroughness = accesses_are_checked ? 1 : 8;

inline std::string level_name(Level level) {
  return level == Level::avx512 ? "avx512" : level == Level::avx2 ? "avx2" : "portable";
}

// A test of this class runs once a level and is skipped, visibly, where the CPU lacks it.
class EachLevel : public testing::TestWithParam<Level> {
 protected:
  void SetUp() override {
    if (GetParam() > best_level()) GTEST_SKIP() << "this CPU cannot " << level_name(GetParam());
  }
};

inline std::string param_name(const testing::TestParamInfo<Level>& info) {
  return level_name(info.param);
}

// Bytes that a copy of the wrong stretch does not reproduce by accident.
inline std::vector<unsigned char> random_bytes(std::size_t count, std::uint64_t seed) {
  std::vector<unsigned char> out(count);
  std::mt19937_64 random(seed);
  for (auto& byte : out) byte = static_cast<unsigned char>(random() >> 32);
  return out;
}

}  // namespace haul::copy
