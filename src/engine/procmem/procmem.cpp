#include <algorithm>
#include <cerrno>

#include "base/os/os.hpp"
#include "base/os/pages/own_memory.hpp"
#include "engine/registry.hpp"

namespace haul {
namespace {

// By one call: a waiter sees progress as often.
constexpr std::size_t write_bytes = std::size_t{256} << 10;

class ProcmemEngine final : public Engine {
 public:
  const EngineFacts& facts() const noexcept override {
    static constexpr EngineFacts facts{
        .name = "procmem", .synchronous = true, .device = false, .checked = true};
    return facts;
  }

  EngineStatus status() const noexcept override {
    const char from = 1;
    char to = 0;
    const std::int64_t written = os::force_write(reinterpret_cast<std::uintptr_t>(&to),
                                                 reinterpret_cast<std::uintptr_t>(&from), 1);
    if (written == 1)
      return EngineStatus{.available = true, .sentence = "ready, for copies into protected memory"};
    return EngineStatus{.available = false,
                        .sentence =
                            "this process may not write to its own /proc/self/mem; mount /proc, or "
                            "allow it (proc_mem.force_override=)"};
  }

  const char* spaces_text() const noexcept override { return "private memory of this process"; }

  bool reaches(Operation, Space, Space) const noexcept override { return false; }

  Submitted submit(const Piece& piece, std::uint64_t, Outcome& outcome) noexcept override {
    outcome = Outcome{0, Code::not_supported};
    if (piece.operation != Operation::copy || piece.dst_space != self_space ||
        piece.src_space != self_space || overlaps(piece.dst, piece.src, piece.length))
      return Submitted::finished;
    outcome.code = Code::ok;
    while (outcome.code == Code::ok && outcome.good_bytes < piece.length) {
      const std::size_t done = outcome.good_bytes;
      const std::size_t wanted = std::min(write_bytes, piece.length - done);
      const std::int64_t now = os::force_write(piece.dst + done, piece.src + done, wanted);
      if (now > 0) outcome.good_bytes += static_cast<std::size_t>(now);
      if (now <= 0) outcome.code = now == -EFAULT || now == -EIO ? Code::fault : Code::io;
      piece.watermark.publish(outcome.good_bytes);
    }
    return Submitted::finished;
  }
};

constinit ProcmemEngine engine;

}  // namespace

Engine& procmem_engine() noexcept {
  return engine;
}

}  // namespace haul
