// The contract of an engine, which moves bytes. One folder an engine; the folder's name is the
// engine's name everywhere.
//
// Whoever drives an engine hands it pieces by submit(). A synchronous engine answers `finished`
// with an outcome. An asynchronous one answers `accepted` and reports the outcome in poll(), by the
// piece's tag and in any order; `full` asks the driver to poll and try again, and after `dead` all
// that it had accepted is still reported. Who drives an asynchronous engine is a channel
// (execution/channel.hpp), which also says what becomes of an engine that breaks these rules.
// Between submit and outcome an engine may show progress in the piece's watermark: it makes bytes
// visible first and stores the count after (release), so whoever reads the count (acquire) may read
// the bytes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/affinity.hpp"
#include "base/error.hpp"
#include "base/extent.hpp"
#include "memory/registrar.hpp"
#include "plan/devices.hpp"

namespace haul {

// Where an engine reports how far a chunk has come: one word {generation 32, blocks 32}, stored
// with release order. A default-constructed one reports nowhere. Blocks count from the chunk's
// first byte.
struct Watermark {
  std::atomic<std::uint64_t>* word = nullptr;
  std::uint64_t generation_bits = 0;  // generation << 32
  std::uint64_t first_bytes = 0;      // bytes of the chunk already done before this piece
  std::uint32_t block_log2 = 12;

