// Columns that several suites have in their tables.
#pragma once

#include "bench/kit/suite.hpp"

namespace haul::bench::column {

inline constexpr Column placement{"placement", "cores", Unit::text},
    cache{"cache", "cache", Unit::text}, size{"size_bytes", "size", Unit::bytes},
    scheme{"scheme", "scheme", Unit::text}, mover{"mover", "mover", Unit::text},
    haul_ns{"haul_ns", "haul", Unit::ns}, memcpy_ns{"memcpy_ns", "memcpy", Unit::ns},
    copy_ns{"copy_ns", "copy", Unit::ns}, submit_ns{"submit_ns", "submit", Unit::ns},
    total_ns{"total_ns", "total", Unit::ns}, overlap{"overlap", "overlap", Unit::ratio},
    ratio{"ratio", "ratio", Unit::ratio}, ratio_q25{"ratio_q25", "25 %", Unit::ratio},
    ratio_q75{"ratio_q75", "75 %", Unit::ratio}, haul_gbps{"haul_gbps", "haul", Unit::gbps},
    memcpy_gbps{"memcpy_gbps", "memcpy", Unit::gbps}, speedup{"speedup", "speedup", Unit::ratio},
    speedup_q25{"speedup_q25", "25 %", Unit::ratio},
    speedup_q75{"speedup_q75", "75 %", Unit::ratio}, engine{"engine", "engine", Unit::text},
    registration{"registration", "registered", Unit::text},
    register_ns{"register_ns", "registering", Unit::ns},
    caller_cpu{"caller_cpu_ns", "caller CPU", Unit::ns},
    mover_cpu{"mover_cpu_ns", "mover CPU", Unit::ns},
    kernel_cpu{"kernel_cpu_ns", "kernel CPU", Unit::ns},
    device_cpu{"device_cpu_ns", "stand-in CPU", Unit::ns}, label{"label", "", Unit::text};

}  // namespace haul::bench::column
