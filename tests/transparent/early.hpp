// What a library found out before main().
#pragma once

extern "C" {
// Chosen by a resolver (IFUNC) that copies a few bytes to decide; 42 if those came out right.
int early_answer();
// How many large calls of its constructor came out wrong.
int early_faults();
}
