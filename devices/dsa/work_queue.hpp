// A work queue of a DSA device: which one it is, and what it takes. It is found by
// HAUL_ENGINE_DSA: a queue of Linux' idxd driver (find.cpp), or a file behind which a program
// stands for a device (stand_in.cpp). What follows does not tell them apart.
#pragma once

#include <cstddef>

namespace haul::dsa {

struct WorkQueue {
  char name[64] = {};     // wq0.1, or the file
  int descriptor = -1;    // open for reading and writing
  bool emulated = false;  // a stand-in's
  bool shared = false;    // by several processes: the device itself says when it is full
  bool blocks_on_fault = false;
  bool verifies = false;    // what was moved is then compared, by the device
  unsigned depth = 16;      // descriptors that it holds
  unsigned most_batch = 1;  // descriptors of a batch; 1: none
  std::size_t most_transfer = std::size_t{1} << 21;  // bytes of a descriptor
};

// Where a caller's sentence goes: why there is no such queue, and the remedy.
struct Sentence {
  char* text;
  std::size_t bytes;
  [[gnu::format(printf, 2, 3)]] void say(const char* format, ...) const;
};

// The work queue that the text names: "", "wq0.1" or "/dev/dsa/wq0.1" as below, else a stand-in's
// file. Words behind it, separated by blanks, say what is to be done with it: `verify`; and what a
// stand-in's device is like, as below. (`verify` alone: the first queue.)
bool open_work_queue(const char* text, WorkQueue& queue, const Sentence& sentence);
void close_work_queue(WorkQueue& queue);

// The first work queue for users that can be opened, or the one of that name ("" or "wq0.1").
bool find_work_queue(const char* name, WorkQueue& queue, const Sentence& sentence);

// The file is either memory of one page (a memfd, or one in /dev/shm) for a portal, or a pipe for
// submission by write().
bool open_stand_in(const char* path, WorkQueue& queue, const Sentence& sentence);
// A word of what the stand-in's device is like, where that is not as above: depth=N, batch=N,
// transfer=BYTES, shared, block_on_fault. False: it is none.
bool describe_stand_in(const char* word, WorkQueue& queue);

}  // namespace haul::dsa
