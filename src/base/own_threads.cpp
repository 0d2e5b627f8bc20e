// Looks at /proc/self/task.
#include "base/own_threads.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
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

// "1234 (name) S ..." of a thread: is it another living one, and haul's? A main thread that has
// called pthread_exit() stays as a zombie.
struct Thread {
  bool alive = false, own = false;
};

Thread look_at(const char* id) noexcept {
  char path[64], text[128];
  std::snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", id);
  if (read_file(path, text, sizeof text) <= 0) return {};  // it has ended
  const char* name = std::strchr(text, '(');
  const char* end = std::strrchr(text, ')');
  if (name == nullptr || end == nullptr || std::strlen(end) < 3) return Thread{true, false};
  return Thread{end[2] != 'Z' && end[2] != 'X', std::strncmp(name, "(haul-", 6) == 0};
}

struct Count {
  unsigned living = 0, foreign = 0;  // the calling thread is among the living
};

bool count_threads(Count* count) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  alignas(8) char entries[2048];
  long bytes = 0;
  while ((bytes = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
    for (long at = 0; at < bytes;) {
      Entry entry;
      std::memcpy(&entry, entries + at, offsetof(Entry, name));
      const char* name = entries + at + offsetof(Entry, name);
      at += entry.length;
      const Thread thread = name[0] == '.' ? Thread{} : look_at(name);
      count->living += thread.alive;
      count->foreign += thread.alive && !thread.own;
    }
  }
  close(fd);
  return bytes == 0 && count->living != 0;
}

constinit std::atomic<bool> one_is_made{false};

void* end_last(void* before) noexcept {
  constexpr std::uint64_t longest_ns = 1'000'000'000;
  pthread_join(reinterpret_cast<pthread_t>(before), nullptr);
  Count count;
  for (std::uint64_t wait_ns = 1'000'000; count_threads(&count) && count.living > 1;
       wait_ns = std::min(2 * wait_ns, longest_ns)) {
    sleep_ns(wait_ns);
    count = Count{};
  }
  return nullptr;
}

}  // namespace

bool only_own_threads() noexcept {
  Count count;
  return count_threads(&count) && count.foreign == 0;
}

bool end_process_elsewhere() noexcept {
  const KeepErrno keep;
  Count count;
  if (!count_threads(&count) || count.foreign != 0) return false;
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
