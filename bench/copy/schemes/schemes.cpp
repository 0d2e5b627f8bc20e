// The process that was asked starts the others one after another; each measures all cases, and
// leaves its samples as one document in the memory that they share.
#include "bench/copy/schemes/schemes.hpp"

#include <fmt/format.h>
#include <haul/haul.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/os/os.hpp"
#include "base/private.hpp"
#include "bench/copy/schemes/engines.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/processes.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr unsigned rounds_full = 5, rounds_quick = 2;
constexpr std::size_t most_cases = 128, most_engines = 32, answer_room = std::size_t{16} << 20;

struct SchemeBlock {
  // What is asked of the process.
  char measurement[32];
  char engine[16];
  bool quick, shared;
  unsigned rounds;
  int caller_cpu, partner_cpu;
  std::size_t case_count;
  Case cases[most_cases];
  // What it found: a document, a list with an entry for each case.
  std::size_t answer_bytes;
  char answer[answer_room];
};

struct EngineBlock {
  std::size_t count;
  haul_engine_info engines[most_engines];
};

template <std::size_t room>
void put(char (&to)[room], const std::string& text) {
  std::snprintf(to, room, "%s", text.c_str());
}

// The engines as they are once all have been opened. Another process does that: in this one their
// threads would disturb what it measures.
std::vector<haul_engine_info> opened_engines() {
  const SharedBlock shared(sizeof(EngineBlock));
  start_worker("engines", 0, shared, {{"HAUL_SERVICE_USE", "off"}})
      .finish("a process that opens engines");
  const auto& block = shared.as<EngineBlock>();
  return {block.engines, block.engines + block.count};
}

bool has_schemes(const haul_engine_info& engine) {
  return std::string_view(engine.name) == "cpu" || is_device(engine);
}

// "", or why the schemes of this engine cannot be measured.
std::string why_no_schemes(const haul_engine_info& engine) {
  if (engine.available == 0) return fmt::format("engine {}: {}", engine.name, engine.status);
  if (has_schemes(engine)) return "";
  return fmt::format(
      "engine {} is no device, so it has no scheme; name cpu or one that `haul info` gives a speed "
      "of",
      engine.name);
}

// HAUL_ENGINE_DSA of dsa, which names its devices.
std::string devices_variable(std::string name) {
  for (char& letter : name) letter = static_cast<char>(std::toupper(letter));
  return "HAUL_ENGINE_" + name;
}

tools::Environment environment_of(const SuiteRun& session, const EngineScheme& scheme) {
  tools::Environment all = {{"HAUL_SERVICE_USE", "off"},
                            // This process keeps the lease.
                            {"HAUL_MOVER_LEASE", "off"}};
  // The CPU is asked for by naming nothing else: a setting would take its copies off the short
  // road.
  all.emplace_back("HAUL_PLAN_ENGINE", scheme.engine == "cpu" ? "auto" : scheme.engine);
  // Devices of other engines would be opened, and what stands for them would spin beside this
  // one's.
  for (const haul_engine_info& engine : settled_engines()) {
    const std::string devices = devices_variable(engine.name);
    if (scheme.engine != engine.name && std::getenv(devices.c_str()) != nullptr)
      all.emplace_back(devices, "");
  }
  if (scheme.registration != "none") all.emplace_back("HAUL_MEMORY_REGISTER", scheme.registration);
  if (scheme.scheme[0] == 'S') {
    // (A mover that is awake would drive the caller's device.)
    all.emplace_back("HAUL_PLAN_MOVER", "caller");
    all.emplace_back("HAUL_MOVER_CORES", "0");
  } else {
    all.emplace_back("HAUL_PLAN_MOVER", "thread");
    if (session.stage.partner_cpu() >= 0)
      all.emplace_back("HAUL_MOVER_CPU", std::to_string(session.stage.partner_cpu()));
  }
  return all;
}

Row document_of(const Findings& findings) {
  return {{"scheme", findings.mover.scheme},         {"engine", findings.mover.engine},
          {"share", findings.mover.dedicated_share}, {"copy_scheme", findings.copy_scheme},
          {"engine_share", findings.engine_share},   {"samples", findings.samples}};
}

Findings findings_of(const Row& document) {
  Findings findings;
  findings.mover = {document["scheme"], document["engine"], document["share"]};
  findings.copy_scheme = document["copy_scheme"];
  findings.engine_share = document["engine_share"];
  findings.samples = document["samples"];
  return findings;
}

// What one scheme's processes have found of one case. The walls, one a process, are lower
// quartiles: whoever else wants the cores only adds to a copy's time.
struct SchemeFigures {
  Findings all;
  Samples walls;

