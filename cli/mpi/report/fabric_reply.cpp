#include "cli/mpi/report/fabric_reply.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "service/talk/printable.hpp"

namespace haul::cli {
namespace {

using fabric::MonitorReply;

template <std::size_t size>
void make_printable(char (&text)[size]) {
  const std::string clean = service::printable(text, size);
  std::memset(text, 0, size);
  std::memcpy(text, clean.data(), std::min(clean.size(), size - 1));
}

void check_buffer(fabric::SlowBuffer* buffer) {
  if (buffer->kind >= fabric::memory_kind_count)
    buffer->kind = static_cast<std::uint8_t>(fabric::MemoryKind::unknown);
  make_printable(buffer->name);
  buffer->end = std::max(buffer->begin, buffer->end);
}

}  // namespace

bool check_reply(const void* packet, std::size_t bytes, MonitorReply* reply) {
  if (bytes != sizeof *reply) return false;
  std::memcpy(reply, packet, sizeof *reply);
  if (reply->magic != static_cast<std::uint32_t>(fabric::Greeting::monitor)) return false;
  if (reply->version != MonitorReply().version) return false;
  constexpr auto peers = static_cast<std::uint32_t>(MonitorReply::peer_capacity);
  constexpr auto buffers = static_cast<std::uint32_t>(MonitorReply::slow_capacity);
  reply->peer_count = std::min(reply->peer_count, peers);
  reply->slow_count = std::min(reply->slow_count, buffers);
  reply->rank = std::max(reply->rank, -1);
  for (MonitorReply::PeerPaths& peer : reply->peer) make_printable(peer.why);
  for (fabric::SlowBuffer& buffer : reply->slow) check_buffer(&buffer);
  check_buffer(&reply->slow_others);
  return true;
}

}  // namespace haul::cli
