// The engine that every machine has: the calling thread copies, and publishes how far it has come.
#include "base/pattern.hpp"
#include "copy/copy.hpp"
#include "engine/registry.hpp"
#include "memory/new_pages.hpp"

namespace haul {
namespace {

// Progress is published after each stretch. The first is short, so that a thread that waits for the
// front need not wait long; the others double, since each call costs a part of a microsecond on top
// of the copy (on cold memory the core's prefetchers start over). Both sizes are measured: 0 to 4 %
// against one call.
constexpr std::size_t first_stretch_bytes = 16 * 1024;
constexpr std::size_t longest_stretch_bytes = 2 * copy::piece_bytes;

class Stretches {
 public:
  explicit Stretches(const Watermark& watermark) noexcept
      : block_mask_((std::size_t{1} << watermark.block_log2) - 1),
        first_bytes_(watermark.first_bytes),
        size_bytes_(watermark.word == nullptr ? SIZE_MAX : first_stretch_bytes) {}

  // How much to move in the next call, when `done` of `length` bytes have been moved. Ends at a
  // block's end (more would not show), or with the piece.
  std::size_t next(std::size_t done, std::size_t length) noexcept {
    const std::size_t rest = length - done;
    if (size_bytes_ >= rest) return rest;
    std::size_t now = size_bytes_ > block_mask_ ? size_bytes_ : block_mask_ + 1;
    now -= (first_bytes_ + done + now) & block_mask_;
    if (size_bytes_ < longest_stretch_bytes) size_bytes_ *= 2;
    return now + now / 2 < rest ? now : rest;  // no small remainder
  }

 private:
  std::size_t block_mask_;
  std::size_t first_bytes_;
  std::size_t size_bytes_;  // SIZE_MAX: nobody looks, so all at once
};

void move_stretch(const Piece& piece, std::size_t offset, std::size_t length,
                  std::size_t whole_bytes) noexcept {
  auto* dst = reinterpret_cast<void*>(piece.dst + offset);
  if (piece.operation == Operation::fill) {
    copy::fill_bytes(dst, length, pattern_at(piece.pattern, offset), piece.pattern_bytes,
                     piece.dst_affinity);
  } else {
    copy::move_bytes(dst, reinterpret_cast<const void*>(piece.src + offset), length,
                     piece.dst_affinity, piece.src_affinity, whole_bytes);
  }
}

class CpuEngine final : public Engine {
 public:
  const EngineFacts& facts() const noexcept override {
    static constexpr EngineFacts facts{
        .name = "cpu", .synchronous = true, .device = false, .checked = false};
    return facts;
  }

  EngineStatus status() const noexcept override {
    return EngineStatus{.available = true, .sentence = "ready"};
  }

  const char* spaces_text() const noexcept override { return "this process"; }

  bool reaches(Operation operation, Space dst, Space src) const noexcept override {
    return dst == self_space && (operation == Operation::fill || src == self_space);
  }

  Submitted submit(const Piece& piece, std::uint64_t, Outcome& outcome) noexcept override {
    if (piece.checked || !reaches(piece.operation, piece.dst_space, piece.src_space)) {
      outcome = Outcome{.good_bytes = 0, .code = Code::not_supported};
      return Submitted::finished;
    }
    const std::size_t whole_bytes = piece.whole_bytes != 0 ? piece.whole_bytes : piece.length;
    if (piece.operation == Operation::copy && overlaps(piece.dst, piece.src, piece.length)) {
      // One call: which end it begins at is the kernel's business.
      move_stretch(piece, 0, piece.length, whole_bytes);
      piece.watermark.publish(piece.length);
    } else {
      Stretches stretches(piece.watermark);
      NewPages pages(
          {piece.dst - piece.bytes_before, piece.dst + piece.length + piece.bytes_behind},
          piece.watermark.generation_bits);
      for (std::size_t done = 0, ready = 0; done < piece.length;) {
        if (done == ready) ready += pages.make(piece.dst + done, piece.length - done);
        const std::size_t now = stretches.next(done, ready);
        move_stretch(piece, done, now, whole_bytes);
        done += now;
        piece.watermark.publish(done);
      }
    }
    outcome = Outcome{.good_bytes = piece.length, .code = Code::ok};
    return Submitted::finished;
  }
};

constinit CpuEngine engine;

}  // namespace

Engine& cpu_engine() noexcept {
  return engine;
}

}  // namespace haul
