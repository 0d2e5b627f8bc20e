#include "base/thread/own_threads.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/machine/clock.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/thread/tasks.hpp"

namespace haul::os {
namespace {

// The name of the thread that is made to end last. Each library of haul's may make one.
constexpr const char last_name[] = "haul-last";

enum class ThreadKind : std::uint8_t {
  gone,    // a main thread that has called pthread_exit() stays as a zombie
  last,    // an ordinary one that waits for the others to end
  own,     // another of haul's
  server,  // serves other processes, and keeps this one alive (atomic.h)
  foreign
};

// The text behind "\nName:\t" and the like; "" if there is none.
const char* field(const char* status, const char* name) noexcept {
  const char* const found = std::strstr(status, name);
  return found == nullptr ? "" : found + std::strlen(name);
}

bool begins_with(const char* text, const char* word) noexcept {
  return std::strncmp(text, word, std::strlen(word)) == 0;
}

// A program whose own name is of this kind names its threads like its main thread.
bool is_called_as_main(const char* name) noexcept {
  char main_name[32];
  if (read_file("/proc/self/comm", main_name, sizeof main_name) <= 0) return true;
  return begins_with(name, main_name);  // both end in a line feed
}

ThreadKind kind_of(pid_t thread) noexcept {
  char path[64], status[2048];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/status", static_cast<int>(thread));
  const ssize_t length = read_file(path, status, sizeof status);
  if (length == -ENOENT || length == -ESRCH) return ThreadKind::gone;
  if (length <= 0) return ThreadKind::foreign;  // no descriptor was left, so nobody can tell
  const char state = *field(status, "\nState:\t");
  if (state == 'Z' || state == 'X') return ThreadKind::gone;
  const bool is_main = std::strtol(field(status, "\nTgid:\t"), nullptr, 10) ==
                       std::strtol(field(status, "\nPid:\t"), nullptr, 10);
  if (is_main) return ThreadKind::foreign;
  constexpr const char name_field[] = "Name:\t";
  const char* const name = status + sizeof name_field - 1;
  if (!begins_with(status, name_field) || !begins_with(name, "haul-")) return ThreadKind::foreign;
  if (begins_with(name, last_name)) return ThreadKind::last;
  const std::uint64_t blocked = std::strtoull(field(status, "\nSigBlk:\t"), nullptr, 16);
  if (!blocks_asynchronous(blocked) || is_called_as_main(name)) return ThreadKind::foreign;
  for (const char* server : {"haul-atomic", "haul-attendant", "haul-fabric"}) {
    if (begins_with(name, server)) return ThreadKind::server;
  }
  return ThreadKind::own;
}

constinit std::atomic<bool> one_is_made{false};

// What the other threads are: foreign if one is, else server if one is, else own; last if there are
// none.
ThreadKind look_around() noexcept {
  ThreadKind most = ThreadKind::last;
  const auto see = [](pid_t thread, void* context) {
    ThreadKind& all = *static_cast<ThreadKind*>(context);
    all = std::max(all, kind_of(thread));
    return all != ThreadKind::foreign;
  };
  return for_each_task("/proc/self/task", see, &most) ? most : ThreadKind::foreign;
}

// glibc calls exit() on the last thread to end. This one calls it where haul's others do not end: a
// mover's memory may not arrive, or a file system not answer, and exit() leaves those behind.
void* end_last(void* before) noexcept {
  constexpr std::uint64_t longest_ns = 250'000'000, patience_ns = 1'000'000'000;
  name_thread(last_name);
  if (before != nullptr) pthread_join(reinterpret_cast<pthread_t>(before), nullptr);
  const std::uint64_t begun = now_ns();
  std::uint64_t wait_ns = 1'000'000;
  for (ThreadKind others = look_around(); others != ThreadKind::last; others = look_around()) {
    if (others == ThreadKind::own && now_ns() - begun >= patience_ns) std::exit(0);
    sleep_ns(wait_ns);
    wait_ns = std::min(2 * wait_ns, longest_ns);
  }
  return nullptr;
}

// `before` is a thread that the new one joins.
bool make_last(void* before) noexcept {
  sigset_t none;
  sigemptyset(&none);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  pthread_attr_setsigmask_np(&attributes, &none);
  const bool made = pthread_create(&thread, &attributes, end_last, before) == 0;
  pthread_attr_destroy(&attributes);
  return made;
}

bool end_process(void* before) noexcept {
  const KeepErrno keep;
  if (!only_own_threads() || one_is_made.exchange(true, std::memory_order_relaxed)) return false;
  const bool made = make_last(before);
  if (!made) one_is_made.store(false, std::memory_order_relaxed);
  return made;
}

}  // namespace

bool any_own_threads() noexcept {
  bool any = false;
  const auto see = [](pid_t thread, void* context) {
    const bool own = kind_of(thread) == ThreadKind::own;
    *static_cast<bool*>(context) = own;
    return !own;
  };
  return !for_each_task("/proc/self/task", see, &any) || any;
}

bool only_own_threads() noexcept {
  return look_around() != ThreadKind::foreign;
}

bool end_process_elsewhere() noexcept {
  return end_process(reinterpret_cast<void*>(pthread_self()));
}

bool end_process_anyway() noexcept {
  return end_process(nullptr) || one_is_made.load(std::memory_order_relaxed);
}

}  // namespace haul::os
