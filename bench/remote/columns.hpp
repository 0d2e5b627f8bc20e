// Columns that the suites of remote atomics have in their tables.
#pragma once

#include "bench/kit/suite.hpp"

namespace haul::bench::column {

inline constexpr Column responder{"responder", "responder", Unit::text},
    home_core{"mode", "home core", Unit::text}, receive{"placement", "receive", Unit::text},
    rate{"rate_per_s", "per s", Unit::count}, median{"median_us", "median", Unit::us},
    p99{"p99_us", "p99", Unit::us}, to_host{"ratio_to_best_host", "of best host", Unit::ratio},
    to_host_q25{"ratio_to_best_host_q25", "25 %", Unit::ratio},
    to_host_q75{"ratio_to_best_host_q75", "75 %", Unit::ratio},
    bystander{"bystander_ratio", "bystander", Unit::ratio},
    bystander_q25{"bystander_ratio_q25", "25 %", Unit::ratio},
    bystander_q75{"bystander_ratio_q75", "75 %", Unit::ratio},
    process{"home_process_share", "process", Unit::ratio},
    softirq{"home_softirq_share", "softirq", Unit::ratio};

}  // namespace haul::bench::column
