// The ways by which the bytes of a message come that waits with its sender.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>

namespace haul::fabric {

enum class MessageWay : std::uint8_t {
  pieces,    // packets: copied twice, by both sides at once
  direct,    // copied once, into the receiver's memory
  streamed,  // the same, written past the caches (paper 003, III-B)
};
inline constexpr unsigned way_count = 3;

// Those that are open to a message, and the one it takes while nobody knows better.
class MessageWays {
 public:
  constexpr MessageWays(MessageWay only) noexcept
      : MessageWays(only, {}) {}  // NOLINT(google-explicit-constructor)
  constexpr MessageWays(MessageWay usual, std::initializer_list<MessageWay> others) noexcept
      : usual_(usual), open_(bit(usual)) {
    for (const MessageWay way : others) open_ = static_cast<std::uint8_t>(open_ | bit(way));
  }
  constexpr MessageWay usual() const noexcept { return usual_; }
  constexpr bool has(MessageWay way) const noexcept { return (open_ & bit(way)) != 0; }
  constexpr unsigned count() const noexcept { return static_cast<unsigned>(std::popcount(open_)); }
  constexpr bool only(MessageWay way) const noexcept { return open_ == bit(way); }
  constexpr bool fixed() const noexcept { return only(usual_); }
  friend constexpr bool operator==(const MessageWays&, const MessageWays&) noexcept = default;

 private:
  static constexpr std::uint8_t bit(MessageWay way) noexcept {
    return static_cast<std::uint8_t>(1u << static_cast<unsigned>(way));
  }
  MessageWay usual_;
  std::uint8_t open_;
};

}  // namespace haul::fabric
