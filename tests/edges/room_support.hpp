// What a process has of memory and descriptors, and many threads that use haul at once.
#pragma once

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "e2e/support.hpp"

namespace edges {

using namespace e2e;

inline std::size_t kib_of(const char* path, const char* name) {
  char line[256];
  std::size_t kib = 0;
  std::FILE* file = std::fopen(path, "r");
  CHILD_CHECK(file != nullptr);
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, name, std::strlen(name)) == 0)
      kib = std::strtoull(line + std::strlen(name), nullptr, 10);
  }
  std::fclose(file);
  return kib;
}
inline std::size_t resident_kib() {
  return kib_of("/proc/self/smaps_rollup", "Rss:");
}
inline std::size_t locked_kib() {
  return kib_of("/proc/self/status", "VmLck:");
}

inline int descriptors() {
  DIR* directory = opendir("/proc/self/fd");
  CHILD_CHECK(directory != nullptr);
  int count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

// `count` threads that live at the same time and call body(index); `together` runs while they do.
template <class Body, class Together>
void with_threads(unsigned count, Body body, Together together) {
  struct Shared {
    Body& body;
    std::atomic<unsigned> next{0};
    pthread_barrier_t all, end;
  } shared{body, {}, {}, {}};
  pthread_barrier_init(&shared.all, nullptr, count + 1);
  pthread_barrier_init(&shared.end, nullptr, count + 1);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes,
                            std::max(static_cast<std::size_t>(PTHREAD_STACK_MIN), 128 * kib));
  std::vector<pthread_t> threads(count);
  for (pthread_t& thread : threads) {
    CHILD_EQUAL(pthread_create(
                    &thread, &attributes,
                    [](void* argument) -> void* {
                      auto& own = *static_cast<Shared*>(argument);
                      own.body(own.next.fetch_add(1));
                      pthread_barrier_wait(&own.all);
                      pthread_barrier_wait(&own.end);
                      return nullptr;
                    },
                    &shared),
                0);
  }
  pthread_barrier_wait(&shared.all);
  together();
  pthread_barrier_wait(&shared.end);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// A copy by the mover, whatever its size, with an entry in the thread's completion queue.
inline haul_ticket copy_by_mover(void* to, const void* from, std::size_t bytes) {
  haul_request request = haul_request_copy(to, from, bytes);
  request.flags = HAUL_DEDICATED | HAUL_COMPLETE;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  return ticket;
}

// Many requests, so that every part of a ring has been used, and an event descriptor.
inline void use_a_ring() {
  const Buffer src(4 * kib), dst(4 * kib);
  src.fill(7);
  haul_completion entries[16];
  for (int i = 0; i < 1100; ++i) {
    CHILD_EQUAL(haul_wait(copy_by_mover(dst.data(), src.data(), src.size())), 0);
    CHILD_EQUAL(haul_reap(entries, 16), 1);
  }
  CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
  CHILD_CHECK(haul_reap_eventfd() >= 0);
}

inline void allow_descriptors(unsigned count) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < count) _exit(skip_status);
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, count);
  CHILD_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

}  // namespace edges
