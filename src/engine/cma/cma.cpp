// The engine that reaches other processes: the kernel copies between two address spaces at the
// calling thread's expense.
#include <cerrno>

#include "base/os/os.hpp"
#include "copy/copy.hpp"
#include "engine/cma/bounce.hpp"
#include "engine/cma/transfer.hpp"
#include "engine/registry.hpp"
#include "engine/spaces.hpp"

namespace haul {
namespace {

using cma::Bounce;
using cma::Direction;
using cma::Party;
using cma::transfer;

// Progress is published at this grain. A call costs about 1 us on top of the copy: 2 % of this
// much.
constexpr std::size_t step_bytes = 256 * 1024;

std::size_t smaller(std::size_t a, std::size_t b) noexcept {
  return a < b ? a : b;
}

// One side of a piece, pinned in the table of spaces while the piece moves.
class PeerSide {
 public:
  explicit PeerSide(Space space) noexcept : space_(space), use_(acquire_space(space)) {}
  ~PeerSide() {
    if (use_.code == Code::ok) release_space(space_);
  }
  PeerSide(const PeerSide&) = delete;
  PeerSide& operator=(const PeerSide&) = delete;

  Code code() const noexcept { return use_.code; }
  bool is_self() const noexcept { return space_ == self_space; }
  // Any thread's id stands for its process; so this thread's stands for this process, in a child of
  // fork too.
  Party party() const noexcept {
    return is_self() ? Party{os::thread_id(), {}, 0} : Party{use_.pid, use_.pidfd, use_.started};
  }

  // Do both name the same memory? Two handles of one process do, and so do self and a handle of
  // this process.
  bool shares_memory_with(const PeerSide& other) const noexcept {
    if (use_.own_memory || other.use_.own_memory) return use_.own_memory == other.use_.own_memory;
    return use_.pid == other.use_.pid;
  }

