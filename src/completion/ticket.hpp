// What a ticket's 16 bytes mean. A ticket with a cookie names a tenancy of a ring of this process;
// one without was decided when it was made.
#pragma once

#include <cstdint>

#include "base/error.hpp"

namespace haul {

struct Ticket {
  std::uint64_t where = 0;    // {cookie 32 | ring 32}; cookie 0: {0 | -Code}
  std::uint64_t tenancy = 0;  // the ring's seq; cookie 0: good bytes

  // A request that was finished before its submit returned.
  static constexpr Ticket decided(Code code, std::uint64_t good_bytes) noexcept {
    return Ticket{static_cast<std::uint32_t>(-static_cast<std::int32_t>(code)), good_bytes};
  }
  static constexpr Ticket pending(std::uint32_t cookie, std::uint32_t ring,
                                  std::uint64_t seq) noexcept {
    return Ticket{std::uint64_t{cookie} << 32 | ring, seq};
  }

  constexpr std::uint32_t cookie() const noexcept {
    return static_cast<std::uint32_t>(where >> 32);
  }
  constexpr std::uint32_t ring() const noexcept { return static_cast<std::uint32_t>(where); }
  // Only for a decided ticket; a number that is not a code means that this is not a ticket of ours.
  constexpr Code code() const noexcept {
    const auto low = static_cast<std::uint32_t>(where);
    constexpr auto last = static_cast<std::uint32_t>(-static_cast<std::int32_t>(Code::closed));
    return low <= last ? static_cast<Code>(-static_cast<std::int32_t>(low)) : Code::invalid;
  }
};

}  // namespace haul
