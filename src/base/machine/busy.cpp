#include "base/machine/busy.hpp"

#include <atomic>
#include <cstring>

#include "base/machine/sysfs.hpp"
#include "base/os/os.hpp"

namespace haul {
namespace {

// Read once, since CPUs come and go rarely; 0: not yet.
constinit std::atomic<unsigned> cpus_online{0};

unsigned online_now() noexcept {
  unsigned known = cpus_online.load(std::memory_order_relaxed);
  if (known == 0) {
    char text[512];
    CpuSet online;
    const ssize_t length = os::read_file("/sys/devices/system/cpu/online", text, sizeof text);
    if (length > 0 && text[length - 1] == '\n') text[length - 1] = '\0';
    const bool found = length > 0 && parse_cpu_list(text, online);
    known = found ? online.count() : max_cpus;
    cpus_online.store(known, std::memory_order_relaxed);
  }
  return known;
}

}  // namespace

// "0.20 0.18 0.12 3/80 11206": the fourth word is runnable threads/all threads.
unsigned runnable_threads(const char* file) noexcept {
  char text[128];
  if (os::read_file(file, text, sizeof text) <= 0) return 0;
  char* word = text;
  for (int i = 0; i < 3; ++i) {
    word = strchr(word, ' ');
    if (word == nullptr) return 0;
    ++word;
  }
  char* const slash = strchr(word, '/');
  if (slash == nullptr) return 0;
  *slash = '\0';
  unsigned long runnable = 0;
  return parse_number(word, runnable) ? static_cast<unsigned>(runnable) : 0;
}

bool cpus_are_taken() noexcept {
  return runnable_threads("/proc/loadavg") > online_now();
}

bool cpus_are_crowded() noexcept {
  return runnable_threads("/proc/loadavg") > 2 * online_now();
}

}  // namespace haul
