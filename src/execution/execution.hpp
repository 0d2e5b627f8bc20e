// The executor: how a request becomes bytes and comes to one end, whoever carries it out. A mover,
// a waiter that helps, the thread that asked and the node's service all take the same four steps:
//
//   next      The rest of a chunk, as far as it is contiguous on both sides, becomes a Piece for an
//             engine. A chunk belongs to the worker that has claimed it (Tenancy::claim) until its
//             report.
//   moved     The engine says how many bytes are good. It comes first; what it leaves undone is the
//             CPU's, where that may take over.
//   report    The chunk is done; or it has failed, which is noted before. One report is the last:
//             whoever makes it (Tenancy::finish) has seen all the others' bytes, and completes.
//   complete  The notification word, then the completion's entry, then the state, so that whoever
//             sees one of them sees the bytes (paper 004, 2.2: set after the data). The state is
//             last, since it gives the slot back: its owner may refill it at once.
//
// What is different is in whose memory the request lies, which an Origin knows: how the words of a
// request are read and checked, where a failure is noted, how the end is told. There are three:
// rings of this process (own_rings.cpp), a request on the stack of the thread that asked
// (caller.cpp), and rings of another process, which may be hostile (service/copying/flight.cpp).
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "completion/ledger.hpp"
#include "engine/registry.hpp"
#include "request/ring.hpp"

namespace haul {

// Bytes of a request that are contiguous on both sides.
struct Stretch {
  std::uintptr_t dst = 0, src = 0;
  std::size_t length = 0;
  std::size_t before = 0;  // those of them in front of `dst` and `src`
};

// One claimed chunk, and how far it has come. Offsets count from the request's first byte. The
// claim pins the request's slot, so what the job names there stays as it is until the report.
struct ChunkRun {
  Job job;  // its `engine` becomes the CPU once that takes over
  unsigned chunk = 0;
  std::size_t begin = 0, at = 0, end = 0;
  Code code = Code::ok;

  ChunkRun() noexcept = default;
  ChunkRun(const Job& what, unsigned which) noexcept
      : job(what),
        chunk(which),
        begin(what.chunks.begin(which)),
        at(begin),
        end(what.chunks.end(which)) {}

  std::size_t whole_bytes() const noexcept { return end - begin; }
  bool over() const noexcept { return code != Code::ok || at >= end; }

  Watermark watermark(const Tenancy& tenancy) const noexcept {
    return Watermark{&tenancy.watermarks->word[chunk], std::uint64_t{tenancy.generation} << 32,
                     at - begin, job.chunks.block_log2};
  }

  // Describes the piece at `stretch`, which begins at `at`.
  void describe(const Stretch& stretch, const Watermark& watermark, Piece* piece) const noexcept {
    piece->operation = job.operation;
    piece->dst_affinity = job.dst_affinity;
    piece->src_affinity = job.src_affinity;
    piece->pattern_bytes = job.pattern_bytes;
    piece->checked = job.checked;
    piece->dst_space = job.dst_space;
    piece->src_space = job.src_space;
    piece->dst = stretch.dst;
    piece->src = stretch.src;
    piece->length = std::min(end - at, stretch.length);
    piece->whole_bytes = job.chunks.length;
    piece->bytes_before = stretch.before;
    piece->bytes_behind = stretch.length - piece->length;
    piece->watermark = watermark;
    if (job.operation == Operation::fill) piece->pattern = pattern_at(job.src_or_pattern, at);
  }

  // Notes how an engine has ended a piece. (The service counts for itself, and has no CPU to fall
  // back to: it gives back what it cannot reach.)
  void advance(const Outcome& outcome) noexcept {
    at += outcome.good_bytes;
    code = outcome.code;
  }
  // The same for this process's engines: counts the piece, and gives what is left undone to the
  // CPU.
  void moved(const Outcome& outcome) noexcept {
    count_moved(job.engine, outcome.good_bytes);
    advance(outcome);
    if (code != Code::ok && fall_back()) code = Code::ok;
  }
  // The engine refused the piece because it is dead: the CPU goes on, or the chunk fails.
  void engine_died() noexcept {
    if (!fall_back()) code = Code::io;
  }

  // The worker that had claimed it is gone: continues from where the watermark says that it had
  // come to.
  void resume(const Tenancy& tenancy) noexcept {
    at = begin + tenancy.visible_in_chunk(job.chunks, chunk, 0);
  }
  // The same where nobody here can move it: fails the chunk, good as far as its watermark shows.
  void abandon(const Tenancy& tenancy, Code why) noexcept {
    resume(tenancy);
    code = why;
  }

