// Sums over clients, and how much waits.
#include "service/talk/stats.hpp"

#include <haul/haul.h>
#include <unistd.h>

#include <cstring>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"

namespace haul::service {
namespace {

std::uint64_t ns_of(std::uint64_t elapsed_ticks) {
  return static_cast<std::uint64_t>(static_cast<double>(elapsed_ticks) / ticks_per_ns());
}

// Requests of the service's that are published and not ended; each ring is read as far as it is
// filled.
std::uint64_t depth_of(const Ring& ring, const RingState& state) {
  std::uint64_t depth = 0;
  const std::uint64_t first = state.cursor - std::min(state.cursor, Ring::slots - 1);
  for (std::uint64_t seq = std::max(first, Ring::first_seq); seq < state.cursor + Ring::slots;
       ++seq) {
    const std::uint64_t published = ring.published_seq(seq);
    if (published < seq && seq >= state.cursor) break;
    Job job;
    if (published != seq || ring.ended(seq)) continue;
    if (ring.read(seq, &job) && job.service) ++depth;
  }
  return depth;
}

}  // namespace

wire::Stats stats_of(const Hub& hub) {
  wire::Stats stats;
  Tally all = hub.gone;
  for (const auto& client : hub.clients) {
    all.add(client->tally);
    stats.grants += static_cast<std::uint32_t>(client->grants.size());
  }
  stats.clients = static_cast<std::uint32_t>(hub.clients.size());
  stats.pid = getpid();
  stats.cpu = hub.cpu;
  stats.state = hub.state;
  std::strncpy(stats.version, haul_version(), sizeof stats.version - 1);
  stats.uptime_ns = now_ns() - hub.started_ns;
  stats.cpu_ns = thread_cpu_ns();
  stats.requests = all.requests;
  stats.failed = all.failed;
  stats.refusals = hub.refusals;
  stats.bytes = all.mapped_copy_bytes + all.kernel_copy_bytes;
  stats.mapped_bytes = hub.views.mapped_bytes();
  stats.map_budget_bytes = hub.views.budget_bytes();
  stats.maps = hub.views.maps();
  stats.evictions = hub.views.evictions();
  return stats;
}

wire::ClientStats stats_of(Client& client) {
  wire::ClientStats stats;
  stats.pid = client.pid;
  stats.uid = os::user_id();
  stats.weight = client.weight;
  std::strncpy(stats.name, client.name.c_str(), sizeof stats.name - 1);
  stats.rings = static_cast<std::uint32_t>(client.rings.size());
  stats.grants = static_cast<std::uint32_t>(client.grants.size());
  stats.bindings = client.bindings.count();
  stats.reaches_memory = client.space != self_space ? 1 : 0;
  stats.attached_ns = now_ns() - client.since_ns;
  stats.requests = client.tally.requests;
  stats.failed = client.tally.failed;
  stats.chunks = client.tally.chunks;
  stats.mapped_copy_bytes = client.tally.mapped_copy_bytes;
  stats.kernel_copy_bytes = client.tally.kernel_copy_bytes;
  for (const RingState& ring : client.rings)
    stats.queue_depth += depth_of(client.ring(ring.index), ring);
  stats.busy_ns = ns_of(client.tally.busy_ticks);
  stats.mapped_bytes = client.arena.mapped_bytes();
  return stats;
}

}  // namespace haul::service
