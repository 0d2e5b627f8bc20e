// programs: programs that know nothing of haul, with and without libhaul-mem.so. What a program
// writes is compared with what it writes without the library.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "bench/kit/command.hpp"
#include "bench/transparent/cost_race.hpp"
#include "bench/transparent/programs/redis_race.hpp"
#include "bench/transparent/programs/workload.hpp"
#include "tools/directory.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr unsigned program_limit_s = 60;

RaceLength race_length(bool quick) {
  return quick ? RaceLength{1.6e9, 3, 9} : RaceLength{8e9, 5, 15};
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs one program in every way, and compares what it writes.
class ProgramTrial {
 public:
  ProgramTrial(const Workload& workload, const std::vector<ProgramWay>& ways)
      : workload_(workload), ways_(ways) {}

  // Throws CommandFailure if the output is another one with the library, or the program fails with
  // the library alone.
  RunCost run(std::size_t way) {
    tools::Environment environment = workload_.environment;
    const tools::Environment& more = ways_[way].environment;
    environment.insert(environment.end(), more.begin(), more.end());
    std::error_code ignored;
    if (!workload_.output.empty()) std::filesystem::remove(workload_.output, ignored);
    const CommandOutcome outcome = run_command(workload_.command, environment, program_limit_s);
    if (!outcome.good())
      throw tools::CommandFailure(
          fmt::format("{} failed ({}, {})", workload_.name, ways_[way].name, reason_of(outcome)));
    check(outcome.out, way);
    return {outcome.wall_ns, outcome.cpu_ns, static_cast<double>(outcome.peak_bytes)};
  }

  // Has it run to its end in the first way?
  bool runs_alone() const { return known_; }

 private:
  void check(std::string written, std::size_t way) {
    if (!workload_.output.empty()) written += content_of(workload_.output);
    if (!known_) {
      expected_ = std::move(written);
      known_ = true;
    } else if (written != expected_) {
      throw tools::CommandFailure(
          fmt::format("{} writes something else with libhaul-mem.so ({}); haul is at fault, please "
                      "report it with the output of `haul info`",
                      workload_.name, ways_[way].name));
    }
  }

  const Workload& workload_;
  const std::vector<ProgramWay>& ways_;
  std::string expected_;
  bool known_ = false;
};

// Adds the rows of one program. One that fails by itself is left out.
void race_program(SuiteRun& session, std::vector<Row>& rows, const Workload& workload,
                  const std::vector<ProgramWay>& ways) {
  ProgramTrial trial(workload, ways);
  try {
    add_cost_rows(rows, workload.name, ways,
                  race_costs(ways.size(), race_length(session.options.quick),
                             [&](std::size_t way) { return trial.run(way); }));
  } catch (const tools::CommandFailure& failure) {
    if (trial.runs_alone()) throw;
    session.options.note(
        fmt::format("left out, since {}; see whether it runs by hand", failure.what()));
  }
}

void race_redis(SuiteRun& session, std::vector<Row>& rows, const std::string& directory,
                const std::vector<ProgramWay>& ways) {
  if (const std::string why = RedisRace::missing(); !why.empty()) return session.options.note(why);
  constexpr std::size_t megabyte = 1'000'000;
  constexpr std::size_t bytes_a_turn = 150 * megabyte;
  RedisRace redis(directory, ways);
  for (const std::size_t megabytes : {std::size_t{1}, std::size_t{10}}) {
    const std::size_t bytes = megabytes * megabyte;
    redis.set_value(bytes);
    const auto gets = static_cast<unsigned>(bytes_a_turn / bytes);
    std::vector<Samples> small(ways.size());
    const std::vector<WayCosts> costs =
        race_costs(ways.size(), race_length(session.options.quick), [&](std::size_t way) {
          const RedisRace::Turn turn = redis.ask(way, gets);
          small[way].push_back(turn.small_p999_ns);
          return turn.large;
        });
    add_cost_rows(rows, fmt::format("redis GET {} MB", megabytes), ways, costs);
    std::vector<WayCosts> tails(ways.size());
    for (std::size_t way = 0; way < ways.size(); ++way)
      tails[way].wall_ns = Samples(small[way].begin() + 1, small[way].end());
    add_cost_rows(rows, fmt::format("redis short GETs beside {} MB, p99.9", megabytes), ways,
                  tails);
  }
  add_cost_rows(rows, "redis GET 10 MB beside BGSAVE", ways,
                race_costs(ways.size(), race_length(session.options.quick),
                           [&](std::size_t way) { return redis.save(way); }));
}

void run_programs(SuiteRun& session, std::vector<Row>& rows) {
  const tools::TemporaryDirectory directory;
  const std::vector<ProgramWay> ways = program_ways(session.options.quick);
  let_mover_sleep();  // this process's own would keep the core that the programs' movers want
  const std::vector<Workload> all = workloads(directory.path(), session.options.note);
  double done = 0;
  for (const Workload& workload : all) {
    session.options.progress(done++ / static_cast<double>(all.size() + 2), workload.name);
    race_program(session, rows, workload, ways);
  }
  session.options.progress(done / static_cast<double>(all.size() + 2), "redis");
  race_redis(session, rows, directory.path(), ways);
}

constexpr auto program_columns = columns_of(
    Column{"program", "program", Unit::text}, Column{"plan", "plan", Unit::text},
    Column{"none_wall_ns", "without", Unit::ns}, Column{"wall_ratio", "time", Unit::ratio},
    Column{"wall_ratio_q25", "25 %", Unit::ratio}, Column{"wall_ratio_q75", "75 %", Unit::ratio},
    Column{"cpu_ratio", "CPU time", Unit::ratio}, Column{"cpu_ratio_q25", "25 %", Unit::ratio},
    Column{"cpu_ratio_q75", "75 %", Unit::ratio}, Column{"rss_ratio", "peak RSS", Unit::ratio},
    Column{"rss_ratio_q25", "25 %", Unit::ratio}, Column{"rss_ratio_q75", "75 %", Unit::ratio},
    Column{"runs", "runs", Unit::count});

}  // namespace

const Suite programs_suite{"programs",
                           "programs that know nothing of haul, with and without libhaul-mem.so",
                           run_programs, program_columns};

}  // namespace haul::bench
