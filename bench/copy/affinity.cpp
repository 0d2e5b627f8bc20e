// affinity (paper 003, III-B): what a copy leaves of its source and destination in the cache, and
// what it drives out of a bystander's working set. The copy runs on the bystander's own core.
#include <fmt/format.h>

#include <array>

#include "bench/kit/columns.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr std::size_t bystander_bytes = std::size_t{512} << 10;
constexpr std::size_t bystander_lines = bystander_bytes / line_bytes;
constexpr std::size_t sampled_lines = 2048;
constexpr const char* names[] = {"cacheable", "non-cacheable", "neutral"};
constexpr std::size_t kinds = std::size(names), pairs = kinds * kinds;

struct AffinityFigures {
  Samples source, destination, bystander, undisturbed, copy;
};

class AffinitySuite {
 public:
  AffinitySuite(SuiteRun& session, std::size_t bytes)
      : trial_(session.caches, bytes, CacheState::cold),
        bystander_(bystander_bytes),
        lines_(random_lines(bytes, sampled_lines, 1)) {
    link_circle(bystander_.data(), bystander_bytes, 2);
  }

  // One repetition of one pair. Each figure gets a copy of its own, because reading for one figure
  // would disturb the others.
  void repeat(std::size_t pair, AffinityFigures& figures) {
    double copy_ns = copy(pair);
    double bystander_ns = chase_ns();
    trial_.check();
    rest(copy_ns);
    figures.undisturbed.push_back(chase_ns());
    figures.bystander.push_back(bystander_ns);
    figures.copy.push_back(copy_ns);
    copy(pair);
    figures.source.push_back(lines_ns(trial_.src()));
    trial_.check();
    copy(pair);
    figures.destination.push_back(lines_ns(trial_.dst()));
    trial_.check();
  }

  haul_request request(std::size_t pair) {
    haul_request request = request_of(trial_);
    request.src_affinity = static_cast<std::uint8_t>(pair / kinds);
    request.dst_affinity = static_cast<std::uint8_t>(pair % kinds);
    request.flags = HAUL_INLINE;
    return request;
  }
  CopyTrial& trial() { return trial_; }

 private:
  void warm_bystander() {
    for (int i = 0; i < 3; ++i) keep(chase(bystander_.data(), bystander_bytes));
  }

  double copy(std::size_t pair) {
    trial_.prepare();
    warm_bystander();
    haul_request asked = request(pair);
    haul_ticket ticket{};
    int status = 0;
    double ns = timed_ns([&] {
      status = haul_submit(&asked, 1, &ticket);
      if (status >= 0) status = haul_wait(ticket);
    });
    tools::require(status, "haul_submit()");
    return ns;
  }

  // The undisturbed control takes as long as a copy, but copies nothing.
  void rest(double ns) {
    trial_.prepare();
    std::uint64_t steps = compute_steps(ns);
    warm_bystander();
    keep(compute(steps));
  }

  double chase_ns() {
    return timed_ns([&] { keep(chase(bystander_.data(), bystander_bytes)); }) /
           static_cast<double>(bystander_lines);
  }

  double lines_ns(const std::byte* data) {
    return timed_ns([&] { keep(read_lines(data, lines_)); }) / static_cast<double>(lines_.size());
  }

  CopyTrial trial_;
  Buffer bystander_;
  std::vector<std::uint32_t> lines_;
};

Row row_of(std::size_t pair, std::size_t bytes, const WhoCopied& mover,
           const AffinityFigures& figures) {
  Row row = {{"scheme", mover.scheme},
             {"engine", mover.engine},
             {"source", names[pair / kinds]},
             {"destination", names[pair % kinds]},
             {"cache", cache_name(CacheState::cold)},
             {"size_bytes", bytes},
             {"source_ns_per_line", round1(median(figures.source))},
             {"destination_ns_per_line", round1(median(figures.destination))},
             {"bystander_ns_per_line", round3(median(figures.bystander))},
             {"undisturbed_ns_per_line", round3(median(figures.undisturbed))}};
  put_ratio(row, "ratio", ratio_of(figures.bystander, figures.undisturbed));
  row["copy_ns"] = round1(median(figures.copy));
  row["repetitions"] = figures.bystander.size();
  return row;
}

void run_affinity(SuiteRun& session, std::vector<Row>& rows) {
  for (std::size_t bytes : sizes_or(session.options, {std::size_t{4} << 20})) {
    AffinitySuite affinity(session, bytes);
    std::array<AffinityFigures, pairs> figures;
    std::vector<WhoCopied> movers;
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      affinity.trial().prepare();
      MoverWatch watch(affinity.request(pair));
      AffinityFigures warm_up;
      affinity.repeat(pair, warm_up);
      movers.push_back(watch.finish());
    }
    const unsigned repetitions = session.options.quick ? 7 : 21;
    for (unsigned r = 0; r < repetitions; ++r) {
      session.options.progress(static_cast<double>(r) / repetitions,
                               fmt::format("{}, all pairs", tools::show_bytes(bytes)));
      for (std::size_t i = 0; i < pairs; ++i) {
        std::size_t pair = (i + r) % pairs;
        affinity.repeat(pair, figures[pair]);
      }
    }
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      rows.push_back(row_of(pair, bytes, movers[pair], figures[pair]));
    }
  }
}

constexpr auto affinity_columns = columns_of(
    Column{"source", "source", Unit::text}, Column{"destination", "destination", Unit::text},
    column::size, Column{"source_ns_per_line", "source/line", Unit::ns},
    Column{"destination_ns_per_line", "dest./line", Unit::ns},
    Column{"bystander_ns_per_line", "bystander", Unit::ns},
    Column{"undisturbed_ns_per_line", "undisturbed", Unit::ns},
    Column{"ratio", "bystander/undist.", Unit::ratio}, column::ratio_q25, column::ratio_q75,
    column::copy_ns);

}  // namespace

const Suite affinity_suite{
    "affinity", "what a copy leaves in the cache, and what it drives out (paper 003, III-B)",
    run_affinity, affinity_columns};

}  // namespace haul::bench
