// process_vm_readv and process_vm_writev, made exact: short transfers, faults, and peers that die.
#include "engine/cma/transfer.hpp"

#include <atomic>
#include <cerrno>

#include "base/machine/pages.hpp"
#include "base/os/os.hpp"

namespace haul::cma {
namespace {

// The kernel protects memory, and reports faults, by pages of this size or multiples of it.
using os::page_bytes;
// Far below MAX_RW_COUNT (2 GiB - 4 KiB). A call pins a megabyte or more at a time anyway.
constexpr std::size_t call_bytes = 64 * 1024 * 1024;

Code code_of(int sys_errno) noexcept {
  switch (sys_errno) {
    case EFAULT: return Code::fault;
    case EPERM:
    case EACCES: return Code::permission;
    case ESRCH: return Code::peer_gone;
    case ENOMEM: return Code::no_memory;
    case ENOSYS: return Code::not_supported;
    default: return Code::io;
  }
}

bool gone(const Party& party) noexcept {
  if (!party.pidfd.valid()) return false;
  if (const int pidfd = party.pidfd.get(); pidfd >= 0) return !os::pidfd_alive(pidfd);
  return party.started == 0 || os::process_start(party.pid) != party.started;
}

std::size_t smaller(std::size_t a, std::size_t b) noexcept {
  return a < b ? a : b;
}

std::size_t to_page_end(std::uintptr_t address) noexcept {
  return page_bytes - (address & (page_bytes - 1));
}

iovec range(std::uintptr_t address, std::size_t length) noexcept {
  return iovec{reinterpret_cast<void*>(address), length};
}

ssize_t call(Direction direction, const Party& party, const iovec* here, std::size_t here_count,
             const iovec* there, std::size_t there_count) noexcept {
  return direction == Direction::read
             ? os::read_process(party.pid, here, here_count, there, there_count)
             : os::write_process(party.pid, here, here_count, there, there_count);
}

}  // namespace

Outcome transfer(Direction direction, const Party& party, std::uintptr_t here, std::uintptr_t there,
                 std::size_t length) noexcept {
  std::size_t done = 0;
  // Looks before the transfer, since a reused pid must not be written to, and after each call,
  // since what a reused pid gave is not good. (Each look is a system call, 0.3 us.)
  if (direction == Direction::write && gone(party)) return Outcome{0, Code::peer_gone};
  bool within_a_page = false;
  while (done < length) {
    // After a fault that moved nothing, it asks for what lies on one page of each side: that is
    // accessible as a whole or not at all, while for more the kernel may have counted too little.
    const std::size_t page = smaller(to_page_end(here + done), to_page_end(there + done));
    const std::size_t rest = smaller(length - done, call_bytes);
    const std::size_t ask = within_a_page ? smaller(rest, page) : rest;
    const iovec local = range(here + done, ask), remote = range(there + done, ask);
    const ssize_t moved = call(direction, party, &local, 1, &remote, 1);
    if (moved > 0) {
      if (gone(party)) return Outcome{done, Code::peer_gone};
      done += static_cast<std::size_t>(moved);
      within_a_page = false;
    } else if (moved == -EFAULT && ask > page) {
      within_a_page = true;
    } else if (moved != -EINTR) {
      if (gone(party)) return Outcome{done, Code::peer_gone};
      return Outcome{done, moved == 0 ? Code::io : code_of(static_cast<int>(-moved))};
    }
  }
  return Outcome{length, Code::ok};
}

Outcome accessible(const Party& party, std::uintptr_t there, std::size_t length,
                   bool writable) noexcept {
  constexpr std::size_t batch = 64;
  std::byte bytes[batch];
  iovec remote[batch];
  std::size_t known = 0;  // bytes from the front that are accessible
  if (gone(party)) return Outcome{0, Code::peer_gone};
  while (known < length) {
    std::size_t count = 0;
    std::size_t reach = known;
    for (; count < batch && reach < length; ++count) {
      remote[count] = range(there + reach, 1);
      reach = smaller(length, reach + to_page_end(there + reach));
    }
    iovec local = range(reinterpret_cast<std::uintptr_t>(bytes), count);
    ssize_t pages = call(Direction::read, party, &local, 1, remote, count);
    if (pages > 0 && writable) {
      local.iov_len = static_cast<std::size_t>(pages);
      pages = call(Direction::write, party, &local, 1, remote, local.iov_len);
    }
    if (gone(party)) return Outcome{known, Code::peer_gone};
    if (pages == -EINTR) continue;
    if (pages <= 0) {
      return Outcome{known, pages == 0 ? Code::io : code_of(static_cast<int>(-pages))};
    }
    // A short count: the next call begins at the page that failed, and returns the reason.
    for (ssize_t page = 0; page < pages; ++page) {
      known = smaller(length, known + to_page_end(there + known));
    }
  }
  return Outcome{length, Code::ok};
}

int self_test() noexcept {
  // errno + 1 once known. Relaxed: every thread finds the same.
  static constinit std::atomic<int> known{0};
  int stored = known.load(std::memory_order_relaxed);
  if (stored == 0) {
    std::uint64_t from = 1, to = 0;
    const iovec remote{&from, sizeof from};
    const iovec local{&to, sizeof to};
    const ssize_t got = os::read_process(os::thread_id(), &local, 1, &remote, 1);
    stored = (got < 0 ? static_cast<int>(-got) : got == sizeof from ? 0 : EIO) + 1;
    known.store(stored, std::memory_order_relaxed);
  }
  return stored - 1;
}

}  // namespace haul::cma
