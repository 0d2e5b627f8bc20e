// Trials, who moved them, and the interleaving of runs.
#include "bench/kit/trial.hpp"
#include "tools/units.hpp"

#include <algorithm>

namespace haul::bench {
namespace {

// Half a page and a line: source and destination never alias modulo 4 KiB.
constexpr std::size_t dst_shift_bytes = 2112;

std::uint64_t next_seed() {
  static std::uint64_t seed = 0;
  return ++seed;
}

}  // namespace

CopyTrial::CopyTrial(CachePreparer& caches, std::size_t bytes, CacheState cache)
    : caches_(caches), cache_(cache), src_(bytes), dst_(bytes, dst_shift_bytes), seed_(0) {}

void CopyTrial::prepare() {
  seed_ = next_seed();
  write_content(src_.data(), bytes(), seed_);
  caches_.prepare(cache_, src_.data(), dst_.data(), bytes());
  wake_mover();
  // Waking the mover has read a line or two of haul's own, so what must be hot is made hot again.
  if (cache_ == CacheState::hot) caches_.prepare(cache_, src_.data(), dst_.data(), bytes());
}

void CopyTrial::check() {
  check_content(dst_.data(), bytes(), seed_);
}

haul_request request_of(CopyTrial& trial) {
  return haul_request_copy(trial.dst(), trial.src(), trial.bytes());
}

MoverWatch::MoverWatch(const haul_request& request) {
  plan_.size = sizeof plan_;
  tools::require(haul_explain(&request, &plan_), "haul_explain()");
  before_.size = sizeof before_;
  tools::require(haul_query(&before_), "haul_query()");
}

WhoCopied MoverWatch::finish() const {
  haul_state after{};
  after.size = sizeof after;
  tools::require(haul_query(&after), "haul_query()");
  WhoCopied mover{plan_.scheme, plan_.engine, 0};
  auto dedicated = static_cast<double>(after.dedicated - before_.dedicated);
  double all = dedicated + static_cast<double>(after.inlined - before_.inlined);
  if (all <= 0) return mover;
  mover.dedicated_share = dedicated / all;
  if (!mover.scheme.empty()) mover.scheme[0] = mover.dedicated_share > 0.5 ? 'M' : 'S';
  return mover;
}

void interleave(unsigned repetitions, const std::vector<Body>& bodies) {
  for (unsigned r = 0; r <= repetitions; ++r) {
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      bodies[(i + r) % bodies.size()](r != 0);
    }
  }
}

unsigned repetitions_of(std::size_t bytes, bool quick) {
  using tools::mib;
  std::size_t budget = quick ? 128 * mib : 512 * mib;
  std::size_t most = quick ? 41 : 301, least = quick ? 5 : 9;
  return static_cast<unsigned>(std::clamp(budget / std::max<std::size_t>(bytes, 1), least, most));
}

Row begin_row(const WhoCopied& mover, const Case& one) {
  return {{"scheme", mover.scheme},
          {"engine", mover.engine},
          {"cache", cache_name(one.cache)},
          {"placement", ""},
          {"size_bytes", one.bytes}};
}

void end_row(Row& row, const WhoCopied& mover, std::size_t repetitions) {
  row["dedicated_share"] = round3(mover.dedicated_share);
  row["repetitions"] = repetitions;
}

}  // namespace haul::bench
