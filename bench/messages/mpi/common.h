// What the MPI programs of haul's benchmarks share: the clock, pinning, and how they fail.
#pragma once

#include <stdint.h>

// Pins this process to the CPU of its rank in "0,1,...": rank r takes entry r modulo their number.
// Works before MPI_Init(), by the launcher's environment; with an empty list it does nothing.
void pin_to(const char* cpus);

// Ends all ranks with one line on standard error, and a status that the launcher passes on.
void fail(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));

double now_us(void);