 private:
  Space space_;
  SpaceUse use_;
};

// Moves one step through the bounce buffer; returns what of it arrived. This process's memory is
// the local side of each transfer: the kernel accesses the local side as a program does, while it
// must pin the pages of the remote one, which it does not do for memory of memfd_secret, vvar or a
// device.
Outcome bounce_step(const Piece& piece, const PeerSide& dst, const PeerSide& src,
                    const Bounce& bounce, std::size_t offset, std::size_t step) noexcept {
  const Party self{os::thread_id(), {}, 0};
  const Outcome read =
      src.is_self()
          ? transfer(Direction::write, self, piece.src + offset, bounce.address(), step)
          : transfer(Direction::read, src.party(), bounce.address(), piece.src + offset, step);
  const Outcome written = dst.is_self() ? transfer(Direction::read, self, piece.dst + offset,
                                                   bounce.address(), read.good_bytes)
                                        : transfer(Direction::write, dst.party(), bounce.address(),
                                                   piece.dst + offset, read.good_bytes);
  return Outcome{written.good_bytes, written.code != Code::ok ? written.code : read.code};
}

// From byte `done` on: peer to peer, overlapping ranges whose destination lies below, and memory of
// this process that the kernel does not pin.
Outcome copy_ascending(const Piece& piece, const PeerSide& dst, const PeerSide& src,
                       std::size_t done = 0) noexcept {
  const Bounce bounce;
  while (done < piece.length) {
    const std::size_t step = smaller(bounce.size_bytes(), piece.length - done);
    const Outcome part = bounce_step(piece, dst, src, bounce, done, step);
    done += part.good_bytes;
    piece.watermark.publish(done);
    if (part.code != Code::ok) return Outcome{done, part.code};
  }
  return Outcome{piece.length, Code::ok};
}

// Self to self, self to peer, peer to self: one copy by the kernel.
Outcome copy_directly(const Piece& piece, const PeerSide& dst, const PeerSide& src) noexcept {
  // The local side faults at the exact byte and need not be pinned: so dst is the local one if it
  // can be.
  const bool reads = dst.is_self();
  const Party party = reads ? src.party() : dst.party();
  for (std::size_t done = 0; done < piece.length;) {
    const std::size_t step = smaller(step_bytes, piece.length - done);
    const Outcome part =
        reads ? transfer(Direction::read, party, piece.dst + done, piece.src + done, step)
              : transfer(Direction::write, party, piece.src + done, piece.dst + done, step);
    done += part.good_bytes;
    piece.watermark.publish(done);
    if (part.code == Code::fault && dst.is_self() && src.is_self())
      return copy_ascending(piece, dst, src, done);
    if (part.code != Code::ok) return Outcome{done, part.code};
  }
  return Outcome{piece.length, Code::ok};
}

// Overlapping ranges whose destination lies above: descending, so that no source byte is
// overwritten before it is read. It first finds out how much can be moved, since bytes moved from
// the back are no prefix.
Outcome copy_descending(const Piece& piece, const PeerSide& dst, const PeerSide& src) noexcept {
  const Outcome from = cma::accessible(src.party(), piece.src, piece.length, false);
  const Outcome to = cma::accessible(dst.party(), piece.dst, from.good_bytes, true);
  const Bounce bounce;
  for (std::size_t left = to.good_bytes; left != 0;) {
    const std::size_t step = smaller(bounce.size_bytes(), left);
    left -= step;
    const Outcome part = bounce_step(piece, dst, src, bounce, left, step);
    // Unmapped, or the peer has died, since then: the front has not been moved yet.
    if (part.code != Code::ok) return Outcome{0, part.code};
  }
  piece.watermark.publish(to.good_bytes);
  return Outcome{to.good_bytes, to.code != Code::ok ? to.code : from.code};
}

Outcome fill(const Piece& piece, const PeerSide& dst) noexcept {
  const Bounce bounce;
  // A multiple of 8 bytes, so every step begins at the same phase.
  const std::size_t stock = smaller(bounce.size_bytes(), piece.length);
  copy::fill_bytes(bounce.data(), stock, piece.pattern, 8, Affinity::cacheable);
  for (std::size_t done = 0; done < piece.length;) {
    const std::size_t step = smaller(stock, piece.length - done);
    const Outcome part =
        dst.is_self()
            ? transfer(Direction::read, dst.party(), piece.dst + done, bounce.address(), step)
            : transfer(Direction::write, dst.party(), bounce.address(), piece.dst + done, step);
    done += part.good_bytes;
    piece.watermark.publish(done);
    if (part.code != Code::ok) return Outcome{done, part.code};
  }
  return Outcome{piece.length, Code::ok};
}

Outcome copy(const Piece& piece, const PeerSide& dst, const PeerSide& src) noexcept {
  if (src.code() != Code::ok) return Outcome{0, src.code()};
  if (dst.shares_memory_with(src) && overlaps(piece.dst, piece.src, piece.length)) {
    return piece.dst > piece.src ? copy_descending(piece, dst, src)
                                 : copy_ascending(piece, dst, src);
  }
  if (!dst.is_self() && !src.is_self()) return copy_ascending(piece, dst, src);
  return copy_directly(piece, dst, src);
}

EngineStatus ready() noexcept {
  EngineStatus status;
  status.available = true;
  char scope[16];
  const bool restricted =
      os::read_file("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope) > 0 &&
      scope[0] != '0';
  const Error sentence =
      restricted ? make_error(Code::ok, 0,
                              "ready for this process; others need CAP_SYS_PTRACE, or "
                              "`sysctl kernel.yama.ptrace_scope=0` (it is %c), or their "
                              "prctl(PR_SET_PTRACER)",
                              scope[0])
                 : make_error(Code::ok, 0, "ready");
  __builtin_memcpy(status.sentence, sentence.sentence, sizeof status.sentence - 1);
  return status;
}

class CmaEngine final : public Engine {
 public:
  const EngineFacts& facts() const noexcept override {
    static constexpr EngineFacts facts{
        .name = "cma", .synchronous = true, .device = false, .checked = true};
    return facts;
  }

  EngineStatus status() const noexcept override {
    switch (cma::self_test()) {
      case 0: return ready();
      case ENOSYS:
        return EngineStatus{.available = false,
                            .sentence =
                                "this kernel or its seccomp filter lacks process_vm_readv; use a "
                                "kernel with CONFIG_CROSS_MEMORY_ATTACH or allow the call"};
      case EPERM:
        return EngineStatus{.available = false,
                            .sentence =
                                "a seccomp filter refuses process_vm_readv; allow "
                                "process_vm_readv and process_vm_writev in it (containers: "
                                "--cap-add=SYS_PTRACE)"};
      default:
        return EngineStatus{.available = false,
                            .sentence =
                                "process_vm_readv fails on this very process; run on a Linux "
                                "kernel that implements it"};
    }
  }

  const char* spaces_text() const noexcept override { return "this process (checked) and peers"; }

  bool available() const noexcept override { return cma::self_test() == 0; }

  bool reaches(Operation, Space dst, Space src) const noexcept override {
    const auto is_processes = [](Space space) { return !is_grant(space) && !device_memory(space); };
    return is_processes(dst) && is_processes(src);
  }

  Submitted submit(const Piece& piece, std::uint64_t, Outcome& outcome) noexcept override {
    const PeerSide dst(piece.dst_space);
    if (dst.code() != Code::ok) {
      outcome = Outcome{0, dst.code()};
    } else if (piece.operation == Operation::fill) {
      outcome = fill(piece, dst);
    } else {
      outcome = copy(piece, dst, PeerSide(piece.src_space));
    }
    return Submitted::finished;
  }
};

constinit CmaEngine engine;

}  // namespace

Engine& cma_engine() noexcept {
  return engine;
}

}  // namespace haul
