// The table of suites, and what all suites share: sizes, placement, the JSON document.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <haul/haul.h>
#include <sys/utsname.h>

#include <chrono>
#include <utility>

#include "base/machine/cpu.hpp"
#include "bench/kit/suite.hpp"
#include "tools/units.hpp"

namespace haul::bench {

std::span<const Suite* const> suites() {
  static constexpr const Suite* all[] = {&hide_suite,
                                         &latency_suite,
                                         &bandwidth_suite,
                                         &split_suite,
                                         &threads_suite,
                                         &affinity_suite,
                                         &order_suite,
                                         &checked_suite,
                                         &service_suite,
                                         &clients_suite,
                                         &share_suite,
                                         &fresh_suite,
                                         &transparent_suite,
                                         &protect_suite,
                                         &programs_suite,
                                         &copy_time_suite,
                                         &pinning_suite,
                                         &receive_suite,
                                         &cuda_suite,
                                         &mpi_suite,
                                         &mpi_schemes_suite,
                                         &mpi_pinning_suite,
                                         &mpi_matching_suite,
                                         &mpi_kernels_suite,
                                         &mpi_overlap_suite,
                                         &mpi_loopback_suite,
                                         &nas_suite,
                                         &atomic_suite,
                                         &lock_suite,
                                         &bystander_suite,
                                         &bystander_bandwidth_suite};
  return all;
}

const char* LineDistance::placement() const {
  if (before_ns == 0 || after_ns == 0) return "none";
  return before_ns < near_below_ns && after_ns < near_below_ns ? "near" : "far";
}

void LineDistance::write_to(Row& row) const {
  row["placement"] = placement();
  row["round_trip_ns"] = round1(before_ns);
  row["round_trip_after_ns"] = round1(after_ns);
}

Result run_suite(const Suite& suite, Stage& stage, const SuiteOptions& options) {
  Result result;
  result.suite = &suite;
  CachePreparer caches(stage.topology());
  SuiteRun session{stage, caches, options};
  session.suite_columns = suite.columns;
  if (suite.needs_distance) session.distance_ns = stage.round_trip_ns();
  result.distance.before_ns = session.distance_ns;
  suite.run(session, result.rows);
  result.distance.after_ns = session.distance_ns;
  result.columns.assign(suite.columns.begin(), suite.columns.end());
  result.columns.insert(result.columns.end(), session.more_columns.begin(),
                        session.more_columns.end());
  return result;
}

nlohmann::ordered_json document(const std::string& name, const std::vector<Result>& results,
                                const Stage& stage) {
  utsname system{};
  uname(&system);
  const Topology& topology = stage.topology();
  nlohmann::ordered_json all;
  all["host"] = {{"name", system.nodename},
                 {"kernel", system.release},
                 {"cpu", cpu_features().brand},
                 {"cpus", topology.allowed_count},
                 {"l2_bytes", topology.l2_bytes},
                 {"l3_bytes", topology.l3_bytes},
                 {"caller_cpu", stage.caller_cpu()},
                 {"partner_cpu", stage.partner_cpu()},
                 {"haul", haul_version()}};
  all["date"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::now()));
  all["suite"] = name;
  all["rows"] = nlohmann::ordered_json::array();
  for (const Result& result : results) {
    for (const Row& row : result.rows) {
      Row with_suite = {{"suite", result.suite->name}};
      with_suite.update(row);
      all["rows"].push_back(with_suite);
    }
  }
  return all;
}

const std::vector<std::size_t>& default_sizes() {
  static const std::vector<std::size_t> sizes = [] {
    std::vector<std::size_t> all;
    for (std::size_t bytes = 64; bytes <= std::size_t{64} << 20; bytes *= 4) all.push_back(bytes);
    return all;
  }();
  return sizes;
}

std::vector<std::size_t> sizes_or(const SuiteOptions& options,
                                  const std::vector<std::size_t>& own) {
  return options.sizes.empty() ? own : options.sizes;
}

std::vector<Case> all_cases(const SuiteRun& session) {
  constexpr std::size_t l3_end_bytes = std::size_t{8} << 20;
  std::vector<Case> all;
  for (CacheState cache : {CacheState::hot, CacheState::l3, CacheState::cold}) {
    std::vector<std::size_t> sizes = sizes_or(session.options, default_sizes());
    if (session.options.sizes.empty() && cache == CacheState::l3) {
      sizes.push_back(l3_end_bytes);
    }
    for (std::size_t bytes : sizes) {
      if (bytes <= session.caches.largest(cache)) all.push_back({cache, bytes});
    }
  }
  return all;
}

std::vector<Case> cold_cases(const SuiteRun& session, const std::vector<std::size_t>& own) {
  std::vector<Case> all;
  for (std::size_t bytes : sizes_or(session.options, own)) all.push_back({CacheState::cold, bytes});
  return all;
}

void add_placed(SuiteRun& session, std::vector<Row>& rows, Row row) {
  const LineDistance distance{session.distance_ns, session.stage.round_trip_ns()};
  session.distance_ns = distance.after_ns;
  distance.write_to(row);
  rows.push_back(std::move(row));
}

void measure_cases(SuiteRun& session, std::vector<Row>& rows, const std::vector<Case>& cases,
                   const std::function<Row(SuiteRun&, const Case&)>& measure) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    session.options.progress(
        static_cast<double>(i) / static_cast<double>(cases.size()),
        fmt::format("{} {}", cache_name(one.cache), tools::show_bytes(one.bytes)));
    Row row = measure(session, one);
    if (row.contains("placement")) {
      add_placed(session, rows, std::move(row));
    } else {
      rows.push_back(std::move(row));
    }
  }
}

void put_ratio(Row& row, const std::string& field, const Ratio& ratio) {
  row[field] = round3(ratio.median);
  row[field + "_q25"] = round3(ratio.low);
  row[field + "_q75"] = round3(ratio.high);
}

}  // namespace haul::bench
