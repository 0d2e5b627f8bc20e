// The first line of /proc/stat: cpu user nice system idle iowait irq softirq steal guest ...
#include "tune/cpu_times.hpp"

#include <cstring>

#include "base/os/os.hpp"

namespace haul::tune {

CpuTimes parse_cpu_times(const char* text) noexcept {
  constexpr unsigned stolen_field = 7, fields = 8;  // user includes the guests' time
  if (std::strncmp(text, "cpu ", 4) != 0) return {};
  CpuTimes times;
  const char* at = text + 4;
  for (unsigned field = 0; field < fields; ++field) {
    while (*at == ' ') ++at;
    if (*at < '0' || *at > '9') return {};
    std::uint64_t ticks = 0;
    for (; *at >= '0' && *at <= '9'; ++at)
      ticks = ticks * 10 + static_cast<std::uint64_t>(*at - '0');
    times.all += ticks;
    if (field == stolen_field) times.stolen = ticks;
  }
  return times;
}

CpuTimes read_cpu_times(const char* path) noexcept {
  char text[512];
  return os::read_file(path, text, sizeof text) > 0 ? parse_cpu_times(text) : CpuTimes{};
}

double stolen_share(const CpuTimes& before, const CpuTimes& after) noexcept {
  if (before.all == 0 || after.all <= before.all || after.stolen <= before.stolen) return 0;
  const auto all = static_cast<double>(after.all - before.all);
  const auto stolen = static_cast<double>(after.stolen - before.stolen);
  return stolen < all ? stolen / all : 1;
}

}  // namespace haul::tune
