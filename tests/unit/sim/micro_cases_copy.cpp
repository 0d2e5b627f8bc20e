// See micro_cases.hpp. s: the copy starts at the engine; v: validated; b: a block starts there; q:
// asked for in memory; w: written; e: done.
//
// Most programs begin with an addition, fetched in 310, r 320. The copy behind it is the oldest
// instruction from 321: s 321, v 323 (two pages; 322 for a fill), and without a wait for a page
// pair the k-th block starts in 323 + k. A block that is read from memory: b, b + 1 (modulus), q b
// + 11, there b + 311. One in the L2: there b + 11. It is written then: in 2 cycles in the L1, in
// 10 in the L2 and where a whole block is not in the caches (both are searched).
#include "unit/sim/micro_cases.hpp"

namespace bcisim::test {
namespace {

constexpr std::uint64_t source = data_page(16), target = data_page(32);
constexpr Affinities neutral{Affinity::neutral, Affinity::neutral};
constexpr Affinities non_cacheable{Affinity::non_cacheable, Affinity::non_cacheable};

// An addition, a copy of so many bytes.
MicroTrace one_copy(unsigned bytes, Affinities affinities = {}) {
  return MicroTrace().add().copy(target, source, bytes, affinities);
}
// The same with both regions in the L2.
MicroTrace in_l2(unsigned bytes, std::uint64_t from = source, std::uint64_t to = target) {
  return MicroTrace().warm(from, bytes).warm(to, bytes).add().copy(to, from, bytes);
}

}  // namespace

std::vector<MicroCase> copy_cases() {
  std::vector<MicroCase> cases;
  const auto with_scheme = [&cases](std::string name, Scheme scheme, MicroTrace program,
                                    Parameters parameters, std::uint64_t cycles) -> MicroCase& {
    cases.push_back(micro_case(std::move(name), scheme, std::move(program), parameters, cycles));
    return cases.back();
  };
  const auto add = [&with_scheme](std::string name, MicroTrace program,
                                  std::uint64_t cycles) -> MicroCase& {
    return with_scheme(std::move(name), Scheme::fast_bci, std::move(program), no_walks(), cycles);
  };

  MicroCase* one = nullptr;
  // Nothing before it, and it is fetched from nowhere: f 0, d 8, s 9, v 11, b 11, q 22, there 322,
  // w 322 to 332.
  add("a copy alone", MicroTrace().copy(target, source, 64), 332).copy_cycles = 323;
  // With walks: v 9 + 2 + 60 = 71. And the destination's block is read: q 392, there 692.
  with_scheme("a copy alone with walks", Scheme::fast_bci, MicroTrace().copy(target, source, 64),
              Parameters{}, 692)
      .copy_cycles = 683;
  // It retires when it is done: r 332.
  with_scheme("a copy alone that retires late", Scheme::copy_engine,
              MicroTrace().copy(target, source, 64), no_walks(), 333)
      .copy_cycles = 323;
  // b 323, there 634, e 644.
  add("a block", one_copy(64), 644).bus_blocks = 2;
  // b 323, there 334, e 344.
  add("a block in the L2", in_l2(64), 344).bus_blocks = 1;
  // v 322, b 322, w 323 to 333.
  add("a fill", MicroTrace().add().fill(target, 64), 333).bus_blocks = 1;
  // Half a block: there 634; the destination q 644, there 944.
  add("part of a block", one_copy(32), 944).bus_blocks = 3;
  // q 334 + k; the bus: 594 to 634, ... the fourth there at 754, e 764.
  add("four blocks", one_copy(256), 764).bus_blocks = 5;
  // 21 cycles a block, 16 under way: the k-th starts at 323 + 21 * (k / 16) + k % 16; the last, the
  // 64th, at 323 + 63 + 15 = 401, e 422.
  add("a page in the L2", in_l2(4096), 422).copy_cycles = 101;
  with_scheme("one block at a time", Scheme::fast_bci, in_l2(128),
              with([](Parameters& p) { p.engine_parallel = 1; }), 365);
  // Not aligned alike: two source blocks, there 334, shifted 335, e 345.
  add("a block of two", in_l2(64, source + 8), 345);
  // The source's blocks 0 to 2 from memory, q 334, 334, 335, there 634, 674, 714; shifted, e 685
  // and 725. The middle one is read once: with the code's, four blocks on the bus.
  add("two blocks of three", MicroTrace().add().copy(target, source + 8, 128), 725).bus_blocks = 4;
  // 16-byte blocks, 10 cycles each on the bus: q 334 + k; there 634, 644, 654, 664; e 674.
  with_scheme("smaller blocks", Scheme::fast_bci, one_copy(64),
              with([](Parameters& p) { p.block_bytes = 16; }), 674)
      .bus_blocks = 5;

  // Source from 0xF00 of its page, destination from 0xE00, 1 KB: page pairs of 256, 256 and 512
  // bytes, 16 blocks. Four pages: v 325; the last block starts at 340, e 361.
  add("three page pairs", in_l2(1024, source + 0xF00, target + 0xE00), 361);
  // One at a time: blocks start at 325 to 328, done 346 to 349; 349 to 352, done 373; 373 to 380, e
  // 401.
  with_scheme("three page pairs one by one", Scheme::fast_bci,
              in_l2(1024, source + 0xF00, target + 0xE00),
              with([](Parameters& p) { p.cst_entries = 1; }), 401);

  // The source's page ends after 32 bytes: half a block of the destination is the first pair's,
  // then come half and a whole one. Three pages: v 324; they start in 324 to 326, there 335 to 337,
  // shifted, written in the L2: 346 to 348.
  add("a block of two page pairs", in_l2(128, source + page_bytes - 32, target), 348);
  // Source blocks 0 and 1 there at 634 and 674, shifted, written in the L2 at 685. Then b 685, and
  // of blocks 1 and 2 only the latter is read, though no cache has the former: q 696, there 996, e
  // 1007.
  with_scheme("a source block is read once", Scheme::fast_bci,
              MicroTrace().warm(target, 128).add().copy(target, source + 8, 128, neutral),
              with([](Parameters& p) { p.engine_parallel = 1; }), 1007)
      .bus_blocks = 4;
  // The load r 629; s 630, v 632. The source from the L2: there 643; written in the L1: 645.
  add("a destination in the L1",
      MicroTrace().warm(source, 64).load(target).copy(target, source, 64), 645);
  // The source from the L1: there 635; put into the caches: 645.
  add("a source in the L1", MicroTrace().load(source).copy(target, source, 64), 645);

  // Affinities. Neutral: there 634, searched for until 644, the bus until 684.
  add("a neutral block", one_copy(64, neutral), 684).bus_blocks = 3;
  // In the L2: read and written there, as cacheable.
  add("a neutral block in the L2",
      MicroTrace().warm(source, 64).warm(target, 64).add().copy(target, source, 64, neutral), 344)
      .bus_blocks = 1;
  // Read 334, written 344, and over the bus: 344 to 384. The source was clean.
  add("a non-cacheable block in the L2",
      MicroTrace().warm(source, 64).warm(target, 64).add().copy(target, source, 64, non_cacheable),
      384)
      .bus_blocks = 2;
  // A dirty source goes over the bus from 334 to 374, the destination's block behind it: 414.
  add("a non-cacheable block in the L2 when dirty",
      MicroTrace()
          .warm(source, 64, true)
          .warm(target, 64)
          .add()
          .copy(target, source, 64, non_cacheable),
      414)
      .bus_blocks = 3;
  // A whole destination block that is read: q 644, there 944.
  const Parameters reads = with([](Parameters& p) { p.reads_destination = true; });
  with_scheme("a block that is read", Scheme::fast_bci, one_copy(64), reads, 944).bus_blocks = 3;
  // q 644, 684, 724, 764; there 944, 984, 1024, 1064.
  with_scheme("four blocks that are read", Scheme::fast_bci, one_copy(256), reads, 1064)
      .bus_blocks = 9;
  with_scheme("a block that is there is not read", Scheme::fast_bci, in_l2(64), reads, 344)
      .bus_blocks = 1;
  with_scheme("a neutral block is not read", Scheme::fast_bci, one_copy(64, neutral), reads, 684)
      .bus_blocks = 3;
  // Done when the write-combining buffer has it, 644 and 344; on the bus until 684 and 384.
  const auto buffer = [](unsigned entries) {
    return with([entries](Parameters& p) { p.write_buffer_entries = entries; });
  };
  with_scheme("an entry of the write-combining buffer", Scheme::fast_bci, one_copy(64, neutral),
              buffer(1), 644)
      .bus_blocks = 3;
  with_scheme(
      "an entry for a block that was there", Scheme::fast_bci,
      MicroTrace().warm(source, 64).warm(target, 64).add().copy(target, source, 64, non_cacheable),
      buffer(1), 344)
      .bus_blocks = 2;
  // Sources in the L2, there 334 to 337, searched for until 344 to 347. Entries: 344 and 345; free
  // again when the bus has carried these, 384 and 424: the others' entries, so e 424.
  const MicroTrace four = MicroTrace().warm(source, 256).add().copy(target, source, 256, neutral);
  with_scheme("entries are few", Scheme::fast_bci, four, buffer(2), 424);
  with_scheme("one entry", Scheme::fast_bci, four, buffer(1), 464);
  with_scheme("entries for all", Scheme::fast_bci, four, buffer(4), 347);
  // What is left in the caches, asked when the copy is done (e as above; the serializing
  // instruction i = e, c = r = e + 1, the load is fetched in e + 2, i e + 11, and takes 2, 10 or
  // 310).
  struct Left {
    const char* name;
    Affinities affinities;
    std::uint64_t address, done, takes;
  };
  for (const Left& left :
       {Left{"after a cacheable copy the source", {}, source, 344, 2},
        Left{"after a cacheable copy the destination", {}, target, 344, 10},
        Left{"after a neutral copy the source", neutral, source, 344, 10},
        Left{"after a neutral copy the destination", neutral, target, 344, 10},
        Left{"after a non-cacheable copy the source", non_cacheable, source, 384, 310},
        Left{"after a non-cacheable copy the destination", non_cacheable, target, 384, 310}}) {
    MicroTrace program;
    program.warm(source, 64).warm(target, 64).add().copy(target, source, 64, left.affinities);
    program.serialize().load(left.address);
    add(left.name, program, left.done + 11 + left.takes + 1);
  }
  for (const Left& left :
       {Left{"after a cacheable copy from memory the source", {}, source, 644, 2},
        Left{"after a cacheable copy from memory the destination", {}, target, 644, 2},
        Left{"after a neutral copy from memory the source", neutral, source, 684, 310},
        Left{"after a neutral copy from memory the destination", neutral, target, 684, 310}}) {
    MicroTrace program = one_copy(64, left.affinities);
    program.serialize().load(left.address);
    add(left.name, program, left.done + 11 + left.takes + 1);
  }

  // Dependences: four blocks from memory are done at 644, 684, 724, 764. The load of the first and
  // the addition that needs it.
  MicroTrace dependent = one_copy(256);
  dependent.load(target, r1).add(r1);
  // c 646, r 647; then the copy's end. The copy is oldest in 321 and 322, the load waits in 324 to
  // 643.
  one = &add("a dependent load waits for its block", dependent, 764);
  one->rob_clog = 2, one->dependence = 320;
  // The load starts at 764: c 766, the addition c = r = 767.
  one = &with_scheme("a dependent load waits for the whole copy", Scheme::dma, dependent,
                     no_walks(), 768);
  one->rob_clog = 2, one->dependence = 440;
  // Likewise; it waits behind the copy, the oldest from 321 to 763.
  one = &with_scheme("a dependent load behind a copy", Scheme::copy_engine, dependent, no_walks(),
                     768);
  one->rob_clog = 443, one->dependence = 0;
  one =
      &with_scheme("perfect granularity", Scheme::perfect_granularity, dependent, no_walks(), 768);
  one->rob_clog = 443, one->dependence = 0;
  one = &with_scheme("perfect pipeline", Scheme::perfect_pipeline, dependent, no_walks(), 764);
  one->rob_clog = 2, one->dependence = 320;
  one = &with_scheme("perfect cache", Scheme::perfect_cache, dependent, no_walks(), 764);
  one->rob_clog = 2, one->dependence = 320;
  // The last block: c 766, r 767.
  add("a dependent load of the last block", one_copy(256).load(target + 255 - 7, r1).add(r1), 768);
  // Stores wait for source and destination, oldest in 324 to 643: c = r = 645; e 644.
  add("a store to the source", one_copy(64).store(source + 8), 646).dependence = 320;
  add("a store to the destination", one_copy(64).store(target + 8), 646).dependence = 320;
  // A load of the same instruction does not wait with it: c 645 all the same.
  add("a store to the destination beside a load",
      one_copy(64)
          .warm(data_page(0), 64)
          .instruction(InstructionClass::simple, 0, 0,
                       {MicroTrace::reference(data_page(0), 8, false),
                        MicroTrace::reference(target, 8, true)}),
      646)
      .dependence = 320;
  // Independent: c 320, r 323.
  add("a store elsewhere", one_copy(64).warm(target + 64, 64).store(target + 64), 644).dependence =
      0;
  // Loads of the source do not wait: i 319, q 329, c 629; the copy's read comes with it: e 629
  // + 10.
  one = &add("a load of the source", one_copy(64).load(source), 639);
  one->dependence = 0, one->overtakes = true;

  // The second waits for the engine: s 644, v 646, there 957, e 967. The copy under way is oldest
  // in 321, 322, 644 and 645; it waits in 324 to 643.
  MicroTrace two = one_copy(64);
  two.copy(data_page(48), data_page(64), 64);
  one = &add("two copies", two, 967);
  one->rob_clog = 4, one->dependence = 0, one->engine = 320, one->copy_cycles = 646;
  // It starts when the first has retired: s 324, v 326, q 337, the bus after the first's: there
  // 674, e 684.
  one = &with_scheme("two copies at once", Scheme::perfect_pipeline, two, no_walks(), 684);
  one->rob_clog = 4, one->dependence = 0, one->engine = 0, one->copy_cycles = 323 + 360;
  // The first r 644; the second s 645, v 647, there 958, e 968, r 968.
  one = &with_scheme("two copies that retire late", Scheme::copy_engine, two, no_walks(), 969);
  one->copy_cycles = 646;

  // The second copy, in the L2: s 644, v 646, e 667. The load of the first one's destination starts
  // at 644, c 646, though the second is older than it, too; the next i 646, c 956; the last c = r =
  // 1266.
  const auto behind_two = [](Affinities affinities) {
    MicroTrace program = one_copy(64, affinities);
    program.warm(data_page(48), 64).warm(data_page(64), 64);
    return program.copy(data_page(48), data_page(64), 64);
  };
  MicroTrace chain = behind_two({});
  chain.load(target, r1).load(data_page(0), r1, r1).load(data_page(0) + 64, 0, r1);
  one = &add("a dependent load behind two copies", chain, 1267);
  one->copy_cycles = 323 + 23;
  // Neutral: the first e 684; the load of what is not in the caches starts then, c = r = 994.
  add("a dependent load behind two copies, neutral", behind_two(neutral).load(target), 995);
  // Another virtual page for the destination's physical one: the same data. Starts at 644, r 646.
  MicroTrace alias = one_copy(64);
  alias.instruction(InstructionClass::simple, 0, 0,
                    {Reference{data_page(80), target + physical_offset, 8, false}});
  add("a load through another mapping", alias, 647).dependence = 320;

  // Perfect cache, with an L1 of two blocks and an L2 of four, out of which a copy of four takes
  // all else.
  const Parameters tiny = with([](Parameters& p) {
    p.l1d = {128, 2, 2};
    p.l2 = {256, 4, 8};
  });
  const std::uint64_t a = data_page(0);
  // The load r 629; s 630, v 632, q 643 + k, there 943 to 1063, e 1073. The other load is fetched
  // in 1075, i 1084: a hit in the caches that see no copies, c 1086; else from memory, c 1394.
  MicroTrace flushed;
  flushed.load(a).copy(target, source, 256).serialize().load(a);
  with_scheme("perfect cache: in the L1 still", Scheme::perfect_cache, flushed, tiny, 1087);
  with_scheme("no perfect cache", Scheme::fast_bci, flushed, tiny, 1395);
  // Loads c 629, 939, 1249; s 1250, e 1693; i 1704: in the L2 still, c 1714.
  with_scheme("perfect cache: in the L2 still", Scheme::perfect_cache,
              MicroTrace()
                  .load(a, r1)
                  .load(a + 64, r1, r1)
                  .load(a + 128, r1, r1)
                  .copy(target, source, 256)
                  .serialize()
                  .load(a),
              tiny, 1715);
  // A copy's source, there at 634, is in one set of caches (e 684: its destination goes to memory).
  // Serializing: i 684; the load f 686, i 695, hits, r 697, and so the block comes into the other
  // set, too. The second copy, s 698, v 700, q 711 + k, there 1011 to 1131, e 1141, takes it out of
  // the first set. Serializing: i 1141; the load i 1152, c 1154.
  with_scheme("perfect cache: what was hit stays", Scheme::perfect_cache,
              one_copy(64, {Affinity::cacheable, Affinity::neutral})
                  .serialize()
                  .load(source)
                  .copy(data_page(48), data_page(64), 256)
                  .serialize()
                  .load(source),
              tiny, 1155);

  // e 764; serializing: c 765; the load f 766, i 775: what was copied hits, c 777; else from
  // memory, as it is when a device has written it since.
  const MicroTrace copied = one_copy(256).serialize().load(source);
  with_scheme("perfect cache: what was copied", Scheme::perfect_cache, copied, tiny, 778);
  with_scheme("no perfect cache of what was copied", Scheme::fast_bci, copied, tiny, 1086);
  with_scheme("perfect cache: what a device wrote since", Scheme::perfect_cache,
              one_copy(256).serialize().device(source, 64, true).load(source), tiny, 1086);

  // The handler is fetched when the copy is done, 644: r 654.
  add("an interrupt during a copy", one_copy(64).interrupt().add(), 655);
  // The copy retires in 644: f 645.
  with_scheme("an interrupt behind a copy that retires late", Scheme::copy_engine,
              one_copy(64).interrupt().add(), no_walks(), 656);
  // i 644, c = r = 645.
  add("a fence during a copy", one_copy(64).fence(), 646).fence = 320;
  with_scheme("a fence behind a copy that retires late", Scheme::copy_engine, one_copy(64).fence(),
              no_walks(), 647);
  // The load r = 629, the fence i 630, r 631; s 632, v 634, there 945, e 955.
  add("a fence before a copy", MicroTrace().load(data_page(0)).fence().copy(target, source, 64),
      955);
  // A device's write of the destination, after the copy in the trace, waits for it, then takes its
  // block out: e 644; the load (behind a serializing instruction: i 655) misses: 965.
  add("a device writes during a copy",
      one_copy(64).device(target, 64, true).serialize().load(target), 966);
  return cases;
}

}  // namespace bcisim::test
