// Copies by the kernel's own threads, on memory that is registered with io_uring: from the source
// to a piece of a memfd, and from there to the destination.
//
// A piece is in two phases, each a request of its own, and has a slot: its place in the memfd and
// in `pieces`. One thread at a time submits and polls (execution/channel.hpp).
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>

#include "base/os/os.hpp"
#include "base/os/sealed.hpp"
#include "base/os/uring.hpp"
#include "base/sync/quiet_lock.hpp"
#include "engine/registry.hpp"

namespace haul {
namespace {

constexpr unsigned slots = 16, buffers = 1024;
constexpr std::size_t slot_bytes = std::size_t{1} << 20;

class UringEngine final : public Engine {
 public:
  const EngineFacts& facts() const noexcept override {
    static constexpr EngineFacts facts{
        .name = "uring", .synchronous = false, .device = false, .checked = false};
    return facts;
  }

  EngineStatus status() const noexcept override {
    EngineStatus status;
    const Stage now = stage_.load(std::memory_order_acquire);
    status.available = now == Stage::ready;
    const char* sentence = "ready: threads of the kernel, which copy twice";
    if (now == Stage::closed) sentence = "not opened; HAUL_PLAN_ENGINE=uring opens it";
    if (now == Stage::dead) sentence = "dead: the program has closed its descriptor";
    if (now == Stage::refused) {
      std::snprintf(status.sentence, sizeof status.sentence,
                    "the kernel refuses io_uring (%s); it needs Linux 5.19, "
                    "kernel.io_uring_disabled=0, and a system-call filter that allows it",
                    describe_errno(refused_));
    } else {
      std::snprintf(status.sentence, sizeof status.sentence, "%s", sentence);
    }
    return status;
  }
  bool available() const noexcept override {
    return stage_.load(std::memory_order_acquire) == Stage::ready;
  }

  void begin_to_open() noexcept override {
    if (stage_.load(std::memory_order_relaxed) != Stage::closed) return;
    const QuietLock lock(opening_);
    if (stage_.load(std::memory_order_relaxed) != Stage::closed) return;
    refused_ = -ring_.open(4 * slots, buffers);
    if (refused_ == 0) {
      const int fd = os::make_sealed("haul-uring", slots * slot_bytes);
      refused_ = fd < 0 ? -fd : 0;
      if (fd >= 0) file_ = os::Descriptor::of(fd);
    }
    stage_.store(refused_ == 0 ? Stage::ready : Stage::refused, std::memory_order_release);
  }

  std::size_t most_bytes() const noexcept override { return slot_bytes; }
  const char* spaces_text() const noexcept override { return "this process"; }
  bool reaches(Operation operation, Space dst, Space src) const noexcept override {
    return operation == Operation::copy && dst == self_space && src == self_space;
  }

  Submitted submit(const Piece& piece, std::uint64_t tag, Outcome& outcome) noexcept override {
    if (!available()) return Submitted::dead;
    const bool able = !piece.checked && !overlaps(piece.dst, piece.src, piece.length) &&
                      reaches(piece.operation, piece.dst_space, piece.src_space);
    const bool registered = piece.dst_region != 0 && piece.src_region != 0;
    if (!able || piece.length == 0 || !registered) {
      outcome = Outcome{0, able && piece.length == 0 ? Code::ok : Code::not_supported};
      return Submitted::finished;
    }
    const auto slot = static_cast<unsigned>(std::countr_one(taken_));
    if (slot >= slots) return Submitted::full;
    UnderWay& mine = pieces_[slot];
    mine = {tag, piece.dst, std::min(piece.length, slot_bytes),
            static_cast<unsigned>(piece.dst_region - 1), piece.watermark};
    const int result = ring_.start(true, file_, slot * slot_bytes, piece.src,
                                   static_cast<std::uint32_t>(mine.bytes),
                                   static_cast<unsigned>(piece.src_region - 1), slot);
    if (result == -EAGAIN || result == -EBUSY) return Submitted::full;
    if (result != 0) {
      stage_.store(Stage::dead);
      return Submitted::dead;
    }
    taken_ |= 1u << slot;
    return Submitted::accepted;
  }

  std::size_t poll(Finished* finished, std::size_t most) noexcept override {
    std::size_t count = 0;
    std::uint64_t tag = 0;
    std::int32_t result = 0;
    while (count < most && taken_ != 0 && ring_.finished(&tag, &result)) {
      const auto slot = static_cast<unsigned>(tag % slots);
      UnderWay& piece = pieces_[slot];
      const bool whole = result >= 0 && static_cast<std::size_t>(result) == piece.bytes;
      const bool written = tag < slots;
      if (written && whole &&
          ring_.start(false, file_, slot * slot_bytes, piece.dst,
                      static_cast<std::uint32_t>(piece.bytes), piece.dst_buffer, slot + slots) == 0)
        continue;
      taken_ &= ~(1u << slot);
      const std::size_t good = !written && result > 0 ? static_cast<std::size_t>(result) : 0;
      if (good == piece.bytes) piece.watermark.publish(good);
      finished[count++] = {piece.tag, Outcome{good, good == piece.bytes ? Code::ok : Code::io}};
    }
    return count;
  }

  bool stop() noexcept override {
    stage_.store(Stage::dead);
    return taken_ == 0;
  }

  bool registers() const noexcept override { return true; }

  Code pin(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) noexcept override {
    constexpr std::size_t most = std::size_t{1} << 30;
    const auto free = std::find(used_, used_ + buffers, false);
    if (free == used_ + buffers || bytes > most) return Code::no_memory;
    const auto index = static_cast<unsigned>(free - used_);
    switch (ring_.set_buffer(index, address, bytes)) {
      case 0: break;
      case -ENOMEM: return Code::no_memory;
      case -EFAULT: return Code::fault;
      default: return Code::not_supported;
    }
    *free = true;
    *region = index + 1;
    return Code::ok;
  }
  void unpin(std::uint64_t region) noexcept override {
    const auto index = static_cast<unsigned>(region - 1);
    ring_.set_buffer(index, 0, 0);
    used_[index] = false;
  }

  void forget() noexcept override {
    opening_ = PTHREAD_MUTEX_INITIALIZER;
    if (stage_.load(std::memory_order_relaxed) != Stage::closed) {
      ring_.abandon();
      file_.close();
    }
    taken_ = 0;
    std::fill(used_, used_ + buffers, false);
    stage_.store(Stage::closed, std::memory_order_relaxed);
  }

 private:
  enum class Stage : std::uint8_t { closed, ready, refused, dead };

  struct UnderWay {
    std::uint64_t tag = 0;
    std::uintptr_t dst = 0;
    std::size_t bytes = 0;
    unsigned dst_buffer = 0;
    Watermark watermark;
  };

  std::atomic<Stage> stage_{Stage::closed};
  pthread_mutex_t opening_ = PTHREAD_MUTEX_INITIALIZER;
  int refused_ = 0;  // an errno
  os::Uring ring_;
  os::Descriptor file_;
  UnderWay pieces_[slots];
  std::uint32_t taken_ = 0;  // a bit a slot
  bool used_[buffers] = {};  // registered
};

constinit UringEngine engine;

}  // namespace

Engine& uring_engine() noexcept {
  return engine;
}

}  // namespace haul
