// A mover's rounds: it looks at each ring in turn, claims a chunk, and moves it or gives it to an
// asynchronous engine's channel (schemes MCNI and MCI of paper 000).
#pragma once

#include <cstdint>

#include "execution/channel.hpp"
#include "execution/execution.hpp"
#include "mover/cores/drift.hpp"
#include "request/rings.hpp"

namespace haul {

// One mover's view: a seat for each ring in use. Used by one thread.
class MoverLoop {
 public:
  // Forgets everything, as the child of a fork must: the rings are copies of another process's, or
  // new.
  void begin() noexcept;

  DriftWatch drift;  // how far the submitters' lines come, by samples of round()

  // One round over the rings in use: at most one chunk of each. True if there was anything to do,
  // or if something is under way or held back by a fence.
  bool round() noexcept;

  std::uint32_t seated() const noexcept { return seated_; }

 private:
  struct Seat {
    Ring* ring = nullptr;
    std::uint64_t cursor = 0;
  };
  static constexpr std::uint32_t first_seats = 32;

  void seat_rings(std::uint32_t version) noexcept;
  bool make_room(std::uint32_t wanted) noexcept;
  bool visit(Seat& seat) noexcept;
  bool take_chunk(Ring& ring, const Job& job, const Tenancy& tenancy, Channel* channel) noexcept;

  // Of two tables of `room_` seats one is in use, and the next one is made in the other. Where
  // `first_seats` are not enough they are mapped memory.
  Seat own_seats_[2][first_seats] = {};
  Seat* seats_ = nullptr;
  Seat* spare_ = nullptr;
  std::uint32_t room_ = 0;
  std::uint32_t seated_ = 0;
  std::uint32_t seated_version_ = 0;  // of the set of rings in use
};

}  // namespace haul
