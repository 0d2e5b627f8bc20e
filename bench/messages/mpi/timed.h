// How long a rank has been inside of MPI's calls.
//
// The program's own definitions of the calls (timed.c) add up their time and pass on to the
// library's. A wait for a peer that is late counts as well, so the share of communication is the
// most that a faster transport can gain.
#pragma once

// For one thread that calls MPI.
void reset_comm_time(void);
double comm_time_us(void);

// The mean over all ranks of the share that `comm_us` is of `total_us`. All ranks must call it.
double mean_comm_share(double comm_us, double total_us);
