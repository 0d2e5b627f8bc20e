// The table of suites, and what all of them share: sizes, placement, the JSON document.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <haul/haul.h>
#include <sys/utsname.h>

#include <chrono>
#include <utility>

#include "base/cpu.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/suite.hpp"
#include "bench/messages/mpi_race.hpp"
#include "bench/remote/suites_atomic.hpp"
#include "tools/units.hpp"

namespace haul::bench {

namespace {

// Those of copies and messages.
std::vector<Suite> copy_suites() {
  const Column cache{"cache", "cache", Unit::text}, size{"size_bytes", "size", Unit::bytes},
      scheme{"scheme", "scheme", Unit::text}, memcpy_ns{"memcpy_ns", "memcpy", Unit::ns},
      ratio{"ratio", "ratio", Unit::ratio}, low{"ratio_q25", "25 %", Unit::ratio},
      high{"ratio_q75", "75 %", Unit::ratio}, mpi{"mpi", "MPI", Unit::text},
      transport{"transport", "transport", Unit::text}, ranks{"ranks", "ranks", Unit::count},
      time{"median_us", "time", Unit::us}, to_native{"ratio_to_native", "of native", Unit::ratio},
      to_native_low{"ratio_to_native_q25", "25 %", Unit::ratio},
      to_native_high{"ratio_to_native_q75", "75 %", Unit::ratio};
  return {
      {"hide",
       "copy, compute, read: how much of the copy hides behind the compute",
       run_hide,
       {{"placement", "cores", Unit::text},
        cache,
        size,
        scheme,
        memcpy_ns,
        {"compute_ns", "compute", Unit::ns},
        {"read_ns", "read", Unit::ns},
        {"remote_read_ns", "read moved", Unit::ns},
        {"bound_ns", "bound", Unit::ns},
        {"serial_ns", "serial", Unit::ns},
        {"total_ns", "total", Unit::ns},
        {"overlap", "overlap", Unit::ratio},
        {"ratio_serial", "total/serial", Unit::ratio},
        low,
        high},
       true},
      {"latency",
       "copy and wait at once, against memcpy",
       run_latency,
       {{"placement", "cores", Unit::text},
        cache,
        size,
        scheme,
        {"haul_ns", "haul", Unit::ns},
        {"haul_p99_ns", "p99", Unit::ns},
        memcpy_ns,
        ratio,
        low,
        high},
       true},
      {"bandwidth",
       "eight pieces in flight, against one memcpy",
       run_bandwidth,
       {{"placement", "cores", Unit::text},
        cache,
        size,
        {"window", "window", Unit::count},
        scheme,
        {"haul_gbps", "haul", Unit::gbps},
        {"memcpy_gbps", "memcpy", Unit::gbps},
        {"speedup", "speedup", Unit::ratio},
        {"speedup_q25", "25 %", Unit::ratio},
        {"speedup_q75", "75 %", Unit::ratio}},
       true},
      {"split",
       "what one submit, test and wake cost the caller (paper 000, Fig. 7)",
       run_split,
       {size,
        scheme,
        {"submit_ns", "submit", Unit::ns},
        {"batch_submit_ns", "in a batch", Unit::ns},
        {"haul_copy_ns", "haul_copy()", Unit::ns},
        {"test_ns", "test", Unit::ns},
        {"wake_ns", "submit asleep", Unit::ns},
        {"copy_ns", "copy", Unit::ns}},
       false},
      {"threads",
       "one to eight threads that submit, against as many that memcpy",
       run_threads,
       {{"threads", "threads", Unit::count},
        size,
        scheme,
        {"haul_gbps", "haul", Unit::gbps},
        {"memcpy_gbps", "memcpy", Unit::gbps},
        {"speedup", "speedup", Unit::ratio},
        {"speedup_q25", "25 %", Unit::ratio},
        {"speedup_q75", "75 %", Unit::ratio}},
       false},
      {"affinity",
       "what a copy leaves in the cache, and what it drives out (paper 003, III-B)",
       run_affinity,
       {{"source", "source", Unit::text},
        {"destination", "destination", Unit::text},
        size,
        {"source_ns_per_line", "source/line", Unit::ns},
        {"destination_ns_per_line", "dest./line", Unit::ns},
        {"bystander_ns_per_line", "bystander", Unit::ns},
        {"undisturbed_ns_per_line", "undisturbed", Unit::ns},
        {"ratio", "bystander/undist.", Unit::ratio},
        low,
        high,
        {"copy_ns", "copy", Unit::ns}},
       false},
      {"order",
       "sum a large copy front to back while it is being made",
       run_order,
       {{"placement", "cores", Unit::text},
        cache,
        size,
        scheme,
        memcpy_ns,
        {"sum_ns", "sum", Unit::ns},
        {"total_ns", "total", Unit::ns},
        {"first_step_ns", "first 64K", Unit::ns},
        ratio,
        low,
        high},
       true},
      {"checked",
       "the price of HAUL_CHECKED, both on the caller's thread",
       run_checked,
       {cache,
        size,
        {"engine", "engine", Unit::text},
        {"checked_ns", "checked", Unit::ns},
        {"unchecked_ns", "unchecked", Unit::ns},
        ratio,
        low,
        high},
       false},
      {"service",
       "the node's service for a mover, beside a thread's (paper 000, Fig. 5 and 6)",
       run_service,
       {{"part", "part", Unit::text},
        {"mover", "mover", Unit::text},
        {"mapping", "mapping", Unit::text},
        {"placement", "cores", Unit::text},
        cache,
        size,
        scheme,
        {"submit_ns", "submit", Unit::ns},
        {"haul_ns", "haul", Unit::ns},
        memcpy_ns,
        ratio,
        {"speedup", "speedup", Unit::ratio},
        {"overlap", "overlap", Unit::ratio},
        {"over_bound_per_memcpy", "over bound", Unit::ratio}},
       false},
      {"clients",
       "one to sixteen processes that share the node's service",
       run_clients,
       {{"clients", "clients", Unit::count},
        size,
        scheme,
        {"total_gbps", "in all", Unit::gbps},
        {"ratio", "of one's", Unit::ratio},
        low,
        high,
        {"jain", "Jain", Unit::ratio},
        {"jain_least", "least", Unit::ratio}},
       false},
      {"share",
       "a server gives documents to three applications (paper 000, IV-C and Fig. 10b)",
       run_share,
       {scheme,
        {"alpha", "alpha", Unit::ratio},
        {"clients", "readers", Unit::count},
        {"mean_us", "mean us", Unit::ratio},
        {"median_us", "median us", Unit::ratio},
        {"p99_us", "p99 us", Unit::ratio},
        {"ratio", "of the better", Unit::ratio},
        low,
        high},
       false},
      {"mpi",
       "messages within a node under each MPI: haul, the MPI's own, libfabric's shm (paper 001)",
       run_mpi,
       {mpi,
        transport,
        {"test", "test", Unit::text},
        {"buffers", "buffers", Unit::text},
        ranks,
        size,
        time,
        {"gbps", "bandwidth", Unit::gbps},
        to_native,
        to_native_low,
        to_native_high,
        {"ratio_to_best", "of best native", Unit::ratio},
        {"placement", "cores", Unit::text}},
       true,
       why_no_messages},
      {"mpi-schemes",
       "latency and bandwidth of messages by who moves the bytes (paper 000, Fig. 8)",
       run_mpi_schemes,
       {mpi,
        transport,
        scheme,
        {"mover", "mover", Unit::text},
        {"test", "test", Unit::text},
        {"buffers", "buffers", Unit::text},
        size,
        time,
        {"gbps", "bandwidth", Unit::gbps},
        to_native,
        to_native_low,
        to_native_high,
        {"placement", "cores", Unit::text},
        {"label", "", Unit::text}},
       true,
       why_no_messages},
      {"nas",
       "the NAS kernels IS and FT under each MPI, verified (paper 000, Fig. 9; 001, Table III)",
       run_nas,
       {mpi,
        transport,
        {"kernel", "kernel", Unit::text},
        {"class", "class", Unit::text},
        ranks,
        {"seconds", "time", Unit::seconds},
        {"mops", "Mop/s", Unit::ratio},
        to_native,
        to_native_low,
        to_native_high,
        {"placement", "cores", Unit::text}},
       true,
       why_no_messages}};
}

}  // namespace

const std::vector<Suite>& suites() {
  static const std::vector<Suite> table = [] {
    std::vector<Suite> all = copy_suites();
    for (Suite& suite : atomic_suites()) all.push_back(std::move(suite));
    return all;
  }();
  return table;
}

const Suite* find_suite(const std::string& name) {
  for (const Suite& suite : suites()) {
    if (name == suite.name) return &suite;
  }
  return nullptr;
}

const char* LineDistance::placement() const {
  if (before_ns == 0 || after_ns == 0) return "none";
  return before_ns < near_below_ns && after_ns < near_below_ns ? "near" : "far";
}

Result run_suite(const Suite& suite, Stage& stage, const SuiteOptions& options) {
  Result result;
  result.suite = &suite;
  CachePreparer caches(stage.topology());
  SuiteRun session{stage, caches, options};
  if (suite.needs_distance) session.distance_ns = stage.round_trip_ns();
  result.distance.before_ns = session.distance_ns;
  suite.run(session, result.rows);
  result.distance.after_ns = session.distance_ns;
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

const std::vector<std::size_t>& sizes_or(const SuiteOptions& options,
                                         const std::vector<std::size_t>& own) {
  return options.sizes.empty() ? own : options.sizes;
}

std::vector<Case> cases(const SuiteRun& session) {
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

std::string describe(const Case& one) {
  return fmt::format("{} {}", cache_name(one.cache), tools::show_bytes(one.bytes));
}

void add_placed(SuiteRun& session, std::vector<Row>& rows, Row row) {
  const LineDistance distance{session.distance_ns, session.stage.round_trip_ns()};
  session.distance_ns = distance.after_ns;
  row["placement"] = distance.placement();
  row["round_trip_ns"] = round1(distance.before_ns);
  row["round_trip_after_ns"] = round1(distance.after_ns);
  rows.push_back(std::move(row));
}

void measure_cases(SuiteRun& session, std::vector<Row>& rows,
                   Row (*measure)(SuiteRun&, const Case&)) {
  const std::vector<Case> all = cases(session);
  for (std::size_t i = 0; i < all.size(); ++i) {
    session.options.progress(static_cast<double>(i) / static_cast<double>(all.size()),
                             describe(all[i]));
    Row row = measure(session, all[i]);
    if (row.contains("placement")) {
      add_placed(session, rows, std::move(row));
    } else {
      rows.push_back(std::move(row));
    }
  }
}

}  // namespace haul::bench
