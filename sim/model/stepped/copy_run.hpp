// A bulk copy from its fetch to its end: start-up, validation, finishing (paper 003, IV).
#pragma once

#include <functional>
#include <vector>

#include "model/bcie/bcie.hpp"
#include "model/scheme.hpp"
#include "model/stepped/memory.hpp"
#include "model/stepped/observer.hpp"
#include "model/tlb.hpp"

namespace bcisim {

// Does validating the page of that virtual address raise an exception now?
using PageFault = std::function<bool(std::uint64_t address, bool is_written)>;

// Does an access to physical addresses depend on a copy before the one that asks?
using IsPending = std::function<bool(std::uint64_t physical, unsigned bytes, bool is_store)>;

// What a copy works with.
struct CopySurroundings {
  const Parameters& parameters;
  const SchemeTraits& traits;
  Memory& memory;
  Tlb& data_tlb;
  Result& result;
  PageFault& page_fault;
  Observer& observer;
};

class CopyRun {
 public:
  // number: its place in the order of instructions.
  CopyRun(std::uint64_t number, const BulkCopy& copy, CopySurroundings& surroundings);

  std::uint64_t number() const { return number_; }
  const BulkCopy& copy() const { return copy_; }
  bool is_started() const { return state_ != State::waiting; }
  bool is_validated() const { return state_ == State::finishing || state_ == State::done; }
  bool is_done() const { return state_ == State::done; }

  // The engine is programmed; validation begins in this cycle. Not is_started().
  void start(Cycle now);
  // A cycle of the engine. Did something happen?
  bool step(Cycle now, const IsPending& is_pending);
  // When something may happen next.
  Cycle next_event(Cycle now) const;

  // Must a younger access wait?
  bool is_pending(std::uint64_t physical, unsigned bytes, bool is_store) const;

 private:
  enum class State { waiting, validating, finishing, done };
  // A destination block on its way.
  struct Move {
    enum class Stage { modulus, reading, shifting, writing, leaving };
    unsigned entry, index;  // CST entry; the block's index in its page pair
    BlockMove what;
    Stage stage;
    Cycle stage_ends;  // of modulus and shifting
    Access access;     // of the others
    bool written_in_caches = false;
    std::array<std::uint64_t, 2> read{};  // source blocks that it read itself
    unsigned read_count = 0;
  };

  bool validate(Cycle now);
  void unlock_pages();
  bool advance(Move& move, Cycle now);
  void read_sources(Move& move, Cycle now);
  void sources_read(Move& move, Cycle now);
  bool start_move(Cycle now, const IsPending& is_pending);
  void finish(Cycle now);
  void tell(Happening::Kind kind, Cycle now, const BlockMove& move) const {
    tell(kind, now, move.destination * with_.parameters.block_bytes + move.offset, move.bytes);
  }
  void tell(Happening::Kind kind, Cycle now, std::uint64_t physical = 0, unsigned bytes = 0) const {
    if (with_.observer) with_.observer({kind, now, number_, physical, bytes, false});
  }

  std::uint64_t number_;
  BulkCopy copy_;
  CopySurroundings& with_;
  Bcie engine_;
  State state_ = State::waiting;
  Cycle started_at_ = 0, validation_ends_ = 0;
  std::vector<std::uint64_t> locked_;  // translations

  std::vector<Move> moves_;  // in the order in which they began
  struct Pair {
    unsigned entry, next_block, blocks;
  };
  std::vector<Pair> pairs_;  // page pairs with blocks that have not begun
  // The source block that was read last: the next move may need it again.
  std::uint64_t last_source_ = ~std::uint64_t{0};
  Access last_read_;
};

}  // namespace bcisim
