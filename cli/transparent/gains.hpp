// What haul's ways would make of a libc call, measured here and now.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "cli/transparent/mem_tables.hpp"

namespace haul::cli {

struct Gain {
  // Shares of libc's time: medians of interleaved copies.
  double caller = 1, together = 1;
  // Which takes so long for a byte; 0 where that was not measured.
  double libc_ns = 0;
};

// Measures each question once, 5 to 300 ms. For copies between private memory; a source that is in
// the cache as far as it fits.
class Gains {
 public:
  // How much longer calls would have taken by libc; negative: how much shorter. Judged by those of
  // them that libc made, and, where it made none, by measuring.
  double spared_ns(const KindCount& kind);
  // The gain for calls of this class of lengths into pages like these. No gain (1) where
  // `haul run --transparent` would leave the call to libc: it is too short, or its pages are there
  // and it is not long.
  const Gain& of(preload::Pages pages, std::size_t size_class);

 private:
  std::map<std::pair<preload::Pages, std::size_t>, Gain> known_;
};

}  // namespace haul::cli
