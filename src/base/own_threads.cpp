// Looks at /proc/self/task.
#include "base/own_threads.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/keep_errno.hpp"
#include "base/os.hpp"
#include "base/uncancelled.hpp"

namespace haul::os {
namespace {

// As the kernel writes it.
struct Entry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[1];
};

// What the thread is called that is made to end last. Each library of haul's may make one.
constexpr const char last_name[] = "haul-last";

enum class Kind : std::uint8_t {
  gone,  // a main thread that has called pthread_exit() stays as a zombie
  last,  // ordinary, and waits for the others to end
  own,   // another of haul's
  foreign
};

// What stands behind "\nName:\t" and the like; "" if nothing does.
const char* field(const char* status, const char* name) noexcept {
  const char* const found = std::strstr(status, name);
  return found == nullptr ? "" : found + std::strlen(name);
}

Kind kind_of(const char* id) noexcept {
  char path[64], status[2048];
  std::snprintf(path, sizeof path, "/proc/self/task/%.20s/status", id);
  const ssize_t length = read_file(path, status, sizeof status);
  if (length == -ENOENT || length == -ESRCH) return Kind::gone;
  if (length <= 0) return Kind::foreign;  // nobody can tell, for want of descriptors
  const char state = *field(status, "\nState:\t");
  if (state == 'Z' || state == 'X') return Kind::gone;
  const bool is_main = std::strtol(field(status, "\nTgid:\t"), nullptr, 10) ==
                       std::strtol(field(status, "\nPid:\t"), nullptr, 10);
  if (is_main) return Kind::foreign;
  constexpr const char name_field[] = "Name:\t";
  const char* const name = status + sizeof name_field - 1;
  if (std::strncmp(status, name_field, sizeof name_field - 1) != 0) return Kind::foreign;
  if (std::strncmp(name, last_name, sizeof last_name - 1) == 0) return Kind::last;
  const std::uint64_t blocked = std::strtoull(field(status, "\nSigBlk:\t"), nullptr, 16);
  const bool own = std::strncmp(name, "haul-", 5) == 0 && blocks_asynchronous(blocked);
  return own ? Kind::own : Kind::foreign;
}

// Calls see(kind) for each thread, the calling one among them, until it says false. False where
// /proc does not tell.
template <class See>
bool for_each_thread(See see) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  alignas(8) char entries[2048];
  long bytes = 0;
  bool goes_on = true, seen = false;
  while (goes_on && (bytes = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
    for (long at = 0; goes_on && at < bytes;) {
      Entry entry;
      std::memcpy(&entry, entries + at, offsetof(Entry, name));
      const char* name = entries + at + offsetof(Entry, name);
      at += entry.length;
      if (name[0] == '.') continue;
      seen = true;
      goes_on = see(kind_of(name));
    }
  }
  close(fd);
  return bytes >= 0 && seen;
}

constinit std::atomic<bool> one_is_made{false};

bool others_live() noexcept {
  bool found = false;
  const bool told = for_each_thread([&found](Kind kind) {
    found = kind == Kind::own || kind == Kind::foreign;
    return !found;
  });
  return told && found;
}

void* end_last(void* before) noexcept {
  constexpr std::uint64_t longest_ns = 1'000'000'000;
  name_thread(last_name);
  pthread_join(reinterpret_cast<pthread_t>(before), nullptr);
  for (std::uint64_t wait_ns = 1'000'000; others_live();
       wait_ns = std::min(2 * wait_ns, longest_ns)) {
    sleep_ns(wait_ns);
  }
  return nullptr;
}

}  // namespace

bool only_own_threads() noexcept {
  bool found = false;
  const bool told = for_each_thread([&found](Kind kind) {
    found = kind == Kind::foreign;
    return !found;
  });
  return told && !found;
}

bool end_process_elsewhere() noexcept {
  const KeepErrno keep;
  if (!only_own_threads()) return false;
  if (one_is_made.exchange(true, std::memory_order_relaxed)) return false;
  sigset_t none;
  sigemptyset(&none);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  pthread_attr_setsigmask_np(&attributes, &none);
  const bool made =
      pthread_create(&thread, &attributes, end_last, reinterpret_cast<void*>(pthread_self())) == 0;
  pthread_attr_destroy(&attributes);
  if (!made) one_is_made.store(false, std::memory_order_relaxed);
  return made;
}

}  // namespace haul::os
