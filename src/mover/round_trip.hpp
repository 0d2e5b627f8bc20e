// How far apart two cores are: the time of a line's round trip between them.
#pragma once

namespace haul {

// Median round trip in ns between the calling thread and a thread on CPU `other` (-1: wherever it
// lands). A helper thread runs there for at most a millisecond, usually 30 us. 0 if no thread or no
// second core was to be had.
double round_trip_ns(int own_cpu, int other) noexcept;

}  // namespace haul