  void add(const Findings& found) {
    if (walls.empty()) {
      all = found;
    } else {
      all.append(found);
    }
    walls.push_back(quantile(found.of("wall"), 0.25));
  }
};

std::vector<Findings> run_process(const SuiteRun& session, const SharedBlock& shared,
                                  const EngineScheme& scheme) {
  auto& block = shared.as<SchemeBlock>();
  put(block.engine, scheme.engine);
  block.answer_bytes = 0;
  (void)let_mover_sleep();  // it would share a core with the process's own
  start_worker("scheme", 0, shared, environment_of(session, scheme))
      .finish(fmt::format("a copying process ({}, {})", scheme.scheme, scheme.engine).c_str());
  std::vector<Findings> all;
  for (const Row& one : Row::parse(block.answer, block.answer + block.answer_bytes))
    all.push_back(findings_of(one));
  return all;
}

// Behind the suite's own columns, where it has not got them itself.
void add_columns(SuiteRun& session) {
  const auto own = session.suite_columns;
  for (const Column& column :
       {column::engine, column::registration, column::register_ns, column::caller_cpu,
        column::mover_cpu, column::kernel_cpu, column::device_cpu, column::label}) {
    const auto same = [&](const Column& one) {
      return std::string_view(one.field) == column.field;
    };
    if (std::none_of(own.begin(), own.end(), same)) session.more_columns.push_back(column);
  }
}

// How much longer a copy takes than one by the same scheme whose memory stays registered.
Row register_ns(const std::vector<EngineScheme>& schemes, const std::vector<SchemeFigures>& figures,
                std::size_t which) {
  const EngineScheme& mine = schemes[which];
  for (std::size_t i = 0; i < schemes.size(); ++i) {
    const EngineScheme& other = schemes[i];
    if (mine.registration == "cached" || other.registration != "cached" ||
        other.scheme != mine.scheme || other.engine != mine.engine)
      continue;
    Samples differences;
    for (std::size_t round = 0; round < figures[i].walls.size(); ++round)
      differences.push_back(figures[which].walls[round] - figures[i].walls[round]);
    return round1(median(differences));
  }
  return nullptr;
}

Row row_of(const CopyMeasurement& measurement, const Case& one,
           const std::vector<EngineScheme>& schemes, const std::vector<SchemeFigures>& figures,
           std::size_t which) {
  const EngineScheme& scheme = schemes[which];
  Findings findings = figures[which].all;
  findings.mover.scheme = scheme.scheme;
  findings.mover.engine = scheme.engine;
  Row row = measurement.row(one, findings);
  row["registration"] = scheme.registration;
  row["register_ns"] = register_ns(schemes, figures, which);
  put_costs(row, findings);
  row.erase("dedicated_share");  // the scheme says it
  if (row.contains("haul_copy_scheme")) row["haul_copy_scheme"] = scheme.scheme;
  row["engine_share"] = nullptr;  // (The CPU's copies are not all counted.)
  if (scheme.engine != "cpu") row["engine_share"] = round3(findings.engine_share);
  row["rounds"] = figures[which].walls.size();
  row["label"] = scheme.hardware ? "" : "no hardware";
  return row;
}

// Of the bytes that engines have moved from `before` to `after`, the share of one.
double share_of(const std::string& engine, const std::vector<haul_engine_info>& before,
                const std::vector<haul_engine_info>& after) {
  double own = 0, all = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto bytes = static_cast<double>(after[i].bytes - before[i].bytes);
    all += bytes;
    if (engine == after[i].name) own += bytes;
  }
  return all > 0 ? own / all : 0;
}

}  // namespace

std::vector<EngineScheme> schemes_of_cpu() {
  return {{"SCNI", "cpu", "none"}, {"MCNI", "cpu", "none"}};
}

std::vector<EngineScheme> schemes_of(const std::vector<std::string>& engines,
                                     const std::vector<std::string>& registrations) {
  const auto asked = [&](std::string_view name) {
    return std::find(engines.begin(), engines.end(), name) != engines.end();
  };
  std::vector<EngineScheme> schemes;
  const auto add = [&](const haul_engine_info& engine) {
    if (std::string_view(engine.name) == "cpu") {
      const std::vector<EngineScheme> own = schemes_of_cpu();
      schemes.insert(schemes.end(), own.begin(), own.end());
      return;
    }
    const std::vector<std::string> none = {"none"};
    for (const char* scheme : {"SCI", "MCI"})
      for (const std::string& registration : registers_memory(engine) ? registrations : none)
        schemes.push_back({scheme, engine.name, registration, is_hardware(engine)});
  };
  for (const haul_engine_info& engine : opened_engines()) {
    const std::string refusal = why_no_schemes(engine);
    if (asked(engine.name) && !refusal.empty()) throw tools::CommandFailure(refusal);
    if (asked(engine.name) || (asked("all") && refusal.empty())) add(engine);
  }
  return schemes;
}

