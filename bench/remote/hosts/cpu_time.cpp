#include "bench/remote/hosts/cpu_time.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/machine/clock.hpp"
#include "bench/kit/stats.hpp"

namespace haul::bench {
namespace {

constexpr char responder_thread[] = "haul-atomic";

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Seconds on a CPU of all threads of a process, or of its responder threads.
double thread_seconds(pid_t process, bool responders_only) {
  double sum_ns = 0;
  std::error_code failed;
  const std::string tasks = fmt::format("/proc/{}/task", process);
  for (const auto& task : std::filesystem::directory_iterator(tasks, failed)) {
    const std::string path = task.path().string();
    if (responders_only && first_line(path + "/comm") != responder_thread) continue;
    double ns = 0;
    std::istringstream(first_line(path + "/schedstat")) >> ns;
    sum_ns += ns;
  }
  return sum_ns / 1e9;
}

double softirq_seconds(int cpu) {
  std::ifstream file("/proc/stat");
  const std::string name = fmt::format("cpu{}", cpu);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0;
    words >> word >> user >> nice >> system >> idle >> iowait >> irq >> softirq;
    if (word == name) return softirq / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  return 0;
}

}  // namespace

CpuTime::Reading CpuTime::now() const {
  return {static_cast<double>(now_ns()) / 1e9,
          server_ > 0 ? thread_seconds(server_, false) : thread_seconds(getpid(), true),
          softirq_seconds(cores_.home), softirq_seconds(cores_.client)};
}

void CpuTime::end() {
  const Reading ended = now();
  sum_.wall_s += ended.wall_s - began_.wall_s;
  sum_.server_s += ended.server_s - began_.server_s;
  sum_.home_softirq_s += ended.home_softirq_s - began_.home_softirq_s;
  sum_.client_softirq_s += ended.client_softirq_s - began_.client_softirq_s;
}

void CpuTime::write_to(Row& row) const {
  if (sum_.wall_s <= 0) return;
  row["home_process_share"] = round3(sum_.server_s / sum_.wall_s);
  row["home_softirq_share"] = round3(sum_.home_softirq_s / sum_.wall_s);
  row["client_softirq_share"] = round3(sum_.client_softirq_s / sum_.wall_s);
}

}  // namespace haul::bench
