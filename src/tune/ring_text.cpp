#include "tune/ring_text.hpp"

#include <algorithm>

namespace haul::tune {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t key_bytes = 48;

struct RingBytes {
  const char* key;
  std::size_t HaulPrivateRing::*member;
  std::size_t minimum, maximum;
};
constexpr RingBytes bytes_in_order[] = {
    {"eager_bytes", &HaulPrivateRing::eager_bytes, 4 * kib, 64 * kib},
    {"part_bytes", &HaulPrivateRing::part_bytes, 1 * kib, 32 * kib},
    {"cell_from_bytes", &HaulPrivateRing::cell_from_bytes, 0, 8 * kib},
    {"piece_bytes", &HaulPrivateRing::piece_bytes, 4 * kib, 32 * kib},
};

struct RingSwitch {
  const char* key;
  bool HaulPrivateRing::*member;
};
constexpr RingSwitch switches_in_order[] = {
    {"owns_ahead", &HaulPrivateRing::owns_ahead},
    {"demotes", &HaulPrivateRing::demotes},
};

struct RingCopies {
  const char* key;
  HaulPrivateCopy HaulPrivateRing::*member;
};
constexpr RingCopies copies_in_order[] = {
    {"copies_in", &HaulPrivateRing::copies_in},
    {"copies_out", &HaulPrivateRing::copies_out},
};
constexpr auto last_copy = static_cast<unsigned>(HaulPrivateCopy::prefetching);

constexpr double maximum_ns = 1e9;

struct Key {
  char text[key_bytes];
  Key(const char* prefix, const char* name) noexcept {
    snprintf(text, sizeof text, "%s_%s", prefix, name);
  }
};

// "near_message_4k_ns".
Key message_key(const char* prefix, unsigned size) noexcept {
  char name[key_bytes / 2];
  snprintf(name, sizeof name, "message_%zuk_ns", HaulPrivateRing::bytes_of(size) / kib);
  return {prefix, name};
}

}  // namespace

void write_ring(FiguresWriter& writer, const char* prefix, const HaulPrivateRing& ring) noexcept {
  writer.add("%s=%" PRIu64 "\n", Key(prefix, "measured_at").text, ring.measured_at_s);
  for (const RingBytes& row : bytes_in_order)
    writer.add("%s=%zu\n", Key(prefix, row.key).text, ring.*row.member);
  for (const RingSwitch& row : switches_in_order)
    writer.add("%s=%d\n", Key(prefix, row.key).text, ring.*row.member ? 1 : 0);
  for (const RingCopies& row : copies_in_order)
    writer.add("%s=%u\n", Key(prefix, row.key).text, static_cast<unsigned>(ring.*row.member));
  for (unsigned size = 0; size < HaulPrivateRing::size_count; ++size) {
    const double ns = ring.message_ns[size];
    const bool usable = ns >= 0 && ns < maximum_ns;  // NaN is not
    writer.add_thousandths(message_key(prefix, size).text,
                           usable ? (static_cast<std::uint64_t>(ns * 10'000) + 5) / 10 : 0);
  }
}

bool read_ring(FiguresReader& reader, const char* prefix, HaulPrivateRing& ring) noexcept {
  std::uint64_t value = 0;
  if (!reader.number(Key(prefix, "measured_at").text, ring.measured_at_s)) return false;
  for (const RingBytes& row : bytes_in_order) {
    if (!reader.number(Key(prefix, row.key).text, value) || value < row.minimum ||
        value > row.maximum)
      return false;
    ring.*row.member = value;
  }
  for (const RingSwitch& row : switches_in_order) {
    if (!reader.number(Key(prefix, row.key).text, value) || value > 1) return false;
    ring.*row.member = value == 1;
  }
  for (const RingCopies& row : copies_in_order) {
    if (!reader.number(Key(prefix, row.key).text, value) || value > last_copy) return false;
    ring.*row.member = static_cast<HaulPrivateCopy>(value);
  }
  for (unsigned size = 0; size < HaulPrivateRing::size_count; ++size) {
    if (!reader.thousandths(message_key(prefix, size).text, value)) return false;
    ring.message_ns[size] = static_cast<double>(value) / 1000;
    if (!(ring.message_ns[size] < maximum_ns)) return false;
  }
  return true;
}

}  // namespace haul::tune
