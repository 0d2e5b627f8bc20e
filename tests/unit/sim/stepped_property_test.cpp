// The cycle-stepped model on random programs: what must hold whatever they are.
#include <gtest/gtest.h>

#include <map>

#include "model/replay.hpp"
#include "model/stepped/core.hpp"
#include "unit/sim/random_trace.hpp"

namespace bcisim::test {
namespace {

std::string text_of(const Result& r) {
  std::string text;
  for (const std::uint64_t value :
       {r.instructions, r.cycles, r.rob_clog_cycles, r.dependence_cycles, r.engine_cycles,
        r.fence_cycles, r.copies, r.copy_bytes, r.copy_cycles, r.branches, r.mispredicted,
        r.tlb_misses, r.accesses, r.l1_misses, r.l2_misses, r.copy_l2_misses, r.bus_blocks}) {
    text += std::to_string(value) + " ";
  }
  return text;
}

// Small structures get into each other's way.
Parameters parameters_of(std::uint32_t seed) {
  Parameters p;
  if (seed % 2 != 0) {
    p.rob_entries = 16;
    p.lsq_entries = 8;
    p.mshrs = 3;
    p.tlb_entries = 4;
    p.cst_entries = 1 + seed % 3;
    p.engine_parallel = 1 + seed % 5;
    p.l1d = p.l1i = {2048, 2, 2};
    p.l2 = {8192, 4, 8};
    p.memory_cycles = 100;
  }
  static constexpr unsigned block_bytes[] = {64, 64, 16, 256};
  p.block_bytes = block_bytes[seed / 2 % 4];
  p.reads_destination = seed % 3 != 0;
  p.write_buffer_entries = seed % 5;
  if (p.block_bytes == 256) p.bus_bytes_per_cycle = 6.4;
  return p;
}

// Checks happenings against what the program says.
class Checker {
 public:
  Checker(const MicroTrace& program, Scheme scheme) : traits_(traits_of(scheme)) {
    for (const auto& [number, copy] : program.copies()) {
      Seen& seen = copies_[number];
      seen.copy = copy;
      for (unsigned i = 0; i < copy.bytes; ++i) {
        seen.destination.push_back(physical(copy.destination + i));
        seen.source.push_back(copy.is_fill ? 0 : physical(copy.source + i));
      }
      seen.copied_at.assign(copy.bytes, never);
    }
  }

  void operator()(const Happening& one) {
    ASSERT_GE(one.at, now_) << "time goes backwards";
    now_ = one.at;
    switch (one.kind) {
      case Happening::Kind::validated: copies_.at(one.number).validated = true; break;
      case Happening::Kind::begun: begun(copies_.at(one.number), one); break;
      case Happening::Kind::copied: copied(copies_.at(one.number), one); break;
      case Happening::Kind::done: done(copies_.at(one.number)); break;
      case Happening::Kind::accessed: accessed(one); break;
      case Happening::Kind::retired: retired(one); break;
    }
  }

  void at_the_end() const {
    for (const auto& [number, seen] : copies_) ASSERT_TRUE(seen.done && seen.retired) << number;
  }

 private:
  struct Seen {
    BulkCopy copy;
    std::vector<std::uint64_t> destination, source;  // physical addresses of each byte
    std::vector<Cycle> copied_at;
    bool validated = false, done = false, retired = false;
  };

  static std::uint64_t physical(std::uint64_t address) { return address + physical_offset; }

