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

inline constexpr unsigned most_descriptors = 16;  // of a batch

// What the device does with each part, one after the other: the compare only on queues that verify.
enum class PartStep : std::uint8_t { move, compare };

// How a step of a part ended.
enum class Ended : std::uint8_t {
  well,
  at_a_page,  // that is not there: to be populated, then the rest is handed over again
  not_begun,  // its batch ended before, or it was not handed over yet
  differing,  // the compare found other bytes than were to be there
  badly,
};

// Each is a descriptor.
constexpr unsigned steps_of_a_part(const WorkQueue& queue) {
  return queue.verifies ? 2 : 1;
}
// The longest piece that the queue takes.
constexpr std::size_t most_bytes_of_a_piece(const WorkQueue& queue) {
  return queue.most_transfer *
         std::max(std::min(queue.most_batch, most_descriptors) / steps_of_a_part(queue), 1u);
}

// Trivially constructible, and all zeros at first. The device writes to `ends` and `batch_end`,
// each in 32 bytes of its own, and reads the descriptors until they have ended.
struct Parts {
  // Of one part after the other, and of each its steps.
  alignas(64) dsa_hw_desc list[most_descriptors];
  alignas(64) dsa_hw_desc batch;
  alignas(32) dsa_completion_record ends[most_descriptors];
  alignas(32) dsa_completion_record batch_end;

  Piece piece;
  std::size_t part_bytes;  // of each but the last
  unsigned count;
  unsigned steps;          // of each part
  unsigned part;           // the first that is not whole
  PartStep step;           // of that part: the one that has not ended well
  std::size_t step_bytes;  // of that part: for which that step is done
  bool in_batch;           // the device has, or is to be given, all of them; else that step alone
  unsigned tries_left;     // to hand over a rest
  unsigned idle_tries;     // in a row that brought nothing

  // The piece as parts of at most `part_bytes`, nothing of it with the device.
  void begin(const Piece& whole, const WorkQueue& queue);
  // What the device is to be given now: all steps in a batch, or the rest of the one at `step`. Its
  // completion record is cleared.
  const dsa_hw_desc& describe(const WorkQueue& queue);
  // Of what was handed over: has its completion record been written?
  bool has_ended() const;
  // While the device has a batch: publishes the parts from the front that have ended well.
  void show_progress();
  // After has_ended(): goes past what is whole, publishing it. What became of the step at which
  // that stops; `well`: the whole piece is.
  Ended look();
  // Makes pages for the rest of this step, a few at a time: those of the side at which the device
  // has stopped, or of both that it compares. ok; fault: there is no such memory; io: it was tried
  // too often.
  Code mend();
  // What is good of the piece from its front: on queues that verify, what was compared.
  std::size_t whole_bytes() const;

 private:
  unsigned place_of(unsigned number, PartStep which) const {
    return number * steps + (which == PartStep::compare ? 1 : 0);
  }
  std::size_t bytes_of(unsigned number) const;
  // Of the piece from its front: for which this step is done.
  std::size_t reached_bytes() const { return part * part_bytes + step_bytes; }
  void fill_in(unsigned number, PartStep which, std::size_t done, const WorkQueue& queue);
  void describe_compare(dsa_hw_desc& descriptor, std::size_t at) const;
  void advance();
  Ended judge();
  Code populate(std::uintptr_t side, int advice) const;
  void publish();
};

}  // namespace haul::dsa
