// One piece as the device has it: its parts, their descriptors and completion records, and how far
// it has come.
#pragma once

#include <linux/idxd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "devices/dsa/work_queue.hpp"
#include "engine/engine.hpp"

namespace haul::dsa {

inline constexpr unsigned most_parts = 16;

// How the device's copy of a part ended.
enum class Ended : std::uint8_t {
  well,
  at_a_page,  // that is not there: to be populated, then the rest is handed over again
  not_begun,  // its batch ended before
  badly,
};

// Trivially constructible, and all zeros at first. The device writes to `ends` and `batch_end`,
// each in 32 bytes of its own, and reads the descriptors until they have ended.
struct Parts {
  alignas(64) dsa_hw_desc list[most_parts];
  alignas(64) dsa_hw_desc batch;
  alignas(32) dsa_completion_record ends[most_parts];
  alignas(32) dsa_completion_record batch_end;

  Piece piece;
  std::size_t part_bytes;  // of each but the last
  unsigned count;
  unsigned part;           // the first that is not whole
  std::size_t good_bytes;  // of that part
  bool in_batch;           // the device has all of them, else that one, if any
  unsigned tries_left;     // to hand over a rest
  unsigned idle_tries;     // in a row that brought nothing

  // The piece as parts of at most `part_bytes`, nothing of it with the device.
  void begin(const Piece& whole, const WorkQueue& queue);
  // What the device is to be given now: all parts in a batch, or the rest of the one at `part`. Its
  // completion record is cleared.
  const dsa_hw_desc& describe(const WorkQueue& queue);
  // Of what was handed over: has its completion record been written?
  bool has_ended() const;
  // While the device has a batch: publishes the parts from the front that have ended well.
  void show_progress();
  // Goes past what is whole, publishing it. What became of the part at which that stops; `well`:
  // the whole piece is.
  Ended look();
  // Makes pages for the rest of this part, a few at a time: those of the side at which the device
  // has stopped. ok; fault: there is no such memory; io: it was tried too often.
  Code mend();
  std::size_t whole_bytes() const { return std::min(part * part_bytes + good_bytes, piece.length); }

 private:
  std::size_t bytes_of(unsigned number) const;
  void fill_in(unsigned number, std::size_t done, const WorkQueue& queue);
  Ended judge();
  void publish();
};

}  // namespace haul::dsa