  // What the block reads and overwrites is not to come from an older copy, nor to be read by one.
  void begun(const Seen& seen, const Happening& one) const {
    ASSERT_TRUE(seen.validated);
    const std::uint64_t offset = one.physical - seen.destination[0];
    Happening access = one;
    access.is_store = true;
    accessed(access);
    if (seen.copy.is_fill) return;
    access.is_store = false;
    access.physical = seen.source[offset];
    accessed(access);
  }
  void copied(Seen& seen, const Happening& one) {
    ASSERT_TRUE(seen.validated);
    for (std::uint64_t byte = one.physical; byte < one.physical + one.bytes; ++byte) {
      const std::uint64_t offset = byte - seen.destination[0];
      ASSERT_LT(offset, seen.copied_at.size());
      ASSERT_EQ(seen.copied_at[offset], never) << "twice";
      seen.copied_at[offset] = one.at;
    }
  }
  void done(Seen& seen) {
    for (const Cycle at : seen.copied_at) ASSERT_LE(at, now_) << "not copied";
    seen.done = true;
  }
  void retired(const Happening& one) {
    ASSERT_EQ(one.number, retired_++) << "out of order";
    const auto found = copies_.find(one.number);
    if (found == copies_.end()) return;
    ASSERT_TRUE(found->second.validated);
    ASSERT_TRUE(traits_.retires_early || found->second.done);
    found->second.retired = true;
  }
  void accessed(const Happening& one) const {
    for (const auto& [number, seen] : copies_) {
      if (number >= one.number) break;  // not older
      if (seen.done) continue;
      for (unsigned i = 0; i < seen.copy.bytes; ++i) {
        const auto touches = [&one](std::uint64_t byte) {
          return one.physical <= byte && byte < one.physical + one.bytes;
        };
        const bool depends = touches(seen.destination[i]) ||
                             (one.is_store && !seen.copy.is_fill && touches(seen.source[i]));
        if (!depends) continue;
        ASSERT_TRUE(traits_.waits_by_block) << "before the whole copy is done";
        ASSERT_NE(seen.copied_at[i], never) << "before its byte is copied";
      }
    }
  }

