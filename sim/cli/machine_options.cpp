#include <fmt/format.h>

#include "cli/commands.hpp"

namespace bcisim::cli {
namespace {

void add_size(CLI::App& command, const char* name, std::uint64_t& bytes, const char* what) {
  command
      .add_option_function<std::string>(
          name, [&bytes](const std::string& text) { bytes = parse_bytes(text); },
          fmt::format("{} (default: {}K)", what, bytes >> 10))
      ->group("Machine")
      ->type_name("SIZE");
}

template <class Value>
void add(CLI::App& command, const char* name, Value& value, const char* what) {
  command.add_option(name, value, what)->capture_default_str()->group("Machine");
}

}  // namespace

void add_machine_options(CLI::App& command, Parameters& p) {
  add(command, "--width", p.width, "Instructions fetched, dispatched and retired a cycle");
  add(command, "--rob", p.rob_entries, "Entries of the reorder buffer");
  add(command, "--lsq", p.lsq_entries, "Entries of the load/store queue");
  add(command, "--frontend-cycles", p.frontend_cycles, "From fetch to dispatch");
  add(command, "--predictor", p.predictor_entries, "Counters of the branch predictor");
  add(command, "--block-bytes", p.block_bytes, "A cache block");
  add_size(command, "--l1i", p.l1i.bytes, "L1 instruction cache");
  add_size(command, "--l1d", p.l1d.bytes, "L1 data cache");
  add_size(command, "--l2", p.l2.bytes, "L2 cache");
  add(command, "--l1i-ways", p.l1i.ways, "Associativity");
  add(command, "--l1d-ways", p.l1d.ways, "Associativity");
  add(command, "--l2-ways", p.l2.ways, "Associativity");
  add(command, "--l1i-cycles", p.l1i.latency, "Latency of a hit");
  add(command, "--l1d-cycles", p.l1d.latency, "Latency of a hit");
  add(command, "--l2-cycles", p.l2.latency, "Latency of a hit, beyond the L1's");
  add(command, "--mshrs", p.mshrs, "Misses under way at once");
  add(command, "--tlb", p.tlb_entries, "Entries of each TLB");
  add(command, "--walk-cycles", p.walk_cycles, "What a TLB miss costs");
  add(command, "--memory-cycles", p.memory_cycles, "Latency of memory");
  add(command, "--bus-bytes", p.bus_bytes_per_cycle, "Bytes that the bus carries a cycle");
  add(command, "--cst", p.cst_entries, "Page pairs that the engine has under way at once");
  add(command, "--engine-blocks", p.engine_parallel,
      "Blocks that the engine has under way at once");
  add(command, "--modulus-cycles", p.modulus_cycles, "The engine's address arithmetic, of a block");
  add(command, "--reads-destination", p.reads_destination,
      "A cacheable destination block in no cache is read though all of it is written");
  add(command, "--write-buffer", p.write_buffer_entries,
      "Entries of the write-combining buffer; 0: a block is done when the bus has carried it");
  add(command, "--shift-cycles", p.shift_cycles, "The engine's Select&Shift, of a block");
}

void check_machine(const Parameters& parameters) {
  const std::string wrong = why_wrong(parameters);
  if (!wrong.empty()) throw UsageError(wrong);
}

}  // namespace bcisim::cli
