#include "engine/uffd/uffd.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "base/machine/pages.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/userfault.hpp"
#include "base/sync/backoff.hpp"
#include "copy/copy.hpp"
#include "engine/registry.hpp"
#include "engine/uffd/huge_blocks.hpp"

namespace haul {
namespace {

constinit os::SharedDescriptor userfault;
constinit std::atomic<Turnstile*> providers{nullptr};

// By one call: the thread that is held by one of these pages goes on when all of them are there.
constexpr std::size_t stretch_bytes = 64 * 1024;

// What a fill's small pages are copied from. (The page of zeroes that the kernel could map instead
// is no memory of the program's: the first write to each would fault again.)
class RepeatedPattern {
 public:
  explicit RepeatedPattern(const Piece& piece) noexcept {
    copy::fill_bytes(bytes_, std::min(sizeof bytes_, piece.length), piece.pattern,
                     sizeof piece.pattern, Affinity::cacheable);
  }
  std::uintptr_t begin() const noexcept { return reinterpret_cast<std::uintptr_t>(bytes_); }
  static constexpr std::size_t bytes = 16 * 1024;  // of a mover's stack

 private:
  alignas(os::page_bytes) std::byte bytes_[bytes];
};

std::int64_t provide(int fd, std::uintptr_t to, std::uintptr_t from, std::size_t length) noexcept {
  const TurnstilePass pass(providers.load(std::memory_order_relaxed));
  return os::provide(fd, to, from, length);
}

// Fills pages with what lies at `from`, but for those that are there. How far it came; all of it
// where the memory is gone.
std::size_t fill_missing(int fd, std::uintptr_t to, std::uintptr_t from, std::size_t length,
                         Code* code) noexcept {
  std::size_t done = 0;
  std::size_t step = length;
  for (Backoff backoff; done < length;) {
    const std::size_t now = std::min(step, length - done);
    const std::int64_t result = provide(fd, to + done, from + done, now);
    if (result > 0) {
      done += static_cast<std::size_t>(result);
    } else if (result == -EEXIST || (result == -ENOENT && now == os::page_bytes)) {
      // Somebody touched it and was served; or the program has unmapped it.
      done += os::page_bytes;
    } else if (result == -ENOENT) {
      step = os::page_bytes;  // a part is gone, or the program has split the mapping
    } else if (result == -EAGAIN) {
      backoff.pause();  // the program changes its mappings
    } else if (result == -ESRCH) {
      done = length;  // the process ends
    } else {
      *code = result == -EFAULT ? Code::fault : Code::io;
      break;
    }
  }
  return done;
}

class UserfaultEngine final : public Engine {
 public:
  const EngineFacts& facts() const noexcept override {
    static constexpr EngineFacts facts{
        .name = "uffd", .synchronous = true, .device = false, .checked = false};
    return facts;
  }

  EngineStatus status() const noexcept override {
    const int fd = os::open_userfault();
    if (fd >= 0) {
      os::close_fd(fd);
      return EngineStatus{.available = true, .sentence = "ready, for deferred calls"};
    }
    if (fd == -EPERM) {
      return EngineStatus{.available = false,
                          .sentence =
                              "holding the kernel's own accesses takes root; set "
                              "vm.unprivileged_userfaultfd=1 (a container's filter must allow the "
                              "call), or give access to /dev/userfaultfd"};
    }
    return EngineStatus{.available = false,
                        .sentence =
                            "this kernel or its seccomp filter lacks what it needs of "
                            "userfaultfd; use Linux 6.4 or newer, or allow the call"};
  }

  const char* spaces_text() const noexcept override { return "watched pages of this process"; }

  bool reaches(Operation, Space, Space) const noexcept override { return false; }

  Submitted submit(const Piece& piece, std::uint64_t, Outcome& outcome) noexcept override {
    const int fd = userfault.now().get();
    outcome = Outcome{0, Code::not_supported};
    if (fd < 0 || piece.checked || piece.dst_space != self_space || piece.src_space != self_space ||
        (piece.dst | piece.length) % os::page_bytes != 0)
      return Submitted::finished;
    outcome.code = Code::ok;
    const HugeBlocks blocks(fd, providers.load(std::memory_order_relaxed), piece);
    if (piece.operation == Operation::fill) {
      const RepeatedPattern pattern(piece);
      provide_rest(fd, piece, blocks, &pattern, outcome);
    } else {
      provide_rest(fd, piece, blocks, nullptr, outcome);
    }
    return Submitted::finished;
  }

 private:
  // What is not on huge pages, by stretches from the front on.
  static void provide_rest(int fd, const Piece& piece, const HugeBlocks& blocks,
                           const RepeatedPattern* pattern, Outcome& outcome) noexcept {
    const std::size_t longest = pattern != nullptr ? RepeatedPattern::bytes : stretch_bytes;
    while (outcome.code == Code::ok && outcome.good_bytes < piece.length) {
      const std::size_t done = outcome.good_bytes;
      const HugeBlocks::Stretch next = blocks.stretch_at(done);
      const std::uintptr_t from = pattern != nullptr ? pattern->begin() : piece.src + done;
      outcome.good_bytes += next.provided
                                ? next.bytes
                                : fill_missing(fd, piece.dst + done, from,
                                               std::min(longest, next.bytes), &outcome.code);
      piece.watermark.publish(outcome.good_bytes);
    }
  }
};

constinit UserfaultEngine engine;

}  // namespace

void name_userfault(int fd, bool may_make_huge, Turnstile* turnstile) noexcept {
  providers.store(turnstile, std::memory_order_relaxed);
  allow_huge_blocks(may_make_huge);
  const os::Descriptor now = userfault.now();
  if (now.number() != fd || !now.intact()) userfault.set(os::Descriptor::of(fd));
}

void name_asides(const HaulPrivateAsides& asides) noexcept {
  look_aside_in(asides);
}

Engine& uffd_engine() noexcept {
  return engine;
}

}  // namespace haul
