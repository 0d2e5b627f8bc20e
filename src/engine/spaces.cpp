// The table of open peer spaces. One word an entry says who may touch it, and every change is a
// compare-and-swap on that word, so no lock is needed: a user pins the entry by raising `users`
// while it is open, and lowers it when its transfer is over. A close makes the entry refuse further
// users; the close itself, if there are none, or else the last user closes the descriptor and
// vacates the entry under the next generation. A handle carries its generation, so one that is kept
// too long does not match.
#include "engine/spaces.hpp"

#include <atomic>
#include <cerrno>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"

namespace haul {
namespace {

// word = {state 8, generation 24, users 32}
//   vacant -> changing -> open -> closing -> changing -> vacant (next generation)
// `changing` belongs to one thread: the opener, or the one that ended the last use of a closed
// entry. `closing` with no users does not exist: the close goes straight to `changing`.
enum class SpaceState : std::uint8_t { vacant = 0, changing = 1, open = 2, closing = 3 };

constexpr std::uint64_t generation_mask = (std::uint64_t{1} << 24) - 1;

struct Word {
  SpaceState state;
  std::uint32_t generation;
  std::uint32_t users;

  static Word unpack(std::uint64_t bits) noexcept {
    return Word{static_cast<SpaceState>(bits >> 56),
                static_cast<std::uint32_t>(bits >> 32 & generation_mask),
                static_cast<std::uint32_t>(bits)};
  }
  std::uint64_t pack() const noexcept {
    return static_cast<std::uint64_t>(state) << 56 |
           (static_cast<std::uint64_t>(generation) & generation_mask) << 32 | users;
  }
};

struct SpaceSlot {
  std::atomic<std::uint64_t> word{0};
  // Written in `changing`, before the release store that opens the entry.
  pid_t pid = 0;
  os::Descriptor pidfd;
  std::uint64_t started = 0;
  bool own_memory = false;
  bool grant = false;
  DeviceMemory device;
};

constinit SpaceSlot entries[max_spaces];
constinit std::atomic<std::uint32_t> search_from{0};  // indices are reused as late as possible

constexpr std::size_t index_of(Space space) noexcept {
  return space & 0xff;
}
constexpr std::uint32_t generation_of(Space space) noexcept {
  return space >> 8;
}

// Closes the descriptor and vacates an entry that this thread has taken to `changing`.
void vacate(SpaceSlot& entry, std::uint32_t generation) noexcept {
  entry.pidfd.close();
  entry.grant = false;
  entry.device = {};
  const Word vacant{SpaceState::vacant, generation + 1, 0};
  // Release: pairs with the acquire of the next opener's compare-and-swap.
  entry.word.store(vacant.pack(), std::memory_order_release);
}

// Takes a vacant entry into `changing`; its index, or 0 if every entry is taken.
std::size_t take_vacant(std::uint32_t& generation) noexcept {
  const std::uint32_t from = search_from.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t step = 0; step < max_spaces - 1; ++step) {
    const std::size_t index = 1 + (from + step) % (max_spaces - 1);
    std::uint64_t bits = entries[index].word.load(std::memory_order_relaxed);
    const Word word = Word::unpack(bits);
    if (word.state != SpaceState::vacant) continue;
    const Word taken{SpaceState::changing, word.generation, 0};
    // Acquire: pairs with vacate().
    if (entries[index].word.compare_exchange_strong(bits, taken.pack(), std::memory_order_acquire,
                                                    std::memory_order_relaxed)) {
      generation = word.generation;
      return index;
    }
  }
  return 0;
}

Error refuse(pid_t pid, int sys_errno) noexcept {
  switch (sys_errno) {
    case ESRCH:
      return make_error(Code::peer_gone, sys_errno,
                        "process %d does not exist or has no memory left; open a running process",
                        static_cast<int>(pid));
    case EPERM:
    case EACCES:
      return make_error(
          Code::permission, sys_errno,
          "the kernel refuses the memory of process %d; run both as one user with "
          "kernel.yama.ptrace_scope=0, or give this process CAP_SYS_PTRACE and its seccomp filter "
          "process_vm_readv",
          static_cast<int>(pid));
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return make_error(Code::no_memory, sys_errno,
                        "no descriptor is left for process %d (%s); close some or raise ulimit -n",
                        static_cast<int>(pid), describe_errno(sys_errno));
    case ENOSYS:
      return make_error(Code::not_supported, sys_errno,
                        "this kernel lacks pidfd_open or process_vm_readv; use Linux 5.3 or later "
                        "with CONFIG_CROSS_MEMORY_ATTACH");
    case EINVAL:
    case ENOENT:
      return make_error(Code::invalid, sys_errno,
                        "%d is not the id of a process; pass what getpid() returns there, not a "
                        "thread's id",
                        static_cast<int>(pid));
    default:
      return make_error(Code::io, sys_errno, "process %d cannot be opened (%s); see errno",
                        static_cast<int>(pid), describe_errno(sys_errno));
  }
}

// Asks the kernel for a read of the peer's memory: 0 or an errno. The address is one that this
// process has mapped. The peer may not have it mapped, but EFAULT is as good an answer, since
// rights are checked first.
int probe(pid_t pid, bool& own_memory) noexcept {
  std::uint64_t token = 0, seen = 0;
  const iovec remote{&token, sizeof token};
  const iovec local{&seen, sizeof seen};
  // Two different values read back cannot be chance: it is this very memory.
  own_memory = true;
  for (int round = 0; round < 2; ++round) {
    token = ticks() * 2 + static_cast<unsigned>(round);
    os::compiler_barrier();
    const ssize_t got = os::read_process(pid, &local, 1, &remote, 1);
    os::compiler_barrier();
    if (got < 0 && got != -EFAULT) return static_cast<int>(-got);
    if (got != static_cast<ssize_t>(sizeof seen) || seen != token) own_memory = false;
  }
  return 0;
}

}  // namespace

