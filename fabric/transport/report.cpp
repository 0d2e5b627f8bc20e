// Counters as packets.
#include "fabric/transport/report.hpp"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "base/net/socket.hpp"
#include "base/os/os.hpp"

namespace haul::fabric {
namespace {

std::uint64_t read(const Statistics::Counter& counter) noexcept {
  return counter.load(std::memory_order_relaxed);
}

// A collector whose 256 ranks start at once may need time to accept them all.
constexpr std::uint64_t retry_ns = 1'000'000;
constexpr unsigned retries = 1000;

}  // namespace

void fill_counters(const Statistics* statistics, const Observation* observation,
                   std::uint64_t opened_ns, MonitorReply* reply) noexcept {
  reply->pid = getpid();
  reply->uptime_ns = now_ns() - opened_ns;
  if (statistics == nullptr) return;
  for (std::size_t path = 0; path < path_count; ++path) {
    reply->sent_messages[path] = read(statistics->sent_messages[path]);
    reply->sent_bytes[path] = read(statistics->sent_bytes[path]);
  }
  for (std::size_t size = 0; size < Statistics::size_buckets; ++size)
    reply->sizes[size] = read(statistics->sizes[size]);
  reply->received_messages = read(statistics->received_messages);
  reply->received_bytes = read(statistics->received_bytes);
  reply->unexpected_messages = read(statistics->unexpected_messages);
  reply->unexpected_bytes = read(statistics->unexpected_bytes);
  reply->copies_in_flight = read(statistics->copies_in_flight);
  reply->fallbacks = read(statistics->fallbacks);
  reply->rma_operations = read(statistics->rma_operations);
  reply->atomic_operations = read(statistics->atomic_operations);
  reply->peers = static_cast<std::uint32_t>(read(statistics->peers));
  if (observation == nullptr) return;
  reply->rank = observation->rank;
  observation->large.fill(reply->large, &reply->large_aside);
  reply->slow_count = static_cast<std::uint32_t>(
      observation->slow.fill(reply->slow, MonitorReply::slow_capacity, &reply->slow_others));
}

std::int32_t rank_in_job() noexcept {
  // Open MPI; MPICH and Intel MPI; what speaks PMIx.
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    const char* text = std::getenv(variable);
    if (text == nullptr) continue;
    std::int32_t rank = -1;
    const char* end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, rank);
    if (error == std::errc() && rest == end && rank >= 0) return rank;
  }
  return -1;
}

int connect_to_collector() noexcept {
  const char* name = knob_text(Knob::fabric_report);
  if (name == nullptr || name[0] == '\0') return -1;
  int socket = os::connect_abstract(name);
  for (unsigned i = 0; socket == -EAGAIN && i < retries; ++i) {
    os::sleep_ns(retry_ns);
    socket = os::connect_abstract(name);
  }
  os::SocketPeer peer;
  if (socket >= 0 && os::peer_of(socket, &peer) && peer.uid == os::user_id()) return socket;
  log(LogLevel::info, "messages: no report is sent to %s: %s", name,
      socket >= 0 ? "another user listens there" : describe_errno(-socket));
  os::close_fd(socket);
  return -1;
}

void tell_collector(int socket, const MonitorReply& reply) noexcept {
  if (socket < 0) return;
  const ssize_t sent = os::send_packet(socket, &reply, sizeof reply);
  if (sent < 0) {
    log(LogLevel::info, "messages: a report was lost: %s", describe_errno(static_cast<int>(-sent)));
  }
}

}  // namespace haul::fabric
