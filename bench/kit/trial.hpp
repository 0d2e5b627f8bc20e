// A copy of one size in one cache state: its source and destination are rewritten before each run
// and checked after it.
#pragma once

#include <haul/haul.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/kit/buffer.hpp"
#include "bench/kit/cache.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/suite.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"

namespace haul::bench {

class CopyTrial {
 public:
  CopyTrial(CachePreparer& caches, std::size_t bytes, CacheState cache);

  // Writes new content, sets the cache state and wakes the mover. Call it outside the timed
  // section.
  void prepare();
  // Throws CommandFailure unless the destination holds what prepare() wrote. Call it outside the
  // timed section.
  void check();

  std::byte* dst() { return dst_.data(); }
  const std::byte* src() const { return src_.data(); }
  std::size_t bytes() const { return src_.size(); }
  haul_ticket copy() { return haul_copy(dst(), src(), bytes()); }
  int copy_by_memcpy() {
    glibc_memcpy(dst(), src(), bytes());
    return 0;
  }

  // Prepares, times `copy`, which returns a status, and checks.
  template <class Copy>
  double time_ns(Copy&& copy) {
    prepare();
    int status = 0;
    const double ns = timed_ns([&] { status = copy(); });
    tools::require(status, "a copy");
    check();
    return ns;
  }

 private:
  CachePreparer& caches_;
  CacheState cache_;
  Buffer src_, dst_;
  std::uint64_t seed_;
};

// Which thread copied, by haul's counters, and through which engine, by its plan.
struct WhoCopied {
  std::string scheme, engine;
  double dedicated_share = 0;  // of the requests since the watch began
};
class MoverWatch {
 public:
  // Asks for the plan of `request` at this moment; the buffers and the mover are to be prepared.
  explicit MoverWatch(const haul_request& request);
  WhoCopied finish() const;

 private:
  haul_plan plan_{};
  haul_state before_{};
};
haul_request request_of(CopyTrial& trial);

// Runs every body once in each repetition, in an order that rotates (A B, B A), so that all see the
// same noise. The first repetition warms up; bodies are told whether to keep what they measured.
using Body = std::function<void(bool measured)>;
void interleave(unsigned repetitions, const std::vector<Body>& bodies);

// Copies by haul and by glibc's memcpy, side by side.
struct MemcpyRace {
  Samples haul, memcpy;
  WhoCopied mover;
};
// copy(): copies the whole trial by haul and returns a status. planned: the request whose plan
// names the scheme and the engine.
template <class Copy>
MemcpyRace race_memcpy(CopyTrial& trial, const haul_request& planned, unsigned repetitions,
                       const Copy& copy) {
  MemcpyRace race;
  trial.prepare();
  const MoverWatch watch(planned);
  interleave(repetitions, {[&](bool measured) {
                             const double ns = trial.time_ns(copy);
                             if (measured) race.haul.push_back(ns);
                           },
                           [&](bool measured) {
                             const double ns =
                                 trial.time_ns([&] { return trial.copy_by_memcpy(); });
                             if (measured) race.memcpy.push_back(ns);
                           }});
  race.mover = watch.finish();
  return race;
}

// How often to repeat a copy of this size; few times for large ones, which would take minutes.
unsigned repetitions_of(std::size_t bytes, bool quick);

// The fields with which the row of a case begins, and those with which it ends.
Row begin_row(const WhoCopied& mover, const Case& one);
void end_row(Row& row, const WhoCopied& mover, std::size_t repetitions);

}  // namespace haul::bench
