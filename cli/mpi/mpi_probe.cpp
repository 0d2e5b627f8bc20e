#include "cli/mpi/mpi_probe.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

#include "base/error.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "tools/failure.hpp"
#include "tools/program.hpp"

namespace haul::cli {
namespace {

constexpr std::size_t page_bytes = 4096, huge_page_bytes = std::size_t{2} << 20;
constexpr std::uint64_t nonce = 0x6861756c'6d657367;
constexpr int limit_ms = 5000;
constexpr int collapse_advice = 25;  // MADV_COLLAPSE, since Linux 6.1

// Shared by the children and the parent.
struct ProbeBoard {
  std::atomic<std::uint64_t> address{0};  // of the nonce in the first child
  std::atomic<std::uint32_t> told{0};     // 1: both results are there
  std::int32_t kernel_error = 0;          // 0: the read worked; else errno, or -1 for wrong bytes
  std::int32_t huge_error = 0;
  std::uint64_t mapped = 0;  // the nonce, written by the second child through its mapping
};

std::int32_t try_huge_pages() {
  const std::size_t bytes = 2 * huge_page_bytes;
  void* area = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) return errno;
  const auto begin = reinterpret_cast<std::uintptr_t>(area);
  auto* page = reinterpret_cast<std::byte*>((begin + huge_page_bytes - 1) / huge_page_bytes *
                                            huge_page_bytes);
  std::memset(page, 1, huge_page_bytes);
  return madvise(page, huge_page_bytes, collapse_advice) == 0 ? 0 : errno;
}

// Reads the first child's word, as a rank reads another's.
std::int32_t try_kernel(pid_t other, std::uint64_t address) {
  std::uint64_t seen = 0;
  const iovec local{&seen, sizeof seen};
  const iovec remote{reinterpret_cast<void*>(address), sizeof seen};
  const ssize_t moved = os::read_process(other, &local, 1, &remote, 1);
  if (moved < 0) return static_cast<std::int32_t>(-moved);
  return moved == sizeof seen && seen == nonce ? 0 : -1;
}

[[noreturn]] void be_read(int fd) {
  auto* board = static_cast<ProbeBoard*>(os::map_shared(nullptr, page_bytes, fd, 0));
  if (board == nullptr) _exit(1);
  volatile std::uint64_t word = nonce;
  board->address.store(reinterpret_cast<std::uintptr_t>(&word), std::memory_order_release);
  for (;;) pause();
}

[[noreturn]] void read_other(int fd, pid_t other) {
  auto* board = static_cast<ProbeBoard*>(os::map_shared(nullptr, page_bytes, fd, 0));
  if (board == nullptr) _exit(1);
  std::uint64_t address = 0;
  while ((address = board->address.load(std::memory_order_acquire)) == 0) os::sleep_ns(100'000);
  board->kernel_error = try_kernel(other, address);
  board->huge_error = try_huge_pages();
  board->mapped = nonce;
  board->told.store(1, std::memory_order_release);
  _exit(0);
}

void end_child(pid_t pid) {
  if (pid > 0) tools::kill_and_reap(pid);
}

std::string kernel_remedy(std::int32_t error) {
  char scope[16] = "";
  const bool yama = os::read_file("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope) > 0 &&
                    scope[0] != '0';
  if (error == EPERM && yama) {
    return fmt::format(
        "cma: the kernel lets no process read another's memory here "
        "(kernel.yama.ptrace_scope is {}); `sysctl kernel.yama.ptrace_scope=0` allows it",
        scope[0]);
  }
  if (error == EPERM || error == ENOSYS) {
    return fmt::format(
        "cma: process_vm_readv is refused ({}), as by a container's seccomp filter; allow it, or "
        "give the container CAP_SYS_PTRACE",
        describe_errno(error));
  }
  return error == -1 ? "cma: process_vm_readv reads other bytes than the peer has; report this"
                     : fmt::format("cma: process_vm_readv fails ({})", describe_errno(error));
}

}  // namespace

PairProbe probe_pair() {
  const int fd = os::make_sealed("haul-probe", page_bytes);
  void* at = fd < 0 ? nullptr : os::map_shared(nullptr, page_bytes, fd, 0);
  if (at == nullptr) {
    const int error = fd < 0 ? -fd : ENOMEM;
    os::close_fd(fd);
    throw tools::CommandFailure(fmt::format(
        "two processes cannot share memory here ({}); allow memfd_create and raise memory limits",
        describe_errno(error)));
  }
  auto* board = new (at) ProbeBoard;
  const pid_t first = fork();
  if (first == 0) be_read(fd);
  const pid_t second = first < 0 ? -1 : fork();
  if (second == 0) read_other(fd, first);
  bool told = false;
  for (int waited = 0; second > 0 && !told && waited < limit_ms; ++waited) {
    told = board->told.load(std::memory_order_acquire) == 1;
    if (!told) os::sleep_ns(1'000'000);
  }
  end_child(second);
  end_child(first);
  PairProbe probe;
  probe.abilities.ring = probe.abilities.mapped = told && board->mapped == nonce;
  probe.abilities.cma = told && board->kernel_error == 0;
  if (told && board->kernel_error != 0) probe.abilities.why = kernel_remedy(board->kernel_error);
  probe.huge_pages = told && board->huge_error == 0;
  if (told && board->huge_error != 0) {
    probe.why_not_huge = fmt::format(
        "private memory cannot be moved to huge pages here ({}); it takes Linux 6.1 and "
        "/sys/kernel/mm/transparent_hugepage/enabled other than never",
        describe_errno(board->huge_error));
  }
  munmap(at, page_bytes);
  os::close_fd(fd);
  if (!told) {
    throw tools::CommandFailure(
        "the two processes that try out the paths do not answer; raise the limit of processes "
        "(ulimit -u) and try again");
  }
  return probe;
}

}  // namespace haul::cli
