// See micro_cases.hpp. f: fetched, d: dispatched, i: issues, c: complete, r: retires.
#include "unit/sim/micro_cases.hpp"

namespace bcisim::test {
namespace {

constexpr std::uint64_t first = 310;  // the first instruction's fetch without walks

}  // namespace

std::vector<MicroCase> core_cases() {
  std::vector<MicroCase> cases;
  const auto add = [&cases](std::string name, MicroTrace program, Parameters parameters,
                            std::uint64_t cycles) -> MicroCase& {
    cases.push_back(
        micro_case(std::move(name), Scheme::fast_bci, std::move(program), parameters, cycles));
    return cases.back();
  };

  // With walks: f 30 + 310 = 340, d 348, i 349, c = r = 350.
  add("one addition", MicroTrace().add(), Parameters{}, 351);
  // f 310, d 318, i 319, c = r = 320.
  add("one addition without walks", MicroTrace().add(), no_walks(), first + 11);
  add("as many additions as the width", MicroTrace().adds(4), no_walks(), first + 11);
  add("one more than the width", MicroTrace().adds(5), no_walks(), first + 12);
  // k complete at 320 + k: the eighth at 327.
  {
    MicroTrace program;
    for (int i = 0; i < 8; ++i) program.add(r1, r1);
    add("a chain of additions", program, no_walks(), 328);
  }
  // i 319, c 322; then 325, 328.
  add("a chain of multiplications", MicroTrace().multiply(r1, r1).multiply(r1, r1).multiply(r1, r1),
      no_walks(), 329);
  // The multiplication is complete at 322; the additions behind it, at 320, retire with it.
  add("retirement in order", MicroTrace().multiply().adds(3), no_walks(), 323);
  // Five are complete by 322: four retire then, the fifth at 323.
  add("retirement by the width", MicroTrace().multiply().adds(4), no_walks(), 324);
  // 16 in the first block, fetched in 310 to 313. The 17th asks in 314 for the second block:
  // fetched at 314 + 310 = 624, r = 634.
  add("a second block of instructions", MicroTrace().adds(17), no_walks(), 635).bus_blocks = 2;
  // The same with the second block in the L2: fetched at 314 + 2 + 8 = 324, r = 334.
  add("a second block of instructions in the L2", MicroTrace().warm(code + 64, 64).adds(17),
      no_walks(), 335);
  // The jump ends its group: the addition is fetched in 311, r = 321.
  add("a jump", MicroTrace().jump().add(), no_walks(), 322);
  // Counters begin weakly not taken: the branch (c 320) is predicted wrongly; the addition is
  // fetched in 321, r = 331.
  add("a wrongly predicted branch", MicroTrace().branch(true).add(), no_walks(), 332);
  add("a rightly predicted branch", MicroTrace().branch(false).add(), no_walks(), 321);
  // The branch waits for the multiplication (c 322): c 323; f 324, r = 334.
  add("a wrongly predicted branch that waits", MicroTrace().multiply(0, r1).branch(true, r1).add(),
      no_walks(), 335);
  // The branch at `code` comes three times: wrong (c 320), then right: f 321 (its group ends), f
  // 322; the addition f 323, r = 333.
  add("a branch is learnt",
      MicroTrace().branch(true).at(code).branch(true).at(code).branch(true).at(code + 32).add(),
      no_walks(), 334);

  // A reorder buffer of 4: the load (i 319, c = r = 629) and three additions fill it, and all four
  // retire in 629. The fifth: d 630, i 631, c = r = 632.
  add("a full reorder buffer", MicroTrace().load(data_page(0)).adds(4),
      with([](Parameters& p) { p.rob_entries = 4; }), 633);
  // Eight entries: stores f 310 and 311, i 319 and 320, c = r = 320 and 321; their block, the same
  // for all, is there at 320 + 310 = 630 and frees all entries. The ninth: d 630, i 631, c = r =
  // 632.
  {
    MicroTrace program;
    for (unsigned i = 0; i < 9; ++i) program.store(data_page(0));
    add("a full load/store queue", program, with([](Parameters& p) { p.lsq_entries = 8; }), 633);
  }
  // A load's entry is free in the cycle after its retirement. The eight loads are complete at 629
  // and retire in 629 (four) and 630. The ninth: d 630, i 631, hit: c = r = 633.
  {
    MicroTrace program;
    for (unsigned i = 0; i < 9; ++i) program.load(data_page(0));
    add("a load/store queue full of loads", program, with([](Parameters& p) { p.lsq_entries = 8; }),
        634);
  }
  // The code's first 144 bytes are in the L2: f 10 (four), 11, 12, 13; the second block is asked
  // for in 14: f 24 to 27; the third in 28: f 38 (the 33rd to 36th instruction). The load: i 19, c
  // = r = 329. It and three additions fill a reorder buffer of 4; 32 additions wait between fetch
  // and dispatch. The 37th instruction, in a block that is nowhere, finds room when the next four
  // are dispatched, in 330: f 640, r = 650.
  add("between fetch and dispatch",
      MicroTrace().warm(code, 144).load(data_page(0)).adds(35).at(code + 256).add(),
      with([](Parameters& p) { p.rob_entries = 4; }), 651);

  // The store: i 319, c 320. The load: i 319, starts at 320, takes 2, r = 322.
  add("a store forwards to a load", MicroTrace().store(data_page(0)).load(data_page(0)), no_walks(),
      323);
  // Multiplication c 322, store i 322, c 323, load c = r = 325.
  add("a load waits for a store's data",
      MicroTrace().multiply(0, r1).store(data_page(0), r1).load(data_page(0) + 4, 0, 0, 4),
      no_walks(), 326);
  // Other words are other data: the load goes to memory at 319, c = r = 629.
  add("a load of other words does not wait",
      MicroTrace().multiply(0, r1).store(data_page(0), r1).load(data_page(0) + 8), no_walks(), 630);

  // The load c = r = 629; the fence issues when it has retired: 630, c = r = 631; the addition,
  // complete long since, r = 631.
  add("a fence", MicroTrace().load(data_page(0)).fence().add(), no_walks(), 632);
  // Serializing: i 319, c 320; f 321, r = 331.
  add("a serializing instruction", MicroTrace().serialize().add(), no_walks(), 332);
  // The load r = 629; serializing: i 630, c = r = 631; f 632, r = 642.
  add("a serializing instruction behind a load", MicroTrace().load(data_page(0)).serialize().add(),
      no_walks(), 643);
  // r 320; the handler f 321, r = 331.
  add("an interrupt", MicroTrace().add().interrupt().add(), no_walks(), 332);
  // r 629; f 630, r = 640.
  add("an interrupt behind a load", MicroTrace().load(data_page(0)).interrupt().add(), no_walks(),
      641);
  // A load (i 319, c 629) gives r1 to an addition (c 630), and that r2 to a multiplication (c 633).
  add("results flow", MicroTrace().load(data_page(0), r1).add(r1, r2).multiply(r2), no_walks(),
      634);
  // The address is ready a cycle after issue: i 319, 320, 321; there 629, 669, 709.
  add("addresses that are stepped",
      MicroTrace().pop(data_page(0), r1).pop(data_page(0) + 64, r1).pop(data_page(0) + 128, r1),
      no_walks(), 710);
  // What was loaded is not: c 629, the addition 630.
  add("what is loaded beside them", MicroTrace().pop(data_page(0), r1, r2).add(r2), no_walks(),
      631);
  // A multiplication that loads: complete 3 - 1 after its load: 631.
  add("a multiplication of memory",
      MicroTrace().instruction(InstructionClass::multiply, 0, 0,
                               {MicroTrace::reference(data_page(0), 8, false)}),
      no_walks(), 632);
  return cases;
}

}  // namespace bcisim::test