void run_schemes(SuiteRun& session, std::vector<Row>& rows, const CopyMeasurement& measurement,
                 const std::vector<Case>& cases, const std::vector<EngineScheme>& schemes) {
  if (cases.size() > most_cases)
    throw tools::CommandFailure(fmt::format("these are {} cases and {} fit; ask for fewer --sizes",
                                            cases.size(), most_cases));
  add_columns(session);
  const unsigned rounds = session.options.quick ? rounds_quick : rounds_full;
  const SharedBlock shared(sizeof(SchemeBlock));
  auto& block = shared.as<SchemeBlock>();
  put(block.measurement, measurement.name);
  block.quick = session.options.quick;
  block.shared = memory_in_use() == Memory::shared;
  block.rounds = rounds;
  block.caller_cpu = session.stage.caller_cpu();
  block.partner_cpu = session.stage.partner_cpu();
  block.case_count = cases.size();
  std::copy(cases.begin(), cases.end(), block.cases);

  std::vector<std::vector<SchemeFigures>> figures(cases.size(),
                                                  std::vector<SchemeFigures>(schemes.size()));
  const double distance_ns = session.stage.round_trip_ns();
  double done = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < schemes.size(); ++turn) {
      const std::size_t which = (turn + round) % schemes.size();
      session.options.progress(
          done, fmt::format("{} by {}", schemes[which].scheme, schemes[which].engine));
      const std::vector<Findings> found = run_process(session, shared, schemes[which]);
      for (std::size_t i = 0; i < cases.size(); ++i) figures[i][which].add(found.at(i));
      done += 1.0 / static_cast<double>(rounds * schemes.size());
    }
  }
  session.distance_ns = session.stage.round_trip_ns();
  const LineDistance distance{distance_ns, session.distance_ns};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (std::size_t which = 0; which < schemes.size(); ++which) {
      Row row = row_of(measurement, cases[i], schemes, figures[i], which);
      if (row.contains("placement")) distance.write_to(row);
      rows.push_back(std::move(row));
    }
  }
  for (const EngineScheme& scheme : schemes)
    if (!scheme.hardware)
      session.options.note(fmt::format(
          "{} is no hardware: its figures test haul's part, and say nothing of a device",
          scheme.engine));
}

void run_measurement(SuiteRun& session, std::vector<Row>& rows, const CopyMeasurement& measurement,
                     const std::vector<Case>& cases) {
  if (!session.options.schemes.empty())
    return run_schemes(session, rows, measurement, cases, session.options.schemes);
  measure_cases(session, rows, cases, [&](SuiteRun&, const Case& one) {
    const CopyBench bench{session.caches, session.options.quick};
    return measurement.row(one, measurement.measure(bench, one));
  });
}

// A process that has all engines opened and tells of them.
void work_as_engine_opener(unsigned, int block_fd) {
  const SharedBlock shared(block_fd, sizeof(EngineBlock));
  auto& block = shared.as<EngineBlock>();
  haul_private_open_engines();
  const std::vector<haul_engine_info> engines = settled_engines();
  block.count = std::min(engines.size(), most_engines);
  std::copy_n(engines.begin(), block.count, block.engines);
}

// A process of one scheme.
void work_as_scheme(unsigned, int block_fd) {
  const SharedBlock shared(block_fd, sizeof(SchemeBlock));
  auto& block = shared.as<SchemeBlock>();
  use_memory(block.shared ? Memory::shared : Memory::private_);
  // Before this thread is pinned: those that are made now may run elsewhere.
  open_engine(block.engine);
  (void)settle_mover();
  const auto topology = read_topology("");
  if (!topology) throw tools::CommandFailure(topology.error().sentence);
  if (block.caller_cpu >= 0) os::pin_thread(static_cast<unsigned>(block.caller_cpu));
  CachePreparer caches(*topology);
  const CopyBench bench{caches, block.quick, block.rounds, true, block.partner_cpu};
  const CopyMeasurement& measurement = measurement_named(block.measurement);
  Row all = Row::array();
  for (std::size_t i = 0; i < block.case_count; ++i) {
    const std::vector<haul_engine_info> before = settled_engines();
    Findings findings = measurement.measure(bench, block.cases[i]);
    findings.engine_share = share_of(block.engine, before, settled_engines());
    all.push_back(document_of(findings));
  }
  const std::string text = all.dump();
  if (text.size() > answer_room)
    throw tools::CommandFailure("these cases have too many samples; ask for fewer --sizes");
  std::memcpy(block.answer, text.data(), text.size());
  block.answer_bytes = text.size();
}

}  // namespace haul::bench