Expected<Space> open_space(pid_t pid) noexcept {
  if (pid <= 0) {
    return make_error(Code::invalid, 0,
                      "%d is not the id of a process; pass what getpid() returns there",
                      static_cast<int>(pid));
  }
  // The descriptor first: if its process still lives after the probe, it is the one that was
  // probed.
  return adopt_space(pid, os::pidfd_open(pid));
}

Expected<Space> adopt_space(pid_t pid, int pidfd) noexcept {
  if (pidfd < 0) return refuse(pid, -pidfd);
  if (pid <= 0) {
    os::close_fd(pidfd);
    return refuse(pid, ESRCH);
  }
  bool own_memory = false;
  int refused = probe(pid, own_memory);
  if (refused == 0 && !os::pidfd_alive(pidfd)) refused = ESRCH;
  if (refused != 0) {
    os::close_fd(pidfd);
    return refuse(pid, refused);
  }
  std::uint32_t generation = 0;
  const std::size_t index = take_vacant(generation);
  if (index == 0) {
    os::close_fd(pidfd);
    return make_error(Code::no_memory, 0, "%zu spaces are open, which is the limit; close one",
                      max_spaces - 1);
  }
  SpaceSlot& entry = entries[index];
  entry.pid = pid;
  entry.pidfd = os::Descriptor::of(pidfd);
  entry.started = os::process_start(pid);
  entry.own_memory = own_memory;
  // Release: pairs with the acquire in acquire_space().
  entry.word.store(Word{SpaceState::open, generation, 0}.pack(), std::memory_order_release);
  return static_cast<Space>(generation << 8 | index);
}

