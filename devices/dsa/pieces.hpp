// The pieces that are under way on work queues, each of which is a channel of the engine.
//
// A piece of no more bytes than a descriptor takes is one descriptor; a longer one is a batch of
// them, its parts. Where the queue verifies, each part is a move and then a compare, which waits
// for the move behind a fence in the batch, or is handed over when the move has ended where there
// are no batches; only what was compared counts as good. The device writes how each ended into a
// completion record, whose status is read with acquire order: what the descriptor moved is visible
// then. Where a page was missing the device has stopped there; the plug-in has the kernel make the
// pages (populate) and hands over the rest, a descriptor at a time. So of each piece the device has
// one descriptor of the queue, or none.
//
// Who distrusts the device stops it: it gets nothing more, but what it has cannot be taken back. A
// drain descriptor says when it has ended all of it; what has no completion record then was lost on
// the way, and is reported as failed.
#pragma once

#include "devices/dsa/portal.hpp"
#include "engine/engine.hpp"

namespace haul::dsa {

// Makes this queue, which it keeps, the next channel, of most_channels at most. False, and why not:
// there is no memory, or the queue cannot be submitted to.
bool begin_pieces(const WorkQueue& queue, const Sentence& sentence);
// The longest piece that all of them take, and how descriptors reach the first.
std::size_t most_bytes_of_piece();
const char* way_of_pieces();
// So many pieces of queues that verify were not what they were to be.
unsigned count_differing_pieces();

// As an asynchronous engine's (engine/engine.hpp); one thread at a time for each channel.
Submitted submit_piece(const Piece& piece, std::uint64_t tag, Outcome& outcome);
std::size_t poll_pieces(unsigned channel, Finished* finished, std::size_t most);
bool stop_pieces(unsigned channel);

}  // namespace haul::dsa
