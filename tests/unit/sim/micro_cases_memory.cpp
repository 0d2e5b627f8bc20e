// See micro_cases.hpp. i: issues, c: complete, r: retires; q: asked for in memory. A block takes
// the bus for 40 cycles: of one asked for at q, q + 260 to q + 300 where the bus is free.
#include "unit/sim/micro_cases.hpp"

namespace bcisim::test {
namespace {

constexpr std::uint64_t a = data_page(0), b = data_page(1);

Parameters with_mshrs(unsigned mshrs) {
  return with([mshrs](Parameters& p) { p.mshrs = mshrs; });
}
// Caches of one set: two blocks in L1, four in L2.
Parameters tiny_caches() {
  return with([](Parameters& p) {
    p.l1d = {128, 2, 2};
    p.l2 = {256, 4, 8};
  });
}

}  // namespace

std::vector<MicroCase> memory_cases() {
  std::vector<MicroCase> cases;
  const auto add = [&cases](std::string name, MicroTrace program, Parameters parameters,
                            std::uint64_t cycles) -> MicroCase& {
    cases.push_back(
        micro_case(std::move(name), Scheme::fast_bci, std::move(program), parameters, cycles));
    return cases.back();
  };

  // With walks: i 349, translated 379, q 389, c = r = 689.
  add("a load from memory", MicroTrace().load(a), Parameters{}, 690).bus_blocks = 2;
  // i 319, q 329, c = r = 629.
  add("a load from memory without a walk", MicroTrace().load(a), no_walks(), 630);
  add("a load from the L2", MicroTrace().warm(a, 64).load(a), no_walks(), 330).bus_blocks = 1;
  // c 629; then a hit: 631.
  add("a load from the L1", MicroTrace().load(a, r1).load(a + 8, 0, r1), no_walks(), 632);
  // With a walk: i 349, c 349 + 30 + 1 = r = 380.
  add("a store of another page", MicroTrace().store(a), Parameters{}, 381);
  // One instruction that loads and stores: both walks are over at 379, the load is there at 689.
  add("a load and a store of other pages",
      MicroTrace().instruction(
          InstructionClass::simple, 0, 0,
          {MicroTrace::reference(a, 8, false), MicroTrace::reference(b, 8, true)}),
      Parameters{}, 690);
  // i 319, c = r = 320; to the cache then, which nobody awaits.
  add("a store", MicroTrace().store(a), no_walks(), 321);
  // q 329 both; the second's block takes the bus after the first's: 629 to 669.
  add("two misses share the bus", MicroTrace().load(a).load(a + 64), no_walks(), 670).bus_blocks =
      3;
  // One MSHR will do: the second comes with the first's block, c 629 both.
  add("two misses of one block", MicroTrace().load(a).load(a + 8), with_mshrs(1), 630).bus_blocks =
      2;
  // q 329 both, there 629 and 669. The third has an MSHR at 629: bus 889 to 929.
  add("MSHRs are few", MicroTrace().load(a).load(a + 64).load(a + 128), with_mshrs(2), 930);
  // Both blocks of a load: q 329, there 629 and 669.
  add("a load of two blocks", MicroTrace().load(a + 60), no_walks(), 670).bus_blocks = 3;
  // The store, r 320, q 330, has its block at 630. The load (after a multiplication, i 322) comes
  // with it: c = r = 630.
  add("a load comes with a store's fill", MicroTrace().store(a).multiply(0, r1).load(a + 8, 0, r1),
      no_walks(), 631);
  // Twice as wide a bus: 20 cycles a block; there 629 and 649.
  add("a wider bus", MicroTrace().load(a).load(a + 64),
      with([](Parameters& p) { p.bus_bytes_per_cycle = 3.2; }), 650);

  // Loads in a chain: three blocks through an L1 of two. c 629, 939, 1249; the first is in the L2
  // still: i 1249, c = r = 1259.
  add("out of the L1",
      MicroTrace().load(a, r1).load(a + 64, r1, r1).load(a + 128, r1, r1).load(a, 0, r1),
      tiny_caches(), 1260);
  // The L2's four ways hold the code's block and three of data. The fourth load, of `a + 192`, c
  // 1559, takes the code's out, the fifth, c 1869, the block of `a`. That again: c = r = 2179.
  {
    MicroTrace program;
    for (unsigned i = 0; i < 5; ++i) program.load(a + i * 64, r1, r1);
    program.load(a, 0, r1);
    add("out of the L2", program, tiny_caches(), 2180).bus_blocks = 7;
    // A store before them makes the first block dirty: it leaves the L1 for the L2, and that, when
    // enough others have come whatever the order, over the bus: c 629 + 6 x 310 = 2489, r = 2799.
    // On the bus: the code, seven, one back, one again.
    MicroTrace dirty;
    dirty.store(a + 32);
    for (unsigned i = 0; i < 7; ++i) dirty.load(a + i * 64, r1, r1);
    dirty.load(a, 0, r1);
    add("out of the L2 when dirty", dirty, tiny_caches(), 2800).bus_blocks = 10;
  }

  // The load r = 629; serializing: i 630, c 631. In 632 the device has written and the second load
  // is fetched: i 641, c = r = 951.
  add("a device writes", MicroTrace().load(a).serialize().device(a, 64, true).load(a), no_walks(),
      952)
      .bus_blocks = 3;
  // A device's read leaves the block: hit, c = r = 643.
  add("a device reads", MicroTrace().load(a).serialize().device(a, 64, false).load(a), no_walks(),
      644)
      .bus_blocks = 2;
  // Loads c 629 and 939; the store retires in 939 into the L1. Serializing: i 940, c 941. In 942
  // the device's read sends the block over the bus, and leaves it: f 942, i 951, hit, c = r = 953.
  add("a device reads what is dirty",
      MicroTrace().load(a, r1).load(b, r1, r1).store(a).serialize().device(a, 64, false).load(a),
      no_walks(), 954)
      .bus_blocks = 4;
  return cases;
}

}  // namespace bcisim::test
