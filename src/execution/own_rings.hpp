// The executor (execution.hpp) for the rings of this process, as movers and helping waiters use it.
#pragma once

#include "execution/execution.hpp"
#include "request/ring.hpp"

namespace haul {

// The next piece of a claimed chunk; false when it is over.
bool next_piece(Ring& ring, const ChunkRun& run, Piece* piece) noexcept;

// Reports a chunk that is over; the last one completes the request.
void report_chunk(Ring& ring, const ChunkRun& run) noexcept;

// Runs the rest of a claimed chunk on the calling thread, and reports it.
void finish_here(Ring& ring, ChunkRun& run) noexcept;

// Runs a claimed chunk on the calling thread, whatever engine the plan named, and reports it.
void run_here(Ring& ring, const Job& job, unsigned chunk) noexcept;

// Fails a claimed chunk of which nothing was moved, because the worker may not do what was asked.
void refuse_here(Ring& ring, const Job& job, unsigned chunk) noexcept;

// As run_here(), for a chunk whose worker has died: continues from the last visible block, so that
// nothing that was visible is written again.
void resume_here(Ring& ring, const Job& job, unsigned chunk) noexcept;

// The same where nobody here can move it: fails the chunk with Code::io, good as far as its blocks
// were visible.
void abandon_here(Ring& ring, const Job& job, unsigned chunk) noexcept;

// Ends a request all of whose chunks have been reported, by a worker that died before it could: the
// notification, the completion (once, whatever the dead worker had done of it), the state.
void end_for_the_dead(Ring& ring, const Job& job, bool failed) noexcept;

}  // namespace haul
