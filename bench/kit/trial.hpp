// One size in one cache state: a source and a destination, renewed before each run, checked after
// it.
#pragma once

#include <haul/haul.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/kit/buffer.hpp"
#include "bench/kit/cache.hpp"

namespace haul::bench {

class CopyTrial {
 public:
  CopyTrial(CachePreparer& caches, std::size_t bytes, CacheState cache);

  // New content, the cache state, and the mover awake. Outside of the timed section.
  void prepare();
  // Throws Failure unless the destination holds what prepare() wrote. Outside of the timed section.
  void check();

  std::byte* dst() { return dst_.data(); }
  const std::byte* src() const { return src_.data(); }
  std::size_t bytes() const { return src_.size(); }
  haul_ticket copy() { return haul_copy(dst(), src(), bytes()); }

 private:
  CachePreparer& caches_;
  CacheState cache_;
  Buffer src_, dst_;
  std::uint64_t seed_;
};

// Who copied, by haul's counters, and through which engine, by its plan.
struct WhoCopied {
  std::string scheme, engine;
  double dedicated_share = 0;  // of the requests since the watch began
};
class MoverWatch {
 public:
  // Asks for the plan of `request` now, with buffers and mover prepared.
  explicit MoverWatch(const haul_request& request);
  WhoCopied finish() const;

 private:
  haul_plan plan_{};
  haul_state before_{};
};
haul_request request_of(CopyTrial& trial);

// Runs every body once a repetition, in turning order (A B A B), so that all see the same noise.
// The first repetition warms up; bodies are told whether to keep what they measured.
using Body = std::function<void(bool measured)>;
void interleave(unsigned repetitions, const std::vector<Body>& bodies);

// How often to repeat a copy of this size, so that large ones do not take minutes.
unsigned repetitions_of(std::size_t bytes, bool quick);

}  // namespace haul::bench
