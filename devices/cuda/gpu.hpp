// One GPU of this process: its primary context, which it shares with the program's CUDA runtime,
// and three streams of haul's own, so that copies in both directions and within the GPU go on side
// by side and wait for none of the program's streams.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "devices/cuda/gpu_stream.hpp"

namespace haul::cuda {

// What haul measured when it opened the GPU, in bytes/ns.
struct GpuFigures {
  double in = 0, out = 0;                // through slots
  double pinned_in = 0, pinned_out = 0;  // straight; 0: memory could not be registered
  // Registering memory and giving it back: what it takes whatever the length, in ns, and the rest;
  // 0: it was not measured.
  double pin_start_ns = 0, pin = 0;
};

class Gpu {
 public:
  // Context and streams. False, and why not.
  bool open(const Driver& driver, int ordinal, char* sentence, std::size_t sentence_bytes);
  // Of one that cannot be used after all, and has nothing under way: gives back slots and context.
  // (Streams and events go with the context.)
  void close();
  // Slots for both directions, the first ones. False: there is no pinned memory for them, and it
  // has none.
  bool set_slots(unsigned count, std::size_t bytes);
  // How many each direction may have in time, as more threads stage at once.
  void limit_slots(unsigned most);

  int ordinal() const { return ordinal_; }
  const char* name() const { return name_; }
  Context context() const { return context_; }
  GpuStream& stream(GpuWay way) { return streams_[static_cast<unsigned>(way)]; }
  GpuFigures figures;

  // ---- one thread at a time ----
  // Looks a piece's sides up. ok, and where pinned memory begins that has all of [host, host +
  // bytes), 0 if none has (pinned may be nullptr); fault: the GPU does not reach [device, device +
  // bytes) as memory of its own; io: it has died.
  Code examine(Pointer device, std::uintptr_t host, std::size_t bytes, Pointer* pinned);
  bool has_room(GpuWay way) { return stream(way).has_room(); }
  // A copy on a stream that has room. (If the GPU is dead, poll() says so of it.)
  void take(GpuWay way, const GpuCopy& copy);
  bool is_idle() const { return streams_[0].idle() && streams_[1].idle() && streams_[2].idle(); }
  std::size_t poll(Finished* finished, std::size_t most);
  bool take_staging(StagingCopy* copy);
  bool stop();

  // ---- any thread ----
  bool is_dead() const { return dead_.load(std::memory_order_acquire); }
  // Why; it is dead.
  const char* why() const { return why_; }

 private:
  void die(Result result);
  const Driver* driver_ = nullptr;
  int ordinal_ = 0;
  char name_[48] = {};
  DeviceNumber device_ = 0;
  Context context_ = nullptr;
  GpuStream streams_[3];
  std::atomic<bool> dead_{false};
  char why_[176] = {};  // written before `dead_` (release)
};

// The GPU's context as the calling thread's current one, for as long as the object lives; then
// whatever the program's was.
class InContext {
 public:
  InContext(const Driver& driver, Context context)
      : driver_(driver), result_(driver.push_current(context)) {}
  ~InContext() {
    Context popped = nullptr;
    if (result_ == success) driver_.pop_current(&popped);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  Result result() const { return result_; }

 private:
  const Driver& driver_;
  Result result_;
};

}  // namespace haul::cuda
