// One operation of a packet as a fabric executes it: by the provider's own operation where it has
// that, else by a loop of compare&swap. Pure: what is asked of the provider goes out as a
// ProviderQuestion, and the word's old value comes back.
#pragma once

#include <cstdint>

#include "atomic/wire/packet.h"

namespace haul::atomics {

// Which operations a provider has for words of 32 and 64 bits, by wire_code. A provider without
// compare&swap of 64 bits is not used.
struct Abilities {
  bool narrow[WIRE_XOR + 1] = {}, wide[WIRE_XOR + 1] = {};
  const bool* of(unsigned width) const noexcept { return width == 4 ? narrow : wide; }
};

// What the provider is asked for: fetch the word of this width, and do this to it.
struct ProviderQuestion {
  std::uint8_t code = 0, width = 0;
  std::uint64_t offset = 0;  // in the window
  std::uint64_t operand = 0, compare = 0;
};

class FabricOperation {
 public:
  // After this many tries an operation on a guarded word that others keep changing gives up.
  static constexpr unsigned guard_tries = 64;

  // True: ask *question. False: refused, untouched; result() says why.
  bool begin(const wire_operation& asked, const Abilities& abilities, std::uint64_t window_address,
             std::uint64_t window_bytes, ProviderQuestion* question) noexcept;
  // The old value of the word that was asked about. True: ask once more; false: done.
  bool heard(std::uint64_t word, ProviderQuestion* question) noexcept;

  wire_result result() const noexcept { return result_; }
  // What the operation says was there before.
  std::uint64_t old() const noexcept { return old_; }

 private:
  bool done(wire_result result, std::uint64_t old) noexcept;

  wire_operation asked_{};
  const bool* able_ = nullptr;  // of the width that is asked for
  ProviderQuestion question_{};
  bool loops_ = false, has_guess_ = false;
  unsigned shift_ = 0;  // of a word of 32 bits in one of 64
  unsigned tries_ = 0;
  std::uint64_t guess_ = 0;
  wire_result result_ = WIRE_DONE;
  std::uint64_t old_ = 0;
};

}  // namespace haul::atomics
