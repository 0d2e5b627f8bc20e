#include "cli/mpi/fabric_paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/private.hpp"
#include "fabric/protocol/packet.hpp"
#include "fabric/transport/local/huge_pages.hpp"
#include "fabric/transport/local/ring.hpp"
#include "tools/units.hpp"

namespace haul::cli {

using tools::show_bytes;

PairAbilities PairAbilities::of(const fabric::MonitorReply::PeerPaths& peer) {
  return {peer.ring != 0, peer.mapped != 0, peer.cma != 0, peer.offnode != 0, peer.why};
}

std::vector<PathRow> paths_with(const PairAbilities& abilities) {
  if (!abilities.ring) {
    if (!abilities.offnode) return {};
    return {
        {"all", "any", "offnode",
         "the peer is on another node: another libfabric provider carries packets, and reads large "
         "messages from the sender's memory where it can"}};
  }
  const std::string inlined = show_bytes(fabric::inline_capacity);
  HaulPrivateMessageLimits limits;
  haul_private_message_limits(&limits);
  const std::string eager = show_bytes(limits.near.eager_bytes);
  std::vector<PathRow> rows = {
      {"to " + inlined, "any", "inline", "the bytes fit in the packet's own cache line"},
      {"to " + eager, "any", "eager",
       "sent before it is asked for: asking takes longer than copying it once more"}};
  const std::string above = "above " + eager;
  if (abilities.mapped) {
    const std::string from = show_bytes(limits.stream_from_bytes);
    const std::string streamed =
        limits.stream_from_bytes == SIZE_MAX ? " and a copy past the caches"
        : limits.stream_fixed                ? "; past the caches from " + from + " on"
                              : " and a copy past the caches, which is usual from " + from + " on";
    rows.push_back(
        {above, "haul_alloc()", "mapped",
         "one side maps the other's: one copy in user space, of which each side makes a "
         "share where both buffers lie there; from 16 KiB on if the sender's does and is "
         "not injected. Tried instead now and then: eager packets; above 64 KiB shared "
         "cells" +
             streamed});
  }
  if (abilities.cma) {
    rows.push_back(
        {"from " + show_bytes(fabric::HugePages::smallest_bytes), "huge pages", "cma",
         fmt::format("the kernel copies it once, unless trials find shared cells sooner; "
                     "private buffers from {} on are moved to "
                     "huge pages at their use number {}",
                     show_bytes(fabric::HugePages::collapse_bytes),
                     fabric::HugePages::uses_before_collapse)});
  }
  if (!abilities.cma) {
    rows.push_back({above, "other", "ring", "through shared cells, piece by piece"});
    return rows;
  }
  const std::string from = show_bytes(std::max(limits.kernel_from_bytes, limits.near.eager_bytes));
  if (limits.kernel_fixed) {
    rows.push_back({above, "other", "ring", "through shared cells, piece by piece"});
    rows.push_back({"from " + from, "other", "cma",
                    "the kernel copies it once: HAUL_FABRIC_KERNEL_BYTES says from where"});
    return rows;
  }
  rows.push_back(
      {above, "other", "ring",
       fmt::format("through shared cells; from {} on now and then by the kernel, and "
                   "always while that is found to be sooner",
                   show_bytes(std::max(limits.kernel_try_from_bytes, limits.near.eager_bytes)))});
  rows.push_back(
      {"from " + from, "other", "cma",
       "the kernel copies it once, mostly sooner than two copies through shared cells, which are "
       "tried now and then"});
  return rows;
}

std::string ability_names(const PairAbilities& abilities) {
  std::string names;
  auto name = [&names](bool able, const char* path) {
    if (able) names += (names.empty() ? "" : ", ") + std::string(path);
  };
  name(abilities.ring, "ring");
  name(abilities.mapped, "mapped");
  name(abilities.cma, "cma");
  name(abilities.offnode, "offnode");
  return names.empty() ? "none" : names;
}

}  // namespace haul::cli
