// pinning (paper 001, Fig. 10 and 11): what registering memory costs a copy, and how much of that
// is hidden by registering beside the copying and by remembering what is registered.
//
// Each way is a process of its own, since settings hold for a process; the ways take turns. The
// engine is `uring`, whose registrar pins pages for real on any machine, and whose copies are the
// kernel's threads' work: it tests registering, not hardware.
#include <haul/haul.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "bench/kit/buffer.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/device.hpp"
#include "bench/kit/processes.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr const char* pinning_engine = "uring";
constexpr unsigned most_copies = 64;

struct PinningWay {
  const char* engine;
  const char* registration;  // as HAUL_MEMORY_REGISTER, or none
};
constexpr std::array<PinningWay, 4> pinning_ways = {{{pinning_engine, "cached"},
                                                     {pinning_engine, "overlapped"},
                                                     {pinning_engine, "blocking"},
                                                     {"cpu", "none"}}};

// Medians of one process's copies.
struct PinningBlock {
  std::size_t bytes;
  unsigned copies;
  double copy_ns, caller_cpu_ns, kernel_cpu_ns;
};

double cpu_time_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct PinningRow {
  Samples copy_ns, caller_cpu_ns, kernel_cpu_ns;
};

Row row_of(const PinningWay& way, std::size_t bytes, const PinningRow& mine,
           const PinningRow& blocking) {
  Row row = {{"engine", way.engine},
             {"registration", way.registration},
             {"size_bytes", bytes},
             {"copy_ns", round1(median(mine.copy_ns))},
             {"caller_cpu_ns", round1(median(mine.caller_cpu_ns))},
             {"kernel_cpu_ns", round1(median(mine.kernel_cpu_ns))}};
  put_ratio(row, "ratio", ratio_of(mine.copy_ns, blocking.copy_ns));
  row["rounds"] = mine.copy_ns.size();
  return row;
}

void run_pinning(SuiteRun& session, std::vector<Row>& rows) {
  const bool quick = session.options.quick;
  const unsigned rounds = quick ? 3 : 9;
  const std::vector<std::size_t> sizes =
      sizes_or(session.options,
               quick ? std::vector<std::size_t>{std::size_t{1} << 20}
                     : std::vector<std::size_t>{std::size_t{64} << 10, std::size_t{256} << 10,
                                                std::size_t{1} << 20, std::size_t{4} << 20,
                                                std::size_t{16} << 20});
  const SharedBlock shared(sizeof(PinningBlock));
  auto& block = shared.as<PinningBlock>();
  block.copies = quick ? 8 : most_copies;
  double done = 0;
  for (const std::size_t bytes : sizes) {
    std::array<PinningRow, pinning_ways.size()> measured;
    for (unsigned round = 0; round < rounds; ++round) {
      for (std::size_t turn = 0; turn < pinning_ways.size(); ++turn) {
        const std::size_t which = (turn + round) % pinning_ways.size();
        const PinningWay& way = pinning_ways[which];
        tools::Environment environment = {{"HAUL_PLAN_ENGINE", way.engine},
                                          {"HAUL_PLAN_MOVER", "caller"}};
        if (std::strcmp(way.registration, "none") != 0)
          environment.emplace_back("HAUL_MEMORY_REGISTER", way.registration);
        block.bytes = bytes;
        start_worker("pinning", 0, shared, environment).finish("a copying process");
        measured[which].copy_ns.push_back(block.copy_ns);
        measured[which].caller_cpu_ns.push_back(block.caller_cpu_ns);
        measured[which].kernel_cpu_ns.push_back(block.kernel_cpu_ns);
      }
      done += 1.0 / static_cast<double>(rounds * sizes.size());
      session.options.progress(done, "copies by registered memory");
    }
    for (std::size_t which = 0; which < pinning_ways.size(); ++which)
      rows.push_back(row_of(pinning_ways[which], bytes, measured[which], measured[2]));
  }
}

constexpr auto pinning_columns = columns_of(
    Column{"engine", "engine", Unit::text}, Column{"registration", "registration", Unit::text},
    column::size, column::copy_ns, Column{"caller_cpu_ns", "caller", Unit::ns},
    Column{"kernel_cpu_ns", "kernel", Unit::ns}, Column{"ratio", "of blocking", Unit::ratio},
    column::ratio_q25, column::ratio_q75);

std::string why_no_pinning() {
  const std::string status = engine_info(pinning_engine).status;
  return status.find("refuses") == std::string::npos ? "" : status;
}

}  // namespace

// A process of one way.
void work_as_pinning_copier(unsigned, int block_fd) {
  const SharedBlock shared(block_fd, sizeof(PinningBlock));
  auto& block = shared.as<PinningBlock>();
  Buffer src(block.bytes), dst(block.bytes, 512);
  const haul_request request = haul_request_copy(dst.data(), src.data(), block.bytes);
  open_asked_engine(request);
  Samples copy, caller, kernel;
  for (unsigned i = 0; i < block.copies; ++i) {
    write_content(src.data(), block.bytes, i);
    const double all_before = cpu_time_ns(CLOCK_PROCESS_CPUTIME_ID);
    const double mine_before = cpu_time_ns(CLOCK_THREAD_CPUTIME_ID);
    copy.push_back(timed_ns([&] { copy_by_caller(request); }));
    const double mine = cpu_time_ns(CLOCK_THREAD_CPUTIME_ID) - mine_before;
    const double all = cpu_time_ns(CLOCK_PROCESS_CPUTIME_ID) - all_before;
    caller.push_back(mine);
    kernel.push_back(std::max(all - mine, 0.0));
    check_content(dst.data(), block.bytes, i);
  }
  block.copy_ns = median(copy);
  block.caller_cpu_ns = median(caller);
  block.kernel_cpu_ns = median(kernel);
}

const Suite pinning_suite{
    "pinning",   "what registering memory costs a copy (paper 001, Fig. 10 and 11)",
    run_pinning, pinning_columns,
    false,       why_no_pinning};

}  // namespace haul::bench
