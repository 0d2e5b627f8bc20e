#include "study/workloads.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "format/reader.hpp"

namespace bcisim {

std::vector<Workload> workloads_of(const std::string& folder) {
  constexpr std::array<const char*, 5> order{"apache-receiver", "apache-sender", "iperf-receiver",
                                             "iperf-sender", "fio"};
  std::vector<Workload> workloads;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".trace" || !entry.is_regular_file(error)) continue;
    const std::string path = entry.path().string();
    const TraceReader reader(path);
    // The two sides of a connection are workloads of their own.
    std::string name = reader.metadata().value("workload", entry.path().stem().string());
    const std::string role = reader.metadata().value("role", std::string());
    if (role == "sender" || role == "receiver") name += "-" + role;
    workloads.push_back({std::move(name), path, reader.totals().instructions});
  }
  if (workloads.empty()) {
    throw std::runtime_error(fmt::format(
        "no *.trace in {}; make them with `make -C sim traces`, or name their folder with --traces",
        folder));
  }
  std::sort(workloads.begin(), workloads.end(), [&order](const Workload& a, const Workload& b) {
    const auto place = [&order](const std::string& name) {
      return std::find(order.begin(), order.end(), name);
    };
    return place(a.name) != place(b.name) ? place(a.name) < place(b.name) : a.trace < b.trace;
  });
  return workloads;
}

}  // namespace bcisim
