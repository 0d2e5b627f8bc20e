// overhead (paper 004, Fig. 1): what a copy takes from the computation of the thread that asks for
// it, by memcpy and by a device, from cache and from memory.
//
// The thread submits, then computes and looks at the copy in turns until it has ended; what the
// copy took is the whole time less that of the computation. So whatever the CPU does for the device
// counts: the submission, the looks, interrupts and what the kernel does in them, as far as it
// happens on this CPU. The paper measures a receiver the same way: its messages come while it
// computes.
#include <haul/haul.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "base/machine/topology.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/device.hpp"
#include "bench/kit/processes.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

// How long the thread computes between two looks.
constexpr double look_every_ns = 20'000;
constexpr std::array<CacheState, 2> overhead_caches = {CacheState::hot, CacheState::cold};

struct OverheadFigures {
  double memcpy_ns, overhead_ns, submit_ns, looks;
  Ratio ratio;
};
struct OverheadBlock {
  std::size_t bytes;
  unsigned rounds;
  OverheadFigures figures[overhead_caches.size()];
};

std::string device_asked_for() {
  const char* const name = std::getenv("HAUL_PLAN_ENGINE");
  return name != nullptr && *name != '\0' ? name : "nic";
}

// A copy between two buffers that no mover knows of: one that is awake would take it.
class OverheadTrial {
 public:
  OverheadTrial(CachePreparer& caches, const Case& one)
      : caches_(caches), cache_(one.cache), src_(one.bytes), dst_(one.bytes, shift_bytes) {}

  void prepare() {
    write_content(src_.data(), src_.size(), ++seed_);
    caches_.prepare(cache_, src_.data(), dst_.data(), src_.size());
  }
  haul_ticket copy() { return haul_copy(dst_.data(), src_.data(), src_.size()); }
  void copy_by_memcpy() { glibc_memcpy(dst_.data(), src_.data(), src_.size()); }
  void check() { check_content(dst_.data(), src_.size(), seed_); }

 private:
  static constexpr std::size_t shift_bytes = 2112;  // no 4 KiB aliasing

  CachePreparer& caches_;
  CacheState cache_;
  Buffer src_, dst_;
  std::uint64_t seed_ = 0;
};

struct Overhead {
  double all_ns, submit_ns;
  unsigned looks;
};

// `steps` of computation take `steps_ns`.
Overhead copy_beside_computation(OverheadTrial& trial, std::uint64_t steps, double steps_ns) {
  trial.prepare();
  unsigned looks = 1;
  const std::uint64_t begin = fenced_ticks();
  const haul_ticket ticket = trial.copy();
  const std::uint64_t submitted = fenced_ticks();
  int status = 0;
  for (; (status = haul_test(ticket)) == 0; ++looks) keep(compute(steps));
  const double whole_ns = span_ns(fenced_ticks() - begin);
  tools::require(status, "haul_copy()");
  trial.check();
  return {std::max(whole_ns - (looks - 1) * steps_ns, 0.0), span_ns(submitted - begin), looks};
}

OverheadFigures measure_overhead(CachePreparer& caches, const Case& one, unsigned rounds) {
  OverheadTrial trial(caches, one);
  const std::uint64_t steps = compute_steps(look_every_ns);
  Samples alone;
  for (unsigned i = 0; i < 15; ++i) alone.push_back(timed_ns([&] { keep(compute(steps)); }));
  const double steps_ns = median(alone);
  Samples by_memcpy, by_device, submit, looks;
  interleave(rounds, {[&](bool measured) {
                        trial.prepare();
                        const double ns = timed_ns([&] { trial.copy_by_memcpy(); });
                        trial.check();
                        if (measured) by_memcpy.push_back(ns);
                      },
                      [&](bool measured) {
                        const Overhead taken = copy_beside_computation(trial, steps, steps_ns);
                        if (!measured) return;
                        by_device.push_back(taken.all_ns);
                        submit.push_back(taken.submit_ns);
                        looks.push_back(taken.looks);
                      }});
  return {median(by_memcpy), median(by_device), median(submit), median(looks),
          ratio_of(by_device, by_memcpy)};
}

void run_overhead(SuiteRun& session, std::vector<Row>& rows) {
  const bool quick = session.options.quick;
  const std::string engine = device_asked_for();
  const std::vector<std::size_t> sizes =
      sizes_or(session.options, quick ? std::vector<std::size_t>{4096, 65536}
                                      : std::vector<std::size_t>{1024, 4096, 16384, 65536, 262144});
  const SharedBlock shared(sizeof(OverheadBlock));
  auto& block = shared.as<OverheadBlock>();
  for (std::size_t at = 0; at < sizes.size(); ++at) {
    session.options.progress(static_cast<double>(at) / static_cast<double>(sizes.size()),
                             "copies beside computation");
    block.bytes = sizes[at];
    block.rounds = quick ? 15 : 101;
    start_worker("overhead", 0, shared,
                 {{"HAUL_PLAN_ENGINE", engine}, {"HAUL_PLAN_MOVER", "caller"}})
        .finish("a copying process");
    for (std::size_t which = 0; which < overhead_caches.size(); ++which) {
      const OverheadFigures& figures = block.figures[which];
      Row row = {{"engine", engine},
                 {"cache", cache_name(overhead_caches[which])},
                 {"size_bytes", block.bytes},
                 {"memcpy_ns", round1(figures.memcpy_ns)},
                 {"overhead_ns", round1(figures.overhead_ns)},
                 {"submit_ns", round1(figures.submit_ns)},
                 {"looks", figures.looks}};
      put_ratio(row, "ratio", figures.ratio);
      row["rounds"] = block.rounds;
      rows.push_back(row);
    }
  }
}

constexpr auto overhead_columns = columns_of(
    Column{"engine", "engine", Unit::text}, column::cache, column::size, column::memcpy_ns,
    Column{"overhead_ns", "overhead", Unit::ns}, column::submit_ns,
    Column{"looks", "looks", Unit::count}, column::ratio, column::ratio_q25, column::ratio_q75);

std::string why_no_overhead() {
  return std::getenv("HAUL_PLAN_ENGINE") != nullptr
             ? ""
             : "HAUL_PLAN_ENGINE names no device to compare with memcpy";
}

}  // namespace

// Both cache states of one size, in one process, since opening a device takes long.
void work_as_overhead_copier(unsigned, int block_fd) {
  const SharedBlock shared(block_fd, sizeof(OverheadBlock));
  auto& block = shared.as<OverheadBlock>();
  auto topology = read_topology("");
  if (!topology) throw tools::CommandFailure(topology.error().sentence);
  CachePreparer caches(*topology);
  const std::string engine = device_asked_for();
  constexpr std::size_t opening_bytes = 65536;
  const Buffer from(opening_bytes);
  Buffer to(opening_bytes, 512);
  open_asked_engine(haul_request_copy(to.data(), from.data(), opening_bytes));
  for (std::size_t which = 0; which < overhead_caches.size(); ++which) {
    const std::uint64_t before = engine_info(engine.c_str()).bytes;
    block.figures[which] =
        measure_overhead(caches, {overhead_caches[which], block.bytes}, block.rounds);
    const std::uint64_t moved = engine_info(engine.c_str()).bytes - before;
    if (moved < block.rounds * block.bytes)
      throw tools::CommandFailure("engine " + engine + " left copies of this size to the CPU; " +
                                  engine_info(engine.c_str()).status);
  }
}

const Suite overhead_suite{
    "overhead",   "what a copy takes from its caller's computation (paper 004, Fig. 1)",
    run_overhead, overhead_columns,
    false,        why_no_overhead};

}  // namespace haul::bench
