// What the MPI programs of haul's benchmarks share: the clock, pinning, and how they fail.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Pins this process to the CPU of its rank in "0,1,...": rank r takes entry r modulo their number.
// Finds its rank in the launcher's environment, and so works before MPI_Init(). An empty list pins
// nothing.
void pin_to(const char* cpus);

// Ends all ranks with one line on standard error and a status that the launcher passes on.
void fail(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));

double now_us(void);

// Zeroed memory, aligned to a cache line; free() returns it. Ends all ranks if there is none.
void* allocate(size_t bytes);
