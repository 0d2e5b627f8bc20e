// The suites, one for each figure or table. A suite yields rows of named figures; it does not
// print.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/kit/cache.hpp"
#include "bench/kit/stage.hpp"
#include "bench/kit/stats.hpp"

namespace haul::bench {

using Row = nlohmann::ordered_json;

// What the suites with MPI measure; an empty list leaves the choice to the suite.
struct MpiChoice {
  std::vector<std::string> mpis, tests, buffers, classes;
  std::vector<unsigned> ranks;
};

// One of paper 000's four schemes by one engine.
struct EngineScheme {
  std::string scheme;  // SCNI, MCNI, SCI, MCI
  std::string engine;
  std::string registration;  // how memory is registered (as HAUL_MEMORY_REGISTER), or none
  bool hardware = true;      // else the engine only stands for some
};

struct SuiteOptions {
  bool quick = false;
  std::vector<std::size_t> sizes;  // empty: the suite chooses
  MpiChoice mpi;
  std::vector<EngineScheme> schemes;  // those to compare; empty: haul plans
  std::function<void(double share, const std::string& step)> progress = [](double, const auto&) {};
  // Takes one sentence about what was left out, and why.
  std::function<void(const std::string& sentence)> note = [](const auto&) {};
};

// How the printed table shows a field of a row.
enum class Unit { text, bytes, ns, us, seconds, ratio, gbps, count };
struct Column {
  const char* field;
  const char* title;
  Unit unit;
};
template <class... Columns>
constexpr std::array<Column, sizeof...(Columns)> columns_of(const Columns&... columns) {
  return {columns...};
}

// The distance of the two cores before and after a row or a suite. It can change: a hypervisor may
// move the cores at any time.
struct LineDistance {
  double before_ns = 0, after_ns = 0;
  const char* placement() const;  // near if both are; else far; none with one CPU
  void write_to(Row& row) const;
};

struct SuiteRun {
  Stage& stage;
  CachePreparer& caches;
  const SuiteOptions& options;
  double distance_ns = 0;  // as measured last
  std::span<const Column> suite_columns = {};
  // Shown behind the suite's own, where its options ask for more figures.
  std::vector<Column> more_columns = {};
};

// Each suite is defined in its own file.
struct Suite {
  const char* name;
  const char* help;
  void (*run)(SuiteRun& session, std::vector<Row>& rows);
  std::span<const Column> columns;
  bool needs_distance = false;  // rows carry placement
  // Returns "" if the suite can run here, else the reason why not; `haul bench all` then leaves it
  // out. Null: it can always run.
  std::string (*why_not)() = nullptr;
  bool by_scheme = false;  // it compares SuiteOptions::schemes
  // The tests among which --test chooses. Null: it has none.
  const std::vector<std::string>& (*tests)() = nullptr;
};
extern const Suite hide_suite, latency_suite, bandwidth_suite, split_suite, threads_suite,
    affinity_suite, order_suite, checked_suite, service_suite, clients_suite, share_suite,
    mpi_suite, mpi_schemes_suite, mpi_kernels_suite, mpi_matching_suite, mpi_overlap_suite,
    mpi_loopback_suite, nas_suite, atomic_suite, lock_suite, bystander_suite,
    bystander_bandwidth_suite, fresh_suite, transparent_suite, protect_suite, programs_suite,
    copy_time_suite, pinning_suite, receive_suite, mpi_pinning_suite, cuda_suite;

// All of them, in the order in which `haul bench all` runs them.
std::span<const Suite* const> suites();

struct Result {
  const Suite* suite = nullptr;
  LineDistance distance;
  std::vector<Column> columns;
  std::vector<Row> rows;
};

// Runs one suite. Throws CommandFailure.
Result run_suite(const Suite& suite, Stage& stage, const SuiteOptions& options);

// {host, date, suite, rows}
nlohmann::ordered_json document(const std::string& name, const std::vector<Result>& results,
                                const Stage& stage);

// 64 B to 64 MiB in powers of four.
const std::vector<std::size_t>& default_sizes();
// The sizes asked for, or `own`.
std::vector<std::size_t> sizes_or(const SuiteOptions& options, const std::vector<std::size_t>& own);

// Every size in each cache state that it fits. Without --sizes, 8 MiB is added to the L3 rows.
struct Case {
  CacheState cache;
  std::size_t bytes;
};
std::vector<Case> all_cases(const SuiteRun& session);
// The sizes asked for, or `own`, each from cold memory.
std::vector<Case> cold_cases(const SuiteRun& session, const std::vector<std::size_t>& own);

// Adds a row that carries placement, after measuring the distance again.
void add_placed(SuiteRun& session, std::vector<Row>& rows, Row row);

// Measures one row for each case, with progress. A row that has a field for the placement gets it.
void measure_cases(SuiteRun& session, std::vector<Row>& rows, const std::vector<Case>& cases,
                   const std::function<Row(SuiteRun&, const Case&)>& measure);

// Adds FIELD (the median), FIELD_q25 and FIELD_q75.
void put_ratio(Row& row, const std::string& field, const Ratio& ratio);

}  // namespace haul::bench