  // The first `bytes` bytes of the piece are visible (NT stores fenced). Wait-free. Progress past
  // what the count can hold (256 GiB of a chunk in blocks of 64 bytes) shows when the chunk is
  // done.
  void publish(std::size_t bytes) const noexcept {
    if (word != nullptr) {
      constexpr std::uint64_t most_blocks = 0xffff'ffff;
      const std::uint64_t blocks = std::min((first_bytes + bytes) >> block_log2, most_blocks);
      // Pairs with the acquire load in completion's range test.
      word->store(generation_bits | blocks, std::memory_order_release);
    }
  }
};

// One contiguous piece of work. Both sides have `length` bytes; for a fill the source is the
// pattern.
struct Piece {
  Operation operation = Operation::copy;
  Affinity dst_affinity = Affinity::cacheable;
  Affinity src_affinity = Affinity::cacheable;
  std::uint8_t pattern_bytes = 8;
  bool checked = false;  // an inaccessible byte is an outcome, not a SIGSEGV
  Space dst_space = self_space, src_space = self_space;
  std::uintptr_t dst = 0, src = 0;
  std::size_t length = 0;
  // Length of the whole request, by which a kernel may choose.
  std::size_t whole_bytes = 0;
  // How much of the request's destination lies directly before and behind the piece's.
  std::size_t bytes_before = 0, bytes_behind = 0;
  // Widened to 8 bytes and rotated to the phase of this piece's first byte.
  std::uint64_t pattern = 0;
  Watermark watermark;
  // The regions in which each side lies: as pin() named them, where the engine has memory
  // registered (registers()), or as open_memory() did, for the memory of its device; 0: none, as
  // for a fill's source.
  std::uint64_t dst_region = 0, src_region = 0;
  // Which of the engine's channels gets it.
  unsigned channel = 0;
};

// How a piece ended. good_bytes from its front are in place and visible; code says why not all.
struct Outcome {
  std::size_t good_bytes = 0;
  Code code = Code::ok;
};

enum class Submitted : std::uint8_t {
  finished,  // the outcome is filled in
  accepted,  // poll() will report it by its tag
  full,      // no room now: poll, then try again
  dead,      // this engine has failed for good; nothing of the piece was moved or will be
};

struct Finished {
  std::uint64_t tag = 0;
  Outcome outcome;
};

// Bytes that an engine wants the CPU to copy on a piece's way, between the program's memory and
// memory of the engine's own. Whoever has copied them stores 1 to *done (release).
struct StagingCopy {
  std::uintptr_t dst = 0, src = 0;
  std::size_t bytes = 0;
  bool streams = false;  // past the caches, as the engine has found that to be faster
  std::atomic<std::uint32_t>* done = nullptr;
};

// What the planner knows of an engine.
struct EngineFacts {
  const char* name = "";    // its folder
  bool synchronous = true;  // submit() always finishes: any thread may use it, helpers too
  bool device = false;      // moves without a CPU: schemes SCI and MCI
  bool checked = false;     // reports inaccessible ranges as outcomes
};

struct EngineStatus {
  bool available = false;
  char sentence[192] = {};  // "ready", or why not and the remedy
};

inline constexpr unsigned most_channels = 8;  // of an engine

// Lifetime: static, never destroyed. A synchronous engine's submit() is thread-safe; an
// asynchronous engine's channels are driven (submit, poll and stop) by one thread at a time each,
// and several at once by several threads. No call blocks for longer than its piece takes.
class Engine : public Registrar {
 public:
  virtual const EngineFacts& facts() const noexcept = 0;
  virtual EngineStatus status() const noexcept = 0;
  // status().available, asked at every submit: no system call once it is known.
  virtual bool available() const noexcept { return true; }
  // Of a device that is available: what the planner weighs it by.
  virtual plan::DeviceFacts device_facts() const noexcept { return {}; }
  // Has the user named devices for it, so that the planner may take it where it pays?
  virtual bool wanted() const noexcept { return false; }
  // Somebody wants it, and it is not available: begins to make it ready, and returns at once. What
  // needs no time is ready from the start.
  virtual void begin_to_open() noexcept {}
  // The queues of an asynchronous engine that work side by side (paper 001, V), once it is
  // available; 1 to most_channels. One that registers memory has one.
  virtual unsigned channels() const noexcept { return 1; }
  // The longest piece that it takes, once it is available.
  virtual std::size_t most_bytes() const noexcept { return SIZE_MAX; }
  virtual const char* spaces_text() const noexcept = 0;  // for people: "this process"
  virtual bool reaches(Operation operation, Space dst, Space src) const noexcept = 0;
  // `tag` comes back from poll() when the answer is `accepted`. memmove semantics within one space;
  // a device may refuse sides that overlap (not_supported), which the planner does not give it.
  virtual Submitted submit(const Piece& piece, std::uint64_t tag, Outcome& outcome) noexcept = 0;
  // Reports as many finished pieces of a channel as there is room for. After the engine's death
  // every accepted piece is reported (with what is good of it), and then none. A synchronous engine
  // has none.
  virtual std::size_t poll(unsigned /*channel*/, Finished*, std::size_t) noexcept { return 0; }
  // Must memory be registered before the engine moves it? Then every piece names its regions, as
  // the engine has named them as a registrar.
  virtual bool registers() const noexcept { return false; }
  // Are sources registered, too?
  virtual bool registers_sources() const noexcept { return true; }
  // Does it move memory that is not registered, too, only slower? Then what is not worth it, or
  // cannot be registered, comes without a region.
  virtual bool registers_by_choice() const noexcept { return false; }
  // Has it devices whose memory lies apart from every process's? It reaches nothing else, then,
  // than that memory and this process's, and the CPU can take nothing over.
  virtual bool has_memory() const noexcept { return false; }
  // The memory of such a device, as `which` names it for people ("": the first), as a region of
  // pieces; or why there is none. Blocks while the device is made ready.
  virtual Expected<std::uint64_t> open_memory(const char* which) noexcept;
  // Has it something for the CPU to do now? Whoever drives it asks after each submit and poll, and
  // does it when nothing keeps others from driving, since the program's memory may fault or not
  // arrive. An engine that has asked for it does not report the piece until it is done.
  virtual bool take_staging(StagingCopy*) noexcept { return false; }
  // Whoever drives a channel does not believe the engine any more: it is dead from now on. True: it
  // writes nothing to the memory of pieces that this channel had accepted, and is not polled for
  // them. False: it may, and poll() goes on to report them, as it does for the other channels.
  // Asynchronous engines only, as is the next one.
  virtual bool stop(unsigned /*channel*/) noexcept { return false; }
  // This is the child of a fork, in its handler: what was accepted is the parent's, as devices are.
  virtual void forget() noexcept {}

 protected:
  ~Engine() = default;
};

}  // namespace haul
