// The suites: one a figure or table. A suite yields rows of named figures; who prints them is not
// its business.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/kit/cache.hpp"
#include "bench/kit/stage.hpp"

namespace haul::bench {

using Row = nlohmann::ordered_json;

// What the suites with MPI measure; empty lists: the suite's own choice.
struct MpiChoice {
  std::vector<std::string> mpis, tests, buffers, classes;
  std::vector<unsigned> ranks;
};

struct SuiteOptions {
  bool quick = false;
  std::vector<std::size_t> sizes;  // empty: the suite's own
  MpiChoice mpi;
  std::function<void(double share, const std::string& step)> progress = [](double, const auto&) {};
  // What was left out, and why: one sentence.
  std::function<void(const std::string& sentence)> note = [](const auto&) {};
};

// What a column of the table for people shows of a row.
enum class Unit { text, bytes, ns, us, seconds, ratio, gbps, count };
struct Column {
  const char* field;
  const char* title;
  Unit unit;
};

// The distance of the two cores before and after a row, or a suite: a hypervisor may move them at
// any time.
struct LineDistance {
  double before_ns = 0, after_ns = 0;
  const char* placement() const;  // near if both are, else far; none on a one-CPU machine
};

struct SuiteRun {
  Stage& stage;
  CachePreparer& caches;
  const SuiteOptions& options;
  double distance_ns = 0;  // as measured last
};

struct Suite {
  const char* name;
  const char* help;
  void (*run)(SuiteRun& session, std::vector<Row>& rows);
  std::vector<Column> columns;
  bool needs_distance;  // rows carry placement
  // "" if it can run here, else why not: `haul bench all` then leaves it out. None: it always can.
  std::string (*why_not)() = nullptr;
};

const std::vector<Suite>& suites();
const Suite* find_suite(const std::string& name);

struct Result {
  const Suite* suite = nullptr;
  LineDistance distance;
  std::vector<Row> rows;
};

// Runs one suite. Throws Failure.
Result run_suite(const Suite& suite, Stage& stage, const SuiteOptions& options);

// {host, date, suite, rows}
nlohmann::ordered_json document(const std::string& name, const std::vector<Result>& results,
                                const Stage& stage);

// 64 B to 64 MiB in powers of four.
const std::vector<std::size_t>& default_sizes();
// The sizes asked for, or `own`.
const std::vector<std::size_t>& sizes_or(const SuiteOptions& options,
                                         const std::vector<std::size_t>& own);

// Each size in each cache state it fits; without --sizes, 8 MiB is added to the L3 rows.
struct Case {
  CacheState cache;
  std::size_t bytes;
};
std::vector<Case> cases(const SuiteRun& session);

// "cold 1 MiB", for progress.
std::string describe(const Case& one);

// Adds a row that carries placement: measures the distance behind it.
void add_placed(SuiteRun& session, std::vector<Row>& rows, Row row);

// One row a case, with placement and progress.
void measure_cases(SuiteRun& session, std::vector<Row>& rows,
                   Row (*measure)(SuiteRun&, const Case&));

// The suites.
void run_hide(SuiteRun& session, std::vector<Row>& rows);
void run_latency(SuiteRun& session, std::vector<Row>& rows);
void run_bandwidth(SuiteRun& session, std::vector<Row>& rows);
void run_split(SuiteRun& session, std::vector<Row>& rows);
void run_threads(SuiteRun& session, std::vector<Row>& rows);
void run_affinity(SuiteRun& session, std::vector<Row>& rows);
void run_order(SuiteRun& session, std::vector<Row>& rows);
void run_checked(SuiteRun& session, std::vector<Row>& rows);
void run_service(SuiteRun& session, std::vector<Row>& rows);
void run_clients(SuiteRun& session, std::vector<Row>& rows);
void run_share(SuiteRun& session, std::vector<Row>& rows);
void run_mpi(SuiteRun& session, std::vector<Row>& rows);
void run_mpi_schemes(SuiteRun& session, std::vector<Row>& rows);
void run_nas(SuiteRun& session, std::vector<Row>& rows);

}  // namespace haul::bench
