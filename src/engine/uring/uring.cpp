// Copies by the kernel's own threads, on memory that is registered with io_uring: from the source
// to a piece of a memfd, and from there to the destination.
//
// A piece is in two phases, each a request of its own, and has a slot: its place in the memfd and
// in `pieces`. One thread at a time submits and polls (execution/channel.hpp).
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>

#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "base/os/uring.hpp"
#include "engine/plugin.hpp"
#include "engine/registry.hpp"

namespace haul {
namespace {

constexpr unsigned slots = 16, buffers = 1024;
constexpr std::size_t slot_bytes = std::size_t{1} << 20;

struct UringPiece {
  std::uint64_t tag = 0;
  std::uintptr_t dst = 0;
  std::size_t bytes = 0;
  unsigned dst_buffer = 0;
  Watermark watermark;
};

constinit os::Uring ring;
constinit os::Descriptor file;
constinit UringPiece pieces[slots];
constinit std::uint32_t taken = 0;  // a bit a slot
constinit bool used[buffers] = {};  // registered
constinit bool dead = false;

Submitted begin_piece(const Piece& piece, std::uint64_t tag, Outcome& outcome) noexcept {
  if (dead) return Submitted::dead;
  if (piece.dst_region == 0 || piece.src_region == 0) {
    outcome = Outcome{0, Code::not_supported};
    return Submitted::finished;
  }
  const auto slot = static_cast<unsigned>(std::countr_one(taken));
  if (slot >= slots) return Submitted::full;
  UringPiece& mine = pieces[slot];
  mine = {tag, piece.dst, std::min(piece.length, slot_bytes),
          static_cast<unsigned>(piece.dst_region - 1), piece.watermark};
  const int result =
      ring.start(true, file, slot * slot_bytes, piece.src, static_cast<std::uint32_t>(mine.bytes),
                 static_cast<unsigned>(piece.src_region - 1), slot);
  if (result == -EAGAIN || result == -EBUSY) return Submitted::full;
  dead = result != 0;
  if (dead) return Submitted::dead;
  taken |= 1u << slot;
  return Submitted::accepted;
}

std::size_t end_pieces(unsigned, Finished* finished, std::size_t most) noexcept {
  std::size_t count = 0;
  std::uint64_t tag = 0;
  std::int32_t result = 0;
  while (count < most && taken != 0 && ring.finished(&tag, &result)) {
    const auto slot = static_cast<unsigned>(tag % slots);
    UringPiece& piece = pieces[slot];
    const bool whole = result >= 0 && static_cast<std::size_t>(result) == piece.bytes;
    const bool written = tag < slots;
    if (written && whole &&
        ring.start(false, file, slot * slot_bytes, piece.dst,
                   static_cast<std::uint32_t>(piece.bytes), piece.dst_buffer, slot + slots) == 0)
      continue;
    taken &= ~(1u << slot);
    const std::size_t good = !written && result > 0 ? static_cast<std::size_t>(result) : 0;
    if (good == piece.bytes) piece.watermark.publish(good);
    finished[count++] = {piece.tag, Outcome{good, good == piece.bytes ? Code::ok : Code::io}};
  }
  return count;
}

bool stop_all(unsigned) noexcept {
  dead = true;
  return taken == 0;
}

Code register_range(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) noexcept {
  constexpr std::size_t most = std::size_t{1} << 30;  // of a buffer of io_uring's
  bool* const free = std::find(used, used + buffers, false);
  if (free == used + buffers || bytes > most) return Code::no_memory;
  const auto index = static_cast<unsigned>(free - used);
  switch (ring.set_buffer(index, address, bytes)) {
    case 0: break;
    case -ENOMEM: return Code::no_memory;
    case -EFAULT: return Code::fault;
    default: return Code::not_supported;
  }
  *free = true;
  *region = index + 1;
  return Code::ok;
}

void forget_range(std::uint64_t region) noexcept {
  const auto index = static_cast<unsigned>(region - 1);
  ring.set_buffer(index, 0, 0);
  used[index] = false;
}

class UringEngine final : public PluginEngine {
 public:
  constexpr UringEngine() noexcept : PluginEngine("", "", Knob::plan_engine) {}

  const EngineFacts& facts() const noexcept override {
    static constexpr EngineFacts facts{
        .name = "uring", .synchronous = false, .device = false, .checked = false};
    return facts;
  }
  bool wanted() const noexcept override { return false; }

  void forget() noexcept override {
    PluginEngine::forget();
    ring.close();
    file.close();
  }

 private:
  // (It needs no library.)
  const DeviceTable* find_table() noexcept override {
    static constinit DeviceTable table;
    int refused = -ring.open(4 * slots, buffers);
    if (refused == 0) {
      const int fd = os::make_sealed("haul-uring", slots * slot_bytes);
      refused = fd < 0 ? -fd : 0;
      if (fd >= 0) file = os::Descriptor::of(fd);
    }
    if (refused != 0) {
      std::snprintf(why_, sizeof why_,
                    "the kernel refuses io_uring (%s); it needs Linux 5.19, "
                    "kernel.io_uring_disabled=0, and a system-call filter that allows it",
                    describe_errno(refused));
      return nullptr;
    }
    table.emulated = true;
    table.most_bytes = slot_bytes;
    table.submit = begin_piece;
    table.poll = end_pieces;
    table.stop = stop_all;
    table.pin = register_range;
    table.unpin = forget_range;
    std::snprintf(table.name, sizeof table.name, "threads of the kernel");
    return &table;
  }
};

constinit UringEngine engine;

}  // namespace

Engine& uring_engine() noexcept {
  return engine;
}

}  // namespace haul
