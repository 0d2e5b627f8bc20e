// How a descriptor reaches a work queue: by one store of 64 bytes to the queue's page, the portal,
// or by write() to the queue's file, where the kernel hands it on.
//
// A dedicated queue drops what it has no room for, so whoever submits counts; a shared one says
// that it is full. The device may look at a descriptor, and at the memory that it names, from
// submit() on: what was written before is visible to it.
#pragma once

#include <linux/idxd.h>

#include <cstddef>
#include <cstdint>

#include "devices/dsa/work_queue.hpp"

namespace haul::dsa {

inline constexpr std::size_t portal_bytes = 4096;

enum class Taken : std::uint8_t { yes, full, broken };

// All zeros (as after a fork, see pieces.cpp), it takes nothing. One thread at a time.
class Portal {
 public:
  // False: neither way is open to this process.
  bool open(const WorkQueue& queue, const Sentence& sentence);
  Taken submit(const dsa_hw_desc& descriptor);
  // Where the kernel hands on descriptors it refuses those that name others.
  bool takes_batches() const { return way_ != Way::kernel; }
  const char* way_text() const;

 private:
  enum class Way : std::uint8_t {
    none,
    store,    // movdir64b: dedicated queues
    enqueue,  // enqcmd: shared queues
    words,    // eight stores, the first word last: a stand-in, which waits for it
    kernel,   // write()
  };

  static Way way_to(const WorkQueue& queue);

  unsigned char* page_ = nullptr;
  unsigned next_slot_ = 0;
  int descriptor_ = -1;
  Way way_ = Way::none;
};

}  // namespace haul::dsa