  const SchemeTraits& traits_;
  std::map<std::uint64_t, Seen> copies_;
  Cycle now_ = 0;
  std::uint64_t retired_ = 0;
};

constexpr Scheme engines[] = {Scheme::copy_engine, Scheme::dma, Scheme::fast_bci,
                              Scheme::perfect_pipeline, Scheme::perfect_cache};

TEST(SteppedProperties, CopiesAndTheirDependentsKeepTheirOrder) {
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const MicroTrace program = random_trace(seed);
    const Scheme scheme = engines[seed % 5];
    const Parameters parameters = parameters_of(seed / 5);
    Checker check(program, scheme);
    SteppedCore core(parameters, scheme);
    core.set_observer([&check](const Happening& one) { check(one); });
    program.play(core);
    core.finish();
    check.at_the_end();
    if (HasFatalFailure()) return;
  }
}

// Also for every alignment within blocks and many lengths, without other instructions.
TEST(SteppedProperties, EveryBlockIsCopiedOnceForEveryAlignment) {
  for (unsigned source = 0; source < 64; source += 3) {
    for (unsigned destination = 0; destination < 64; destination += 5) {
      for (const unsigned bytes : {1u, 63u, 64u, 65u, 1460u, 4096u}) {
        MicroTrace program;
        const unsigned page_end = bytes > 64 ? 3000 : 0;
        program.copy(data_page(4) + page_end + destination, data_page(0) + page_end + source,
                     bytes);
        Checker check(program, Scheme::fast_bci);
        SteppedCore core(Parameters{}, Scheme::fast_bci);
        core.set_observer([&check](const Happening& one) { check(one); });
        program.play(core);
        core.finish();
        check.at_the_end();
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(SteppedProperties, SkippedCyclesAreThoseInWhichNothingHappens) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const MicroTrace program = random_trace(seed);
    std::string texts[2];
    for (const bool skips : {false, true}) {
      SteppedCore core(parameters_of(seed / 5), engines[seed % 5]);
      core.set_skipping(skips);
      program.play(core);
      core.finish();
      texts[skips ? 1 : 0] = text_of(core.result());
    }
    ASSERT_EQ(texts[0], texts[1]) << "seed " << seed;
  }
}

// The same trace in one chunk, or in many.
class Chunks {
 public:
  explicit Chunks(std::uint32_t seed) : random_(seed) {
    for (unsigned i = 0; i < 16; ++i) {
      statics_.push_back({code + i * 4, (code + physical_offset) / page_bytes, 1U << i % 4,
                          1U << i % 3, 4,
                          i % 8 == 5 ? InstructionClass::branch : InstructionClass::simple});
    }
  }
  Result play(Scheme scheme, unsigned chunk_length) {
    random_.seed(7);
    SteppedCore core(Parameters{}, scheme);
    ReplayOptions options;
    options.scheme = scheme;
    Replay replay(options);
    Chunk chunk;
    for (unsigned i = 0; i < 3000; ++i) {
      if (chunk.instructions.size() == chunk_length) {
        replay.play(chunk, statics_, core);
        chunk.clear();
      }
      add(chunk, i);
    }
    replay.play(chunk, statics_, core);
    core.finish();
    return core.result();
  }

 private:
  void event(Chunk& chunk, Event::Kind kind, std::size_t index) {
    chunk.events.push_back({kind, static_cast<std::uint32_t>(chunk.instructions.size()),
                            static_cast<std::uint32_t>(index)});
  }
  void add(Chunk& chunk, unsigned i) {
    // A copy's loop has 40 instructions.
    if (i % 100 == 50) {
      CopyCall call{CopyKind::copy,
                    code,
                    data_page(0) + random_() % 4096,
                    data_page(2) + random_() % 4096,
                    1 + random_() % 3000,
                    {},
                    {}};
      for (unsigned page = 0; page < 2; ++page) {
        call.destination_pages.push_back((call.destination + physical_offset) / page_bytes + page);
        call.source_pages.push_back((call.source + physical_offset) / page_bytes + page);
      }
      chunk.copies.push_back(call);
      event(chunk, Event::Kind::copy_begin, chunk.copies.size() - 1);
    }
    if (i % 100 == 90) event(chunk, Event::Kind::copy_end, 0);
    if (i % 700 == 3) event(chunk, Event::Kind::interrupt, 0);
    if (i % 300 == 7) {
      chunk.devices.push_back({data_page(0) + physical_offset, 512, i % 600 == 7});
      event(chunk, Event::Kind::device, chunk.devices.size() - 1);
    }
    DynamicInstruction one{static_cast<std::uint32_t>(random_() % statics_.size()),
                           static_cast<std::uint32_t>(chunk.references.size()), 0, false};
    if (random_() % 3 == 0) {
      chunk.references.push_back(
          MicroTrace::reference(data_page(0) + random_() % 2048 * 8, 8, random_() % 3 == 0));
      one.references = 1;
    }
    one.taken = statics_[one.what].kind == InstructionClass::branch && random_() % 2 == 0;
    chunk.instructions.push_back(one);
  }

  std::mt19937 random_;
  std::vector<StaticInstruction> statics_;
};

TEST(SteppedProperties, ChunksOfATraceMakeNoDifference) {
  for (const SchemeTraits& traits : schemes) {
    Chunks trace(1);
    const std::string whole = text_of(trace.play(traits.scheme, 3000));
    for (const unsigned length : {1u, 3u, 64u, 1000u}) {
      ASSERT_EQ(text_of(trace.play(traits.scheme, length)), whole) << traits.name << " " << length;
    }
  }
}

// Better schemes are not slower, but for what chance does to caches and the order on the bus.
TEST(SteppedProperties, SchemesComeInTheirOrder) {
  std::uint64_t cycles[5] = {};
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    RandomOptions options;
    options.affinities = false;
    const MicroTrace program = random_trace(seed, options);
    for (unsigned i = 0; i < 5; ++i) {
      SteppedCore core(Parameters{}, engines[i]);
      program.play(core);
      core.finish();
      cycles[i] += core.result().cycles;
    }
  }
  for (unsigned i = 1; i < 5; ++i) EXPECT_LE(cycles[i], cycles[i - 1]) << i;
}

}  // namespace
}  // namespace bcisim::test
