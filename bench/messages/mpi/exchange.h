// The exchanges that are measured. Each rank's areas consist of pieces of the message's size.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "bench/messages/mpi/buffers.h"

enum { RATE_WINDOW = 64, BANDWIDTH_WINDOW = 16 };
// In place of the rank that a piece comes from: its 64-bit words are the sums of all ranks' words.
enum { SUM_OF_ALL = -1 };

struct Side {
  int rank, ranks;
  size_t bytes;  // of a message
  // Called around the communication of each exchange, where a program would write and read; may be
  // null.
  void (*produce)(void* context, struct Areas areas);
  void (*consume)(void* context, struct Areas areas);
  void* context;
};

struct Test {
  const char* name;
  bool pair;      // only ranks 0 and 1 take part
  bool rank0;     // rank 0's clock tells the time; else the slowest rank's
  double one_in;  // an exchange is this many times what is reported (2: there and back)
  double moved;   // messages that a rank sends and receives in what is reported, for the bandwidth
  // Pieces that a rank sends and receives.
  int (*pieces_out)(int rank, int ranks);
  int (*pieces_in)(int rank, int ranks);
  // Where piece `piece` of a rank's in-area comes from.
  void (*origin)(int rank, int ranks, int piece, int* from, int* from_piece);
  void (*run)(const struct Side* side, struct Areas areas);
};

extern const struct Test tests[];
extern const int tests_count;
const struct Test* find_test(const char* name);  // null if there is none
double moved_messages(const struct Test* test, int ranks);
