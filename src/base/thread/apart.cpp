// A detached thread; where a FUSE file system is mounted, a helper process below it.
#include "base/thread/apart.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/os/raw_file.hpp"
#include "base/sanitizer.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {

namespace {

constexpr std::size_t helper_stack_bytes = std::size_t{256} << 10;

constexpr int no_descriptor = -1;

struct Helped {
  const Apart& work;
  int fd;  // no_descriptor: the table is the caller's own
};

int run_in_helper(void* argument) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // as soon as its wait can be ended
  unshare(CLONE_FS);                 // a process that shares it cannot run set-user-id programs
  const Helped& helped = *static_cast<const Helped*>(argument);
  if (helped.fd != no_descriptor) keep_alone(helped.fd);
  helped.work.body(helped.work.argument);
  return 0;
}

// The helper shares this process's memory, and wait() does not see it as a child, since it has no
// exit signal. (With CLONE_FS and CLONE_FILES it would look like a thread to valgrind.) False: it
// could not be made.
bool done_by_helper(const Apart& work, int fd) noexcept {
  void* stack = map_anonymous(helper_stack_bytes);
  if (stack == nullptr) return false;
  Helped helped{work, fd};
  const pid_t helper = clone(run_in_helper, static_cast<char*>(stack) + helper_stack_bytes,
                             CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED, &helped);
  if (helper > 0) {
    // The helper uses this thread's local storage, so this thread does nothing but wait.
    while (waitpid(helper, nullptr, static_cast<int>(__WCLONE)) < 0 && errno == EINTR) {
    }
  }
  unmap(stack, helper_stack_bytes);
  return helper > 0;
}

void* run(void* argument) noexcept {
  const Apart& work = *static_cast<const Apart*>(argument);
  name_thread(work.name);
  detach_self();
  run_apart(work);
  return nullptr;
}

// Does a type begin here on whose mounts a wait cannot be ended? It stands after " - ", and spaces
// within fields are escaped.
bool is_unkillable(const char* text) noexcept {
  for (const char* type : {" - fuse.", " - fuse ", " - fuseblk ", " - virtiofs "}) {
    if (strncmp(text, type, strlen(type)) == 0) return true;
  }
  return false;
}

}  // namespace

int start_apart(const Apart& work) noexcept {
  pthread_t thread;
  return start_thread(&thread, run, const_cast<Apart*>(&work));
}

void run_apart(const Apart& work) noexcept {
  widen_mask();  // the thread's maker may be pinned
  own_descriptors();
  run_apart_with(no_descriptor, work);
}

void run_apart_with(int fd, const Apart& work) noexcept {
  // (A sanitizer's runtime does not understand such helpers.)
  if (accesses_are_checked || !has_unkillable_mounts("/proc/thread-self/mountinfo") ||
      !done_by_helper(work, fd)) {
    work.body(work.argument);
  }
}

bool own_descriptors() noexcept {
  const KeepErrno keep;
  return syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE) == 0;
}

bool keep_alone(int fd) noexcept {
  const KeepErrno keep;
  const auto kept = static_cast<unsigned>(fd);
  if (syscall(SYS_close_range, kept + 1, ~0u, CLOSE_RANGE_UNSHARE) != 0) return false;
  if (kept != 0) syscall(SYS_close_range, 0u, kept - 1, 0u);
  return true;
}

bool has_unkillable_mounts(const char* table) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = above_streams(raw_open(table, O_RDONLY | O_CLOEXEC));
  if (fd < 0) return false;
  constexpr std::size_t longest = 16;  // more than any type above
  char text[4096];
  std::size_t kept = 0;
  bool found = false;
  for (ssize_t bytes; !found && (bytes = raw_read(fd, text + kept, sizeof text - 1 - kept)) > 0;) {
    const std::size_t size = kept + static_cast<std::size_t>(bytes);
    text[size] = '\0';
    for (std::size_t at = 0; at < size && !found; ++at) found = is_unkillable(text + at);
    kept = size < longest ? size : longest;
    memmove(text, text + size - kept, kept);
  }
  raw_close(fd);
  return found;
}

}  // namespace haul::os