 private:
  bool fall_back() noexcept {
    if (job.engine == cpu_index || job.checked ||
        !cpu_engine().reaches(job.operation, job.dst_space, job.src_space))
      return false;
    job.engine = cpu_index;
    return true;
  }
};

// In whose memory requests lie. One object serves one ring, or one request.
template <class T>
concept Origin = requires(T origin, const Job& job, const ChunkRun& run, std::size_t at,
                          Stretch* stretch, const Extras& extras, Failure* failure,
                          const Completion& entry) {
  // What holds byte `at` of the request, from that byte on. False: nothing does (the process that
  // published it has broken the rules).
  { origin.stretch(job, at, stretch) } -> std::same_as<bool>;
  { origin.watermark(run) } -> std::same_as<Watermark>;

  // How a request failed, one of whose chunks has failed.
  { origin.failure_of(job) } -> std::same_as<Failure>;
  { origin.extras(job) } -> std::convertible_to<const Extras&>;
  // Stores the notification word with release, so that a thread that sees the value sees the data;
  // or says in *failure why it could not. False: the request comes to no end (as above).
  { origin.notify(job, extras, failure) } -> std::same_as<bool>;
  { origin.ticket(job, *failure) } -> std::same_as<Ticket>;
  origin.post(job, entry);
  // Ends the tenancy. Afterwards its slot may be another's.
  origin.end(job, *failure);
};

// Requests in a ring, of which several workers may each have a chunk.
template <class T>
concept RingOrigin = Origin<T> && requires(T origin, const Job& job, const ChunkRun& run) {
  { origin.tenancy(job) } -> std::same_as<Tenancy>;
  // Notes what is good of a failed chunk, before that is reported.
  origin.note_failure(run);
  // The words of the ring never stop changing: gives up.
  origin.give_up();
};

// The stretch of a job in a ring that holds byte `at`. `read` reads a word of a segment: segments
// of another process may change at any time, so each word is read once.
template <class Read>
bool stretch_at(Ring& ring, const Job& job, std::size_t at, Read read, Stretch* stretch) {
  const bool copy = job.operation == Operation::copy;
  if (job.segment_count == 0) {
    *stretch =
        Stretch{job.dst + at, copy ? job.src_or_pattern + at : 0, job.chunks.length - at, at};
    return true;
  }
  const Segment* const segments = ring.segments(job.segment_first);
  // The last segment that begins at `at` or before. (If the segments are in no order, any one.)
  std::uint32_t low = 0, high = job.segment_count;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (read(segments[middle].offset) <= at ? low : high) = middle;
  }
  const std::uint64_t offset = read(segments[low].offset);
  const std::uint64_t end =
      high == job.segment_count ? job.chunks.length : read(segments[high].offset);
  if (offset > at || end <= at || end > job.chunks.length) return false;
  const std::uint64_t skip = at - offset;
  *stretch = Stretch{read(segments[low].dst) + skip, copy ? read(segments[low].src) + skip : 0,
                     static_cast<std::size_t>(end - at), static_cast<std::size_t>(skip)};
  return true;
}

// False when the chunk is over.
template <Origin From>
bool next(From& origin, const ChunkRun& run, Piece* piece) {
  Stretch stretch;
  if (run.over() || !origin.stretch(run.job, run.at, &stretch)) return false;
  run.describe(stretch, origin.watermark(run), piece);
  return true;
}

// Moves the whole chunk on the calling thread. An asynchronous engine is for movers: the CPU takes
// its place.
template <Origin From>
void move_here(From& origin, ChunkRun& run) {
  if (is_asynchronous(run.job.engine)) run.engine_died();
  Piece piece;
  while (next(origin, run, &piece)) {
    Outcome outcome;
    if (engine_at(run.job.engine).submit(piece, 0, outcome) == Submitted::finished) {
      run.moved(outcome);
    } else {
      run.engine_died();
    }
  }
}

// The last finisher's duties. `failed`: some chunk has failed.
template <Origin From>
void complete(From& origin, const Job& job, bool failed) {
  Failure failure{Code::ok, job.chunks.length};
  if (failed) failure = origin.failure_of(job);
  if (job.extras) {
    const Extras& extras = origin.extras(job);
    if (extras.notify != nullptr && !failed && !origin.notify(job, extras, &failure)) return;
    if (extras.post) {
      origin.post(job, Completion{origin.ticket(job, failure), extras.user_data, failure.good_bytes,
                                  failure.code, extras.callback, extras.context});
    }
  }
  origin.end(job, failure);
}

// Reports a chunk that is over; the last one completes the request. The slot is not pinned any
// more afterwards.
template <RingOrigin From>
void report(From& origin, const ChunkRun& run) {
  const bool failed = run.code != Code::ok;
  if (failed) origin.note_failure(run);
  const Tenancy::Finish finish = origin.tenancy(run.job).finish(run.chunk, failed, run.job.chunks);
  if (finish.gave_up) {
    origin.give_up();
  } else if (finish.last) {
    complete(origin, run.job, finish.failed);
  }
}

}  // namespace haul
