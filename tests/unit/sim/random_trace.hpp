// Random programs: instructions, copies between a few pages, accesses to these, branches, fences,
// devices, interrupts. Equal seeds give equal programs.
#pragma once

#include <random>

#include "unit/sim/micro_trace.hpp"

namespace bcisim::test {

struct RandomOptions {
  unsigned length = 400;        // instructions and copies
  unsigned copies_percent = 2;  // of these
  bool rare_ones = true;        // fences, serializing instructions, interrupts, devices
  bool affinities = true;       // others than cacheable
};

class RandomTrace {
 public:
  RandomTrace(std::uint32_t seed, RandomOptions options) : random_(seed), options_(options) {}

  MicroTrace make() {
    if (chance(50)) trace_.warm(data_page(0), std::uint64_t{pages} * page_bytes, chance(50));
    for (unsigned i = 0; i < options_.length; ++i) {
      if (chance(options_.copies_percent)) {
        bulk();
      } else {
        instruction();
      }
    }
    return trace_;
  }

 private:
  static constexpr unsigned pages = 8;

  unsigned below(unsigned count) { return static_cast<unsigned>(random_() % count); }
  bool chance(unsigned percent) { return below(100) < percent; }
  std::uint64_t some_register() { return MicroTrace::bit(below(6)); }

  // Near the last copy, often.
  std::uint64_t some_address(unsigned bytes) {
    const std::uint64_t begin = data_page(0);
    std::uint64_t address = begin + below(pages * page_bytes - bytes);
    if (copied_ != 0 && chance(50)) {
      const std::uint64_t region = chance(70) ? destination_ : source_;
      address = std::max(begin, region + below(copied_ + 64) - 32);
    }
    // A reference stays on its page.
    if (address / page_bytes != (address + bytes - 1) / page_bytes) address -= bytes;
    return std::max(begin, address);
  }

  void bulk() {
    // Pairs of pages, so that the two sides are apart.
    const unsigned from = below(pages / 2), to = (from + 1 + below(pages / 2 - 1)) % (pages / 2);
    static constexpr unsigned sizes[] = {16, 100, 600, 2000, page_bytes};
    copied_ = 1 + below(sizes[below(5)]);
    if (chance(20)) copied_ = page_bytes;
    const unsigned step = chance(50) ? 64 : 1;
    source_ = data_page(2 * from) + below(page_bytes) / step * step;
    destination_ = data_page(2 * to) + below(page_bytes) / step * step;
    Affinities affinities;
    if (options_.affinities) {
      affinities.source = static_cast<Affinity>(below(3));
      affinities.destination = static_cast<Affinity>(below(3));
    }
    if (chance(15)) {
      trace_.fill(destination_, copied_, affinities);
    } else {
      trace_.copy(destination_, source_, copied_, affinities);
    }
  }

  void instruction() {
    const unsigned what = below(1000);
    static constexpr std::uint16_t widths[] = {1, 2, 4, 8, 8, 8, 16, 32};
    if (what < 250) {
      const std::uint16_t bytes = widths[below(8)];
      if (chance(15)) {
        trace_.pop(some_address(8), some_register(), some_register());
      } else {
        trace_.load(some_address(bytes), some_register(), chance(50) ? some_register() : 0, bytes);
      }
    } else if (what < 400) {
      const std::uint16_t bytes = widths[below(8)];
      trace_.store(some_address(bytes), some_register(), bytes);
    } else if (what < 430) {
      // Reads and writes memory; several references.
      const std::uint64_t a = some_address(8), b = some_address(64);
      trace_.instruction(InstructionClass::simple, some_register(), some_register(),
                         {MicroTrace::reference(a, 8, false), MicroTrace::reference(b, 64, false),
                          MicroTrace::reference(a, 8, true)});
    } else if (what < 500) {
      const bool taken = chance(60);
      trace_.branch(taken, some_register());
      if (taken) trace_.at(somewhere());
    } else if (what < 520) {
      trace_.jump().at(somewhere());
    } else if (what < 560) {
      trace_.multiply(some_register(), some_register());
    } else if (what < 570) {
      trace_.instruction(InstructionClass::divide, some_register(), some_register());
    } else if (what < 580 && options_.rare_ones) {
      rare_one();
    } else {
      trace_.add(some_register(), some_register());
    }
  }

  void rare_one() {
    switch (below(5)) {
      case 0: trace_.fence(); break;
      case 4: {  // locked
        const std::uint64_t a = some_address(8);
        trace_.instruction(InstructionClass::fence, some_register(), some_register(),
                           {MicroTrace::reference(a, 8, false), MicroTrace::reference(a, 8, true)});
        break;
      }
      case 1: trace_.serialize(); break;
      case 2: trace_.interrupt().add(); break;
      default: trace_.device(some_address(64), 1 + below(3000), chance(50)).add(); break;
    }
  }

  std::uint64_t somewhere() { return code + 4 * std::uint64_t{below(256)}; }

  std::mt19937 random_;
  RandomOptions options_;
  MicroTrace trace_;
  std::uint64_t source_ = 0, destination_ = 0;
  unsigned copied_ = 0;
};

inline MicroTrace random_trace(std::uint32_t seed, RandomOptions options = {}) {
  return RandomTrace(seed, options).make();
}

}  // namespace bcisim::test
