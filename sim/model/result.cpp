#include "model/result.hpp"

#include <initializer_list>

namespace bcisim {

Result since(const Result& earlier, Result later) {
  for (std::uint64_t Result::*const field :
       {&Result::instructions, &Result::cycles, &Result::rob_clog_cycles,
        &Result::dependence_cycles, &Result::engine_cycles, &Result::fence_cycles, &Result::copies,
        &Result::copy_bytes, &Result::copy_cycles, &Result::branches, &Result::mispredicted,
        &Result::tlb_misses, &Result::accesses, &Result::l1_misses, &Result::l2_misses,
        &Result::harmful_l2_misses, &Result::copy_l2_misses, &Result::bus_blocks}) {
    later.*field -= earlier.*field;
  }
  return later;
}

}  // namespace bcisim
