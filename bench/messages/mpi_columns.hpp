// Columns that the suites with MPI have in their tables.
#pragma once

#include "bench/kit/columns.hpp"

namespace haul::bench::column {

inline constexpr Column mpi{"mpi", "MPI", Unit::text},
    transport{"transport", "transport", Unit::text}, ranks{"ranks", "ranks", Unit::count},
    test{"test", "test", Unit::text}, buffers{"buffers", "buffers", Unit::text},
    comm_share{"comm_share", "in MPI", Unit::ratio}, time{"median_us", "time", Unit::us},
    gbps{"gbps", "bandwidth", Unit::gbps}, to_native{"ratio_to_native", "of native", Unit::ratio},
    to_native_q25{"ratio_to_native_q25", "25 %", Unit::ratio},
    to_native_q75{"ratio_to_native_q75", "75 %", Unit::ratio};

}  // namespace haul::bench::column
