// service: the copy suites with the node's service as the mover, beside a mover thread of the
// process's own; and with the service's mappings either kept or made again for each chunk (paper
// 000, Fig. 5 and 6). Each runs as a process of its own, in turn, on memory of haul_alloc().
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "bench/kit/columns.hpp"
#include "bench/kit/processes.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

struct ServiceWay {
  const char* mover;
  const char* mapping;
};
constexpr std::array<ServiceWay, 3> ways = {
    ServiceWay{"thread", "-"}, ServiceWay{"service", "kept"}, ServiceWay{"service", "each time"}};
constexpr std::array<const char*, 4> parts = {"split", "latency", "bandwidth", "hide"};

// A file that is removed at the end of its scope.
class TemporaryFile {
 public:
  TemporaryFile() : path_("/tmp/haul-bench-XXXXXX") {
    const int fd = mkstemp(path_.data());
    if (fd < 0)
      throw tools::CommandFailure("cannot make a temporary file in /tmp; free some room there");
    close(fd);
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<std::string> arguments_of(const char* part, const SuiteOptions& options,
                                      const std::string& file) {
  std::vector<std::string> all = {"bench", part, "--memory", "shared", "--json", file};
  if (options.quick) all.emplace_back("--quick");
  std::string sizes;
  for (const std::size_t size : sizes_or(options, {64, 65536, 1u << 20, 4u << 20, 16u << 20}))
    sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
  all.emplace_back("--sizes");
  all.push_back(sizes);
  return all;
}

Row run_part(const char* part, const SuiteOptions& options, const tools::Environment& environment) {
  const TemporaryFile file;
  Child child(arguments_of(part, options, file.path()), environment);
  child.finish(part);
  std::ifstream stream(file.path());
  return Row::parse(stream)["rows"];
}

Row row_of(const char* part, const ServiceWay& way, const Row& measured) {
  Row row = {{"part", part}, {"mover", way.mover}, {"mapping", way.mapping}};
  for (const auto& [name, value] : measured.items()) {
    if (name != "suite") row[name] = value;
  }
  // The time of haul's part has one name here, whatever the suite calls it.
  if (measured.contains("total_ns")) row["haul_ns"] = measured["total_ns"];
  if (measured.contains("copy_ns") && !measured.contains("total_ns"))
    row["haul_ns"] = measured["copy_ns"];
  return row;
}

void run_service(SuiteRun& session, std::vector<Row>& rows) {
  unsigned done = 0;
  for (const char* part : parts) {
    for (const ServiceWay& way : ways) {
      const bool kept = std::string_view(way.mapping) == "kept";
      const bool own = std::string_view(way.mover) == "thread";
      session.options.progress(static_cast<double>(done++) / (parts.size() * ways.size()),
                               fmt::format("{}, {} {}", part, way.mover, own ? "" : way.mapping));
      const ServiceProcess service(kept ? std::uint64_t{64} << 30 : 0);
      tools::Environment environment = service.environment("auto");
      if (own) environment = {{"HAUL_SERVICE_USE", "off"}, {"HAUL_PLAN_MOVER", "auto"}};
      environment.emplace_back("HAUL_MOVER_LEASE", "off");
      for (const Row& row : run_part(part, session.options, environment))
        rows.push_back(row_of(part, way, row));
    }
  }
}

constexpr auto service_columns = columns_of(
    Column{"part", "part", Unit::text}, column::mover, Column{"mapping", "mapping", Unit::text},
    column::placement, column::cache, column::size, column::scheme, column::submit_ns,
    column::haul_ns, column::memcpy_ns, column::ratio, column::speedup, column::overlap,
    Column{"over_bound_per_memcpy", "over bound", Unit::ratio});

}  // namespace

const Suite service_suite{
    "service", "the node's service for a mover, beside a thread's (paper 000, Fig. 5 and 6)",
    run_service, service_columns};

}  // namespace haul::bench
