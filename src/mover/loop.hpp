// What a mover does with the rings: look at each in turn, claim a chunk, move it or hand it to an
// asynchronous engine.
#pragma once

#include <cstdint>

#include "mover/drift.hpp"
#include "mover/worker.hpp"
#include "request/rings.hpp"

namespace haul {

// One mover's view. Its rings' cursors begin at their present tails when it is made for a process
// that has rings already. Used by one thread.
class MoverLoop {
 public:
  // Forgets everything: the rings are another process's copies, or new.
  void begin(bool at_tails) noexcept;

  // Whether this mover is the one that drives asynchronous engines (engine.hpp: one thread at a
  // time).
  void drive_devices(bool yes) noexcept { drives_devices_ = yes; }

  DriftWatch drift;  // how far the submitters' lines come, by samples of round()

  // One round over all rings: at most one chunk of each. True if there was anything to do, or
  // something is under way or held back by a fence.
  bool round() noexcept;

 private:
  struct Flight {
    bool used = false;
    ChunkRun run;
  };
  static constexpr unsigned max_flights = 16;

  bool visit(std::uint32_t index, Ring& ring) noexcept;
  bool poll_flights() noexcept;
  // Hands on the next piece of a chunk; ends the chunk when there is none.
  void proceed(Flight& flight) noexcept;
  Flight* free_flight() noexcept;

  std::uint64_t cursor_[max_rings] = {};  // the next seq to look at; 0: not looked at yet
  Flight flights_[max_flights];
  unsigned in_flight_ = 0;
  bool drives_devices_ = true;
};

}  // namespace haul
