#include "atomic/fabric/fabric_operation.hpp"

#include "atomic/wire/operation.h"

namespace haul::atomics {

bool FabricOperation::done(wire_result result, std::uint64_t old) noexcept {
  result_ = result;
  old_ = result == WIRE_DONE && asked_.code != WIRE_WRITE ? old : 0;
  return false;
}

bool FabricOperation::begin(const wire_operation& asked, const Abilities& abilities,
                            std::uint64_t window_address, std::uint64_t window_bytes,
                            ProviderQuestion* question) noexcept {
  *this = FabricOperation{};
  asked_ = asked;
  const std::uint64_t offset = asked.address - window_address;
  const bool guarded = (asked.flags & WIRE_GUARDED) != 0;
  const wire_result refusal = refusal_of(&asked, offset, window_bytes);
  if (refusal != WIRE_DONE) return done(refusal, 0);

  question_.width = asked.width;
  question_.offset = offset;
  // Words of 32 bits are halves of others, to a provider that cannot compare&swap them alone.
  if (asked.width == 4 && !abilities.narrow[WIRE_CAS]) {
    question_.width = 8;
    question_.offset = offset & ~std::uint64_t{7};
    shift_ = offset % 8 * 8;
  }
  able_ = abilities.of(question_.width);
  // A write is a swap whose old value nobody wants.
  const std::uint8_t code = asked.code == WIRE_WRITE ? std::uint8_t{WIRE_SWAP} : asked.code;
  loops_ = guarded || question_.width != asked.width || !able_[code];
  question_.code = loops_ ? std::uint8_t{WIRE_READ} : code;
  if (!loops_) {
    question_.operand = asked.operand;
    question_.compare = asked.compare;
  } else if (!able_[WIRE_READ]) {
    question_.code = WIRE_CAS;  // of 0 by 0: reads
  }
  *question = question_;
  return true;
}

bool FabricOperation::heard(std::uint64_t word, ProviderQuestion* question) noexcept {
  if (!loops_) return done(WIRE_DONE, word);
  const bool guarded = (asked_.flags & WIRE_GUARDED) != 0;
  const bool narrow = asked_.width == 4 || guarded;
  const std::uint64_t mask = (narrow ? 0xffffffffull : ~0ull) << shift_;
  const std::uint64_t field = (word & mask) >> shift_;
  if (has_guess_ && word == guess_) return done(WIRE_DONE, field);  // it was swapped
  if (guarded &&
      static_cast<std::int32_t>(asked_.stamp - static_cast<std::uint32_t>(word >> 32)) < 0)
    return done(WIRE_STALE, 0);
  if (guarded && tries_++ == guard_tries) return done(WIRE_BUSY, 0);

  const std::uint64_t low = mask >> shift_;
  std::uint64_t next =
      applied(field, asked_.code, asked_.operand & low, asked_.compare & low) & low;
  next = (word & ~mask) | next << shift_;
  if (guarded) next = (next & mask) | static_cast<std::uint64_t>(asked_.stamp) << 32;
  if (next == word) return done(WIRE_DONE, field);  // read, and nothing to be changed
  has_guess_ = true;
  guess_ = word;
  question_.code = WIRE_CAS;
  question_.operand = next;
  question_.compare = word;
  *question = question_;
  return true;
}

}  // namespace haul::atomics