Code close_space(Space space) noexcept {
  if (index_of(space) == 0) return Code::invalid;
  SpaceSlot& entry = entries[index_of(space)];
  std::uint64_t bits = entry.word.load(std::memory_order_relaxed);
  while (true) {
    Word word = Word::unpack(bits);
    if (word.state != SpaceState::open || word.generation != generation_of(space))
      return Code::invalid;
    word.state = word.users == 0 ? SpaceState::changing : SpaceState::closing;
    // Acquire: all uses are over before the descriptor is closed; pairs with release_space().
    if (entry.word.compare_exchange_weak(bits, word.pack(), std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
      if (word.users == 0) vacate(entry, word.generation);
      return Code::ok;
    }
  }
}

bool space_open(Space space) noexcept {
  if (space == self_space) return true;
  if (index_of(space) == 0) return false;
  const Word word = Word::unpack(entries[index_of(space)].word.load(std::memory_order_relaxed));
  return word.state == SpaceState::open && word.generation == generation_of(space);
}

namespace {

// An entry that is no process's: filled in by `fill`, then open.
template <class Fill>
Expected<Space> open_entry(Fill fill) noexcept {
  std::uint32_t generation = 0;
  const std::size_t index = take_vacant(generation);
  if (index == 0) {
    return make_error(Code::no_memory, 0, "%zu spaces are open, which is the limit; close one",
                      max_spaces - 1);
  }
  SpaceSlot& entry = entries[index];
  entry.pid = 0;
  entry.pidfd = os::Descriptor();
  entry.own_memory = false;
  fill(entry);
  // Release: pairs with the acquire in is_grant() and device_memory().
  entry.word.store(Word{SpaceState::open, generation, 0}.pack(), std::memory_order_release);
  return static_cast<Space>(generation << 8 | index);
}

}  // namespace

Expected<Space> open_grant_space() noexcept {
  return open_entry([](SpaceSlot& entry) { entry.grant = true; });
}

bool is_grant(Space space) noexcept {
  if (index_of(space) == 0) return false;
  const SpaceSlot& entry = entries[index_of(space)];
  const Word word = Word::unpack(entry.word.load(std::memory_order_acquire));
  return word.state == SpaceState::open && word.generation == generation_of(space) && entry.grant;
}

Expected<Space> open_memory_space(DeviceMemory memory) noexcept {
  return open_entry([&](SpaceSlot& entry) { entry.device = memory; });
}

DeviceMemory device_memory(Space space) noexcept {
  if (index_of(space) == 0) return {};
  const SpaceSlot& entry = entries[index_of(space)];
  const Word word = Word::unpack(entry.word.load(std::memory_order_acquire));
  const bool open = word.state == SpaceState::open && word.generation == generation_of(space);
  return open ? entry.device : DeviceMemory{};
}

SpaceUse acquire_space(Space space) noexcept {
  SpaceUse use;
  if (space == self_space) {
    use.code = Code::ok;
    use.own_memory = true;
    return use;
  }
  if (index_of(space) == 0) return use;
  SpaceSlot& entry = entries[index_of(space)];
  std::uint64_t bits = entry.word.load(std::memory_order_relaxed);
  while (true) {
    Word word = Word::unpack(bits);
    if (word.state != SpaceState::open || word.generation != generation_of(space)) return use;
    ++word.users;
    // Acquire: pairs with the release that opened the entry.
    if (entry.word.compare_exchange_weak(bits, word.pack(), std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
      use.code = Code::ok;
      use.pid = entry.pid;
      use.pidfd = entry.pidfd;
      use.started = entry.started;
      use.own_memory = entry.own_memory;
      return use;
    }
  }
}

void release_space(Space space) noexcept {
  if (index_of(space) == 0) return;
  SpaceSlot& entry = entries[index_of(space)];
  std::uint64_t bits = entry.word.load(std::memory_order_relaxed);
  while (true) {
    Word word = Word::unpack(bits);
    --word.users;
    const bool last = word.state == SpaceState::closing && word.users == 0;
    if (last) word.state = SpaceState::changing;
    // Release: what this use did comes before the close. Acquire: so does what the others did.
    if (entry.word.compare_exchange_weak(bits, word.pack(), std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
      if (last) vacate(entry, word.generation);
      return;
    }
  }
}

bool same_memory(Space a, Space b) noexcept {
  if (a == b) return true;
  const DeviceMemory one = device_memory(a), other = device_memory(b);
  if (one || other) return one.engine == other.engine && one.region == other.region;
  const SpaceUse first = acquire_space(a);
  const SpaceUse second = acquire_space(b);
  const bool both_known = first.code == Code::ok && second.code == Code::ok;
  const bool same = both_known && ((first.own_memory && second.own_memory) ||
                                   (first.pid != 0 && first.pid == second.pid));
  if (first.code == Code::ok) release_space(a);
  if (second.code == Code::ok) release_space(b);
  return same;
}

}  // namespace haul
