// Differences of counters.
#include "cli/service/rates.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace haul::cli {
namespace {

// A counter only grows; if it did not, it is another client's.
double grown(std::uint64_t before, std::uint64_t now) {
  return now > before ? static_cast<double>(now - before) : 0;
}

// Two connections of one process differ in the time at which they were attached.
const wire::ClientStats* find_before(const service::Snapshot& before, const wire::ClientStats& now,
                                     std::uint64_t elapsed_ns) {
  const wire::ClientStats* found = nullptr;
  double least = static_cast<double>(elapsed_ns) / 2;
  for (const wire::ClientStats& one : before.clients) {
    if (one.pid != now.pid || memcmp(one.name, now.name, sizeof now.name) != 0) continue;
    const double off = std::abs(static_cast<double>(now.attached_ns) -
                                static_cast<double>(one.attached_ns + elapsed_ns));
    if (off < least) {
      least = off;
      found = &one;
    }
  }
  return found;
}

}  // namespace

Rates rates_between(const service::Snapshot& before, const service::Snapshot& now) {
  Rates rates;
  rates.same_service =
      before.stats.pid == now.stats.pid && now.stats.uptime_ns > before.stats.uptime_ns;
  const std::uint64_t elapsed_ns =
      rates.same_service ? now.stats.uptime_ns - before.stats.uptime_ns : 0;
  rates.seconds = static_cast<double>(elapsed_ns) / 1e9;
  const double per_second = rates.same_service ? 1 / rates.seconds : 0;
  rates.bytes = grown(before.stats.bytes, now.stats.bytes) * per_second;
  rates.requests = grown(before.stats.requests, now.stats.requests) * per_second;
  rates.cpu = grown(before.stats.cpu_ns, now.stats.cpu_ns) * per_second / 1e9;
  for (const wire::ClientStats& client : now.clients) {
    const wire::ClientStats* earlier =
        rates.same_service ? find_before(before, client, elapsed_ns) : nullptr;
    const wire::ClientStats from = earlier != nullptr ? *earlier : wire::ClientStats{};
    ClientRates one;
    one.now = client;
    one.requests = grown(from.requests, client.requests) * per_second;
    one.mapped_bytes = grown(from.mapped_copy_bytes, client.mapped_copy_bytes) * per_second;
    one.kernel_bytes = grown(from.kernel_copy_bytes, client.kernel_copy_bytes) * per_second;
    one.spared = grown(from.busy_ns, client.busy_ns) * per_second / 1e9;
    rates.clients.push_back(one);
  }
  std::stable_sort(rates.clients.begin(), rates.clients.end(),
                   [](const ClientRates& a, const ClientRates& b) {
                     return std::tuple(-(a.mapped_bytes + a.kernel_bytes), a.now.pid) <
                            std::tuple(-(b.mapped_bytes + b.kernel_bytes), b.now.pid);
                   });
  return rates;
}

}  // namespace haul::cli
