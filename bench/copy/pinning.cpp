// pinning (paper 001, Fig. 10 and 11): what registering memory costs a copy, and how much of that
// is hidden by registering beside the copying, in parts of a fixed length (Fig. 10) or of a growing
// one, and by remembering what is registered (Fig. 11).
//
// Each way is a process of its own, since settings hold for a process; the ways take turns. Unless
// others are asked for, the engine is `uring`, whose registrar pins pages for real on any machine,
// and whose copies are the kernel's threads' work: it tests registering, not hardware.
#include <fmt/format.h>
#include <haul/haul.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/machine/cpu.hpp"
#include "bench/copy/schemes/cpu_cost.hpp"
#include "bench/copy/schemes/engines.hpp"
#include "bench/kit/buffer.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/processes.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr const char* pinning_engine = "uring";
constexpr unsigned most_copies = 64;

struct PinningWay {
  const char* registration;  // as HAUL_MEMORY_REGISTER, or none
  // The copy is cut into requests of this length, each registered as a whole while the one before
  // it is copied; 0: it is one request.
  std::size_t part_bytes;

  std::string parts() const {
    if (part_bytes != 0) return tools::show_bytes(part_bytes);
    const bool growing = std::strcmp(registration, "overlapped") == 0;
    return growing ? "growing" : std::strcmp(registration, "none") == 0 ? "-" : "whole";
  }
};
constexpr PinningWay cached{"cached", 0}, overlapped{"overlapped", 0}, blocking{"blocking", 0},
    by_cpu{"none", 0};

std::vector<PinningWay> pinning_ways(std::size_t bytes) {
  std::vector<PinningWay> ways = {blocking, cached, overlapped, by_cpu};
  for (const std::size_t part : {16 * tools::kib, 64 * tools::kib, 256 * tools::kib, tools::mib})
    if (part < bytes) ways.push_back({"blocking", part});
  return ways;
}

// What is asked of a process, and the medians of its copies.
struct PinningBlock {
  char engine[16];
  std::size_t bytes, part_bytes;
  unsigned copies;
  double copy_ns;
  CpuSpan cost;
};

void copy_in_parts(const Buffer& src, Buffer& dst, std::size_t part_bytes) {
  std::vector<haul_ticket> tickets;
  for (std::size_t at = 0; at < src.size(); at += part_bytes) {
    const haul_request request =
        haul_request_copy(dst.data() + at, src.data() + at, std::min(part_bytes, src.size() - at));
    tickets.emplace_back();
    tools::require(haul_submit(&request, 1, &tickets.back()), "haul_submit()");
  }
  for (const haul_ticket ticket : tickets) {
    int status = 0;
    while ((status = haul_test(ticket)) == 0) cpu_relax();
    tools::require(status, "haul_test()");
  }
}

struct PinningRow {
  Samples copy_ns, caller_ns, mover_ns, kernel_ns, device_ns;

  void add(const PinningBlock& block) {
    copy_ns.push_back(block.copy_ns);
    caller_ns.push_back(block.cost.caller_ns);
    mover_ns.push_back(block.cost.mover_ns);
    kernel_ns.push_back(block.cost.kernel_ns);
    device_ns.push_back(block.cost.device_ns);
  }
};

Row pinning_row(const std::string& engine, const PinningWay& way, std::size_t bytes,
                const PinningRow& mine, const PinningRow& blocked, const PinningRow& remembered) {
  const bool registers = std::strcmp(way.registration, "none") != 0;
  Row row = {{"engine", registers ? engine : "cpu"},
             {"registration", way.registration},
             {"parts", way.parts()},
             {"part_bytes", way.part_bytes},
             {"size_bytes", bytes},
             {"copy_ns", round1(median(mine.copy_ns))},
             {"register_ns", nullptr},
             {"caller_cpu_ns", round1(median(mine.caller_ns))},
             {"mover_cpu_ns", round1(median(mine.mover_ns))},
             {"kernel_cpu_ns", round1(median(mine.kernel_ns))},
             {"device_cpu_ns", round1(median(mine.device_ns))}};
  if (registers && std::strcmp(way.registration, "cached") != 0) {
    Samples added;
    for (std::size_t round = 0; round < mine.copy_ns.size(); ++round)
      added.push_back(mine.copy_ns[round] - remembered.copy_ns[round]);
    row["register_ns"] = round1(median(added));
  }
  put_ratio(row, "ratio", ratio_of(mine.copy_ns, blocked.copy_ns));
  row["rounds"] = mine.copy_ns.size();
  return row;
}

