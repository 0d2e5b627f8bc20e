// A channel: a queue of an asynchronous engine's, and the chunks that are under way on it (paper
// 001, V: a device's channel). An engine may have several, which work side by side: each request is
// given to one of them, and one request after another to the next.
//
// Whoever drives it gives it chunks that he has claimed, and polls; polling reports what has
// finished and hands on the next piece of a chunk. Any thread may drive, one at a time: a thread
// that finds another at it goes on with something else. A mover drives what it takes from the rings
// (scheme MCI of paper 000); while none is awake, whoever looks at a ticket does (SCI, drive.hpp).
//
// This is the one place where an engine is not trusted. One that dies, that finishes nothing for
// half of HAUL_MOVER_PATIENCE_MS though it is polled, or that reports what nobody gave it, is
// stopped, and the CPU of the thread whose turn it was does what is left: after its turn, since the
// program's memory may fault, and from the last visible block of each chunk on, since whoever waits
// for a range may have changed what is visible. Where no CPU reaches the memory, the request fails.
//
// What an engine wants the CPU to copy on the way (Engine::take_staging()) that thread does after
// its turn, too, one copy a turn, so that several threads may be at several.
#pragma once

#include <atomic>
#include <cstdint>

#include "execution/execution.hpp"
#include "memory/region_cache.hpp"
#include "request/ring.hpp"

namespace haul {

class Channel {
 public:
  static constexpr unsigned depth = 16;  // chunks

  // Any thread; relaxed: of the chunks under way, as they were when they were given to it.
  std::uint64_t queued_bytes() const noexcept {
    return queued_bytes_.load(std::memory_order_relaxed);
  }

  // Any thread: about how long the engine needs for these; 0: nobody knows.
  std::uint64_t left_ns() const noexcept;

  // ---- with the turn (ChannelTurn) ----

  bool has_room() const noexcept { return used() != all_flights; }
  // Gives it a claimed chunk, for which there was room. The chunk is reported here, or by a later
  // poll().
  void carry(Ring& ring, const Job& job, unsigned chunk) noexcept;
  void poll() noexcept;

 private:
  friend class ChannelTurn;

  struct Flight {
    Ring* ring = nullptr;
    ChunkRun run;
    std::size_t piece_bytes = 0;
    // Of an engine that registers memory: what the piece uses of it, from before it is handed over.
    RegisteredUse dst, src;
    bool dst_held = false, src_held = false;
    bool registered = false;  // it has been decided which
  };

  // Where flights are, a bit each: a free one's is set nowhere.
  using Flights = std::uint32_t;
  static constexpr Flights all_flights = (Flights{1} << depth) - 1;

  bool enter() noexcept;
  void leave() noexcept;
  std::uint8_t engine_index() const noexcept;
  unsigned place() const noexcept;  // among those of its engine
  Flights used() const noexcept { return waiting_ | accepted_ | left_; }
  void proceed(unsigned number) noexcept;
  bool register_sides(Flight& flight, Piece& piece) noexcept;
  bool hold_sides(Flight& flight, const Piece& piece) noexcept;
  void hold_what_is_worth_it(Flight& flight, const Piece& piece) noexcept;
  void release_sides(Flight& flight) noexcept;
  bool note(const Finished& finished) noexcept;
  void watch() noexcept;
  void distrust(const char* what) noexcept;
  void give_up(Flight& flight) noexcept;

  // Whose turn it is: 0, or the process's age (below), so that a fork in the middle of a turn
  // leaves the child's channel free.
  std::atomic<std::uint64_t> turn_{0};
  std::atomic<std::uint64_t> queued_bytes_{0};  // written with the turn
  std::uint64_t age_ = 0;                       // of the process whose flights these are
  // Written when a flight begins. (Not before: then it would lie in the file of the library.)
  union FlightRoom {
    constexpr FlightRoom() noexcept : none{} {}
    char none;
    Flight flights[depth];
  } room_;
  Flights waiting_ = 0;   // for the engine to have room, or for the next piece to be handed over
  Flights accepted_ = 0;  // by the engine
  Flights left_ = 0;      // for the CPU
  // How long nothing has finished, and the clock at the last look; counted while it is polled.
  std::uint64_t quiet_ns_ = 0, looked_ns_ = 0;
  unsigned idle_polls_ = 0;
  bool warned_ = false, warned_of_memory_ = false;
  // Copies for the engine that threads are at, in the process of this age.
  std::atomic<std::uint32_t> stagings_{0};
};

// The channel that this request is given to, which is for an asynchronous engine.
Channel& channel_of(const Ring& ring, const Job& job) noexcept;
// The memory that is registered with the engine, which then has one channel.
RegionCache& regions_of(std::size_t engine) noexcept;
// Bytes that lie before a request that is given to the engine now, if its channels share evenly.
std::uint64_t queued_bytes(std::size_t engine) noexcept;

// One thread's turn at a channel; false where another has it, such as the one that this signal
// handler has interrupted. It ends with the object, and then this thread's CPU does what the engine
// has left undone.
class ChannelTurn {
 public:
  explicit ChannelTurn(Channel& channel) noexcept
      : channel_(channel.enter() ? &channel : nullptr) {}
  ~ChannelTurn();
  ChannelTurn(const ChannelTurn&) = delete;
  ChannelTurn& operator=(const ChannelTurn&) = delete;
  explicit operator bool() const noexcept { return channel_ != nullptr; }
  Channel* operator->() const noexcept { return channel_; }
  Channel* channel() const noexcept { return channel_; }
  // Ends the turn now. True: this thread has copied something for the engine, so another turn may
  // find more to do.
  bool finish() noexcept;

 private:
  void end() noexcept;
  void end_with_left() noexcept;
  void stage() noexcept;

  Channel* channel_;
  bool staged_ = false;
};

// Is any chunk under way on a channel? A load.
bool any_under_way() noexcept;
// Polls every channel on which one is and that no other thread polls now. False: none was.
bool poll_channels() noexcept;

}  // namespace haul
