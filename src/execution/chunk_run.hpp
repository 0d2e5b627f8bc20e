// A chunk on its way: cut into pieces, handed to an engine, reported. Movers and helping waiters
// share this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/engine.hpp"
#include "request/ring.hpp"

namespace haul {

// One claimed chunk. The claim pins the slot, so its parameters and segments stay as they are.
class ChunkRun {
 public:
  ChunkRun() noexcept = default;
  ChunkRun(Ring& ring, const Job& job, unsigned chunk) noexcept;

  // The next piece, in *piece; false when the chunk is through or has failed.
  bool next(Piece* piece) const noexcept;
  // How it ended. What an engine left undone is given to the CPU where that can take over.
  void moved(const Outcome& outcome) noexcept;
  // Goes on where the watermark says that whoever had claimed it had come to.
  void resume() noexcept;
  // Whoever had claimed it is gone, and nobody here can do it: it fails, good as far as its
  // watermark shows.
  void abandon(Code code) noexcept;
  // The engine refused because it is dead: go on with the CPU, or fail.
  void engine_died() noexcept;

  std::size_t engine() const noexcept { return engine_; }

  // Reports the chunk; the last one completes the request. The slot is not pinned any more
  // afterwards.
  void report() noexcept;

 private:
  bool fall_back() noexcept;

  Ring* ring_ = nullptr;
  Job job_;
  unsigned chunk_ = 0;
  std::size_t engine_ = 0;
  std::size_t begin_ = 0, at_ = 0, end_ = 0;
  Code code_ = Code::ok;
};

// Ends a request all of whose chunks have been reported, by one who died before it could: the
// notification, the completion (once, whatever the dead had done of it), the state.
void end_for_the_dead(Ring& ring, const Job& job, bool failed) noexcept;

// Runs a claimed chunk on the calling thread, whatever engine the plan named: an asynchronous one
// is for movers, so the CPU takes its place.
void run_here(Ring& ring, const Job& job, unsigned chunk) noexcept;

// Fails a claimed chunk, of which nothing was moved: the worker may not do what was asked.
void refuse_here(Ring& ring, const Job& job, unsigned chunk) noexcept;

// The same as run_here() for a chunk whose worker has died: from the last block that it showed on,
// so that nothing which was visible is written again.
void resume_here(Ring& ring, const Job& job, unsigned chunk) noexcept;

// The same where nobody here can do it: it fails with Code::io, good as far as its blocks were
// shown.
void abandon_here(Ring& ring, const Job& job, unsigned chunk) noexcept;

}  // namespace haul