// Those that are asked for and register memory.
std::vector<std::string> pinning_engines(const SuiteRun& session) {
  if (session.options.schemes.empty()) return {pinning_engine};
  std::vector<std::string> engines;
  for (const EngineScheme& scheme : session.options.schemes)
    if (scheme.registration != "none" &&
        std::find(engines.begin(), engines.end(), scheme.engine) == engines.end())
      engines.push_back(scheme.engine);
  if (engines.empty())
    throw tools::CommandFailure(
        "no engine that is asked for registers memory; uring does so on any machine");
  return engines;
}

void measure_pinning(SuiteRun& session, std::vector<Row>& rows, const std::string& engine,
                     std::size_t bytes, const std::function<void()>& progress) {
  const SharedBlock shared(sizeof(PinningBlock));
  auto& block = shared.as<PinningBlock>();
  const std::vector<PinningWay> ways = pinning_ways(bytes);
  std::vector<PinningRow> measured(ways.size());
  const unsigned rounds = session.options.quick ? 3 : 9;
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < ways.size(); ++turn) {
      const std::size_t which = (turn + round) % ways.size();
      const PinningWay& way = ways[which];
      const bool registers = std::strcmp(way.registration, "none") != 0;
      std::snprintf(block.engine, sizeof block.engine, "%s", registers ? engine.c_str() : "cpu");
      tools::Environment environment = {{"HAUL_PLAN_ENGINE", block.engine},
                                        {"HAUL_PLAN_MOVER", "caller"}};
      if (registers) environment.emplace_back("HAUL_MEMORY_REGISTER", way.registration);
      block.bytes = bytes;
      block.part_bytes = way.part_bytes != 0 ? way.part_bytes : bytes;
      block.copies = session.options.quick ? 8 : most_copies;
      start_worker("pinning", 0, shared, environment).finish("a copying process");
      measured[which].add(block);
    }
    progress();
  }
  for (std::size_t which = 0; which < ways.size(); ++which)
    rows.push_back(
        pinning_row(engine, ways[which], bytes, measured[which], measured[0], measured[1]));
}

void run_pinning(SuiteRun& session, std::vector<Row>& rows) {
  using tools::kib;
  using tools::mib;
  const bool quick = session.options.quick;
  const std::vector<std::size_t> sizes =
      sizes_or(session.options,
               quick ? std::vector<std::size_t>{mib}
                     : std::vector<std::size_t>{64 * kib, 256 * kib, mib, 4 * mib, 16 * mib});
  const std::vector<std::string> engines = pinning_engines(session);
  const double steps = static_cast<double>(engines.size() * sizes.size() * (quick ? 3 : 9));
  double done = 0;
  for (const std::string& engine : engines)
    for (const std::size_t bytes : sizes)
      measure_pinning(session, rows, engine, bytes, [&] {
        session.options.progress(++done / steps, "copies by registered memory");
      });
}

constexpr auto pinning_columns = columns_of(
    column::engine, column::registration, Column{"parts", "in parts", Unit::text}, column::size,
    column::copy_ns, column::register_ns, column::caller_cpu, column::kernel_cpu,
    Column{"ratio", "of blocking", Unit::ratio}, column::ratio_q25, column::ratio_q75);

std::string why_no_pinning() {
  for (const haul_engine_info& engine : settled_engines()) {
    if (std::strcmp(engine.name, pinning_engine) == 0 &&
        std::strstr(engine.status, "refuses") != nullptr)
      return engine.status;
  }
  return "";
}

}  // namespace

// A process of one way.
void work_as_pinning_copier(unsigned, int block_fd) {
  const SharedBlock shared(block_fd, sizeof(PinningBlock));
  auto& block = shared.as<PinningBlock>();
  Buffer src(block.bytes), dst(block.bytes, 512);
  open_engine(block.engine);
  CpuMeter meter;
  PinningRow all;
  for (unsigned i = 0; i < block.copies; ++i) {
    meter.look();
    write_content(src.data(), block.bytes, i);
    block.cost = meter.span(
        [&] { block.copy_ns = timed_ns([&] { copy_in_parts(src, dst, block.part_bytes); }); });
    all.add(block);
    check_content(dst.data(), block.bytes, i);
  }
  block.copy_ns = median(all.copy_ns);
  block.cost = {median(all.caller_ns), median(all.mover_ns), median(all.kernel_ns),
                median(all.device_ns)};
}

const Suite pinning_suite{
    "pinning",   "what registering memory costs a copy (paper 001, Fig. 10 and 11)",
    run_pinning, pinning_columns,
    false,       why_no_pinning,
    true};

}  // namespace haul::bench
