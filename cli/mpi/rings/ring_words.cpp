#include "cli/mpi/rings/ring_words.hpp"

#include <fmt/format.h>

#include "base/machine/cpu.hpp"
#include "cli/kit/terminal.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

using tools::show_bytes;

const char* word_of(HaulPrivateCopy copy) {
  switch (copy) {
    case HaulPrivateCopy::strings: return "strings";
    case HaulPrivateCopy::vectors: return "vectors";
    case HaulPrivateCopy::prefetching: break;
  }
  return "prefetching";
}

// What it comes to on this processor.
const char* effect_of(HaulPrivateCopy copy) {
  const bool strings = copy == HaulPrivateCopy::strings && cpu_features().fast_rep_movsb;
  return strings ? "`rep movsb`"
                 : word_of(copy == HaulPrivateCopy::strings ? HaulPrivateCopy::vectors : copy);
}

// How both are written, whatever was measured when.
bool is_same(const HaulPrivateRing& a, const HaulPrivateRing& b) {
  return a.eager_bytes == b.eager_bytes && a.part_bytes == b.part_bytes &&
         a.piece_bytes == b.piece_bytes && a.cell_from_bytes == b.cell_from_bytes &&
         a.owns_ahead == b.owns_ahead && a.copies_in == b.copies_in &&
         a.copies_out == b.copies_out && a.demotes == b.demotes &&
         a.measured_at_s == b.measured_at_s;
}

}  // namespace

std::string describe_ring(const HaulPrivateRing& ring) {
  std::string text = fmt::format(
      "up to {} unasked, in parts of {}; longer messages in pieces of {}",
      show_bytes(ring.eager_bytes), show_bytes(ring.part_bytes), show_bytes(ring.piece_bytes));
  text += ring.cell_from_bytes == 0
              ? "; no payload is written to cells"
              : fmt::format("; payloads of {} and more are written to cells, by turns",
                            show_bytes(ring.cell_from_bytes));
  text +=
      fmt::format("; the writer {} the lines it will write next, and {} those of small packets.",
                  ring.owns_ahead ? "owns ahead" : "does not own ahead",
                  ring.demotes ? "demotes" : "does not demote");
  text += fmt::format(" Copies in by {}, out by {}.", effect_of(ring.copies_in),
                      effect_of(ring.copies_out));
  if (ring.measured_at_s == 0) return text;
  for (unsigned size = 0; size < HaulPrivateRing::size_count; ++size) {
    text += fmt::format("{}{} {}", size == 0 ? " A message takes that way, as measured: " : ", ",
                        show_bytes(HaulPrivateRing::bytes_of(size)),
                        tools::show_ns(ring.message_ns[size]));
  }
  return text + ".";
}

void print_rings(const HaulPrivateMessageLimits& limits) {
  const bool measured = limits.near.measured_at_s != 0;
  if (is_same(limits.near, limits.far)) {
    fmt::print("{}", wrapped("rings: " + describe_ring(limits.near), 2));
  } else {
    fmt::print("{}",
               wrapped("rings between CPUs that share a cache: " + describe_ring(limits.near), 2));
    fmt::print("{}", wrapped("rings between others: " + describe_ring(limits.far), 2));
  }
  if (!measured)
    fmt::print(
        "{}",
        wrapped(
            "These are usual figures, since rings were not measured here; `haul tune` does that.",
            2));
}

nlohmann::ordered_json rings_document(const HaulPrivateMessageLimits& limits) {
  nlohmann::ordered_json document;
  for (const auto& [name, ring] :
       {std::pair{"near", &limits.near}, std::pair{"far", &limits.far}}) {
    nlohmann::ordered_json& one = document[name];
    one = {{"measured_at", ring->measured_at_s},
           {"eager_bytes", ring->eager_bytes},
           {"part_bytes", ring->part_bytes},
           {"cell_from_bytes", ring->cell_from_bytes},
           {"piece_bytes", ring->piece_bytes},
           {"owns_ahead", ring->owns_ahead},
           {"demotes", ring->demotes},
           {"copies_in", word_of(ring->copies_in)},
           {"copies_out", word_of(ring->copies_out)}};
    if (ring->measured_at_s == 0) continue;
    for (unsigned size = 0; size < HaulPrivateRing::size_count; ++size)
      one["message_ns"][std::to_string(HaulPrivateRing::bytes_of(size))] = ring->message_ns[size];
  }
  return document;
}

}  // namespace haul::cli
