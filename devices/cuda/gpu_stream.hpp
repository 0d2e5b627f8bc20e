// One stream of a GPU's, for copies in one direction, and the copies that are under way on it.
//
// A copy whose memory on the host's side is pinned, and one within GPUs, goes straight: one call of
// the driver. Any other goes through the slots, a part at a time:
//
//   to the GPU:    the CPU fills a slot   -> the stream copies it to the GPU
//   from the GPU:  the stream fills a slot -> the CPU copies it to where it belongs
//
// The CPU's part is done by whoever drives the engine, after his turn, and by several threads at
// once (take_staging()); all else happens in poll(), with the turn. Slots pass on in the order in
// which they were taken, and a stream executes in order, so what is good of a copy grows from its
// front. What was handed to the stream is over when its event says so: the oldest is asked for.
//
// A slot is filled as far as suits the request: a short one goes in parts, so that the CPU and the
// copy engine overlap, and a long one in whole slots, since the copy engine rests between two
// parts. There are few slots until more threads stage at once than these can keep busy.
//
// Nothing here blocks: the driver's calls put work into a queue, as the memory is pinned. Only
// taking more slots does, for some milliseconds, once or twice in a process that has many movers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "devices/cuda/slots.hpp"
#include "engine/engine.hpp"

namespace haul::cuda {

enum class GpuWay : std::uint8_t { in, out, within };

// A piece on a stream. `host` is its side in this process's memory; `within`: the source.
struct GpuCopy {
  std::uint64_t tag = 0;
  Pointer device = 0;
  std::uintptr_t host = 0;
  std::size_t length = 0;
  std::size_t whole_bytes = 0;  // of the request, to which this piece belongs
  Watermark watermark;
  bool straight = true;
  Context source_context = nullptr, context = nullptr;  // of two GPUs that differ
  // Bytes for which a slot or the stream has been taken, and those that are good.
  std::size_t begun = 0, good = 0;
  unsigned parts = 0;  // of it, with the stream, or in slots
  Code code = Code::ok;
};

class GpuStream {
 public:
  static constexpr unsigned depth = 16;  // copies
  static constexpr std::size_t streamed_from_bytes = std::size_t{1} << 20;

  // Makes the stream and its events; the GPU's context is current. success, or why not.
  Result open(const Driver& driver, GpuWay way);
  // Gives it so many slots in all, while none is in use; those that it has stay, of the same size,
  // since giving pinned memory back may wait for all that the GPU is at. Context current. (No room:
  // it keeps those that it had.)
  Result set_slots(unsigned count, std::size_t bytes);
  // From the GPU: whether the CPU empties slots past its caches, into requests that would not stay
  // in the nearest ones. (To the GPU it is all the same.)
  void stream_out(bool streams) { streams_out_ = streams; }
  // How many it may have in time.
  void limit_slots(unsigned most) { most_slots_ = most; }
  // Gives them back. Context current; no copy is under way.
  void free_slots();
  unsigned slots() const { return slots_.count(); }
  std::size_t slot_bytes() const { return slot_bytes_; }

  // ---- one thread at a time, with the GPU's context current where the driver may be called ----
  bool has_room() const { return used_ != all; }
  bool idle() const { return used_ == 0; }
  // Takes a copy, for which there is room; a straight one goes to the driver at once. success; else
  // the GPU is dead, and the copy has been taken all the same.
  Result take(const GpuCopy& copy);
  // Moves all on, as far as it has come. success; else the GPU is dead.
  Result advance();
  // The copies that have ended.
  std::size_t finish(Finished* finished, std::size_t most);
  // Something for the CPU to do now; no context is needed.
  bool take_staging(StagingCopy* copy);
  // The GPU is dead: what the stream has is over, and what the CPU is at ends.
  void die();
  // Nothing more begins. True: neither the stream nor a CPU has anything, and all copies are
  // forgotten; false: those are reported as they end.
  bool stop();

 private:
  struct StreamPart {
    unsigned copy = 0;
    int slot = -1;  // -1: straight
  };
  static constexpr unsigned all = (1u << depth) - 1, most_parts = depth + StagingSlots::most;

  Event event_of(const StreamPart& part);
  Result enqueue(unsigned number, int slot, std::size_t offset, std::size_t bytes);
  StagingSlot* begin_slot();
  std::size_t part_bytes(const GpuCopy& copy) const;
  void note_want_of_slots();
  void take_more_slots();
  Result pass_filled_slots();
  Result pass_free_slots();
  void drop(StagingSlot& slot);
  void end_arrived_slots();
  void end_emptied_slots();
  Result look_at_stream();
  void end_part(unsigned number, std::size_t bytes);
  void leave_queue();
  void fail(unsigned number, Code code);
  void fail_all();

  const Driver* driver_ = nullptr;
  GpuWay way_ = GpuWay::in;
  Stream stream_ = nullptr;
  GpuCopy copies_[depth];
  Event events_[depth] = {};  // of straight ones
  unsigned used_ = 0;         // a bit a copy
  // Numbers of those that go through slots and have not begun as a whole, in order.
  unsigned waiting_[depth] = {};
  unsigned first_waiting_ = 0, waiting_count_ = 0;
  StreamPart parts_[most_parts];  // with the stream, in order
  unsigned first_part_ = 0, part_count_ = 0;
  StagingSlots slots_;
  void* blocks_[5] =
      {};  // of pinned memory, in which they lie: one, and one each time they doubled
  unsigned block_count_ = 0;
  std::size_t slot_bytes_ = 0;
  unsigned most_slots_ = 0;
  bool wants_slots_ = false, streams_out_ = false;
  bool dead_ = false;
};

}  // namespace haul::cuda
