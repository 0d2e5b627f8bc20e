// How copies are made: the schemes that paper 003 compares (figures 2 and 9).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/affinity.hpp"

namespace bcisim {

enum class Scheme : std::uint8_t {
  traditional,          // the traced loop
  vector_loop,          // a loop with references of 16 bytes (figure 1, SSE2)
  rep_movs,             // an implicit loop: fetched once, a load and a store for each 8 bytes
  copy_engine,          // CopyEng: an instruction that retires when the copy is done
  dma,                  // 0-DMA: retires once validated; dependents wait for the whole copy
  fast_bci,             // retires once validated; dependents wait for their block
  perfect_granularity,  // figure 2: as copy_engine
  perfect_pipeline,     // figure 2: as fast_bci, with as many engines as there are copies
  perfect_cache  // figure 2: as perfect_pipeline, with caches that copies help and never harm
};

struct SchemeTraits {
  Scheme scheme;
  std::string_view name;  // in the command line and in figures' data
  bool uses_engine;       // else a loop of instructions copies
  bool retires_early;     // once validated
  bool waits_by_block;    // dependents, else for the whole copy
  bool many_engines;
  bool perfect_cache;
};

inline constexpr std::array<SchemeTraits, 9> schemes{{
    {Scheme::traditional, "traditional", false, false, false, false, false},
    {Scheme::vector_loop, "vector-loop", false, false, false, false, false},
    {Scheme::rep_movs, "rep-movs", false, false, false, false, false},
    {Scheme::copy_engine, "copy-engine", true, false, false, false, false},
    {Scheme::dma, "0-dma", true, true, false, false, false},
    {Scheme::fast_bci, "fast-bci", true, true, true, false, false},
    {Scheme::perfect_granularity, "perfect-granularity", true, false, false, false, false},
    {Scheme::perfect_pipeline, "perfect-pipeline", true, true, true, true, false},
    {Scheme::perfect_cache, "perfect-cache", true, true, true, true, true},
}};

constexpr const SchemeTraits& traits_of(Scheme scheme) {
  return schemes[static_cast<std::size_t>(scheme)];
}

}  // namespace bcisim
