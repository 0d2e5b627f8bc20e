// A node that serves a window, a node that is its client, and a lock of theirs, in one process:
// what the tests of remote atomics at the process's edge have open.
#pragma once

#include <haul/atomic.h>

#include "e2e/support.hpp"

namespace e2e {

inline haul_atomic_node_options atomic_options() {
  haul_atomic_node_options options{};
  options.size = sizeof options;
  options.timeout_ns = 20'000'000'000;
  return options;
}

#define ATOMIC_OK(call)                                                                          \
  do {                                                                                           \
    const int atomic_result = (call);                                                            \
    if (atomic_result != 0) {                                                                    \
      std::fprintf(stderr, "%s:%d: child %d: %.200s is %d (%s)\n", __FILE__, __LINE__, getpid(), \
                   #call, atomic_result, haul_last_error());                                     \
      _exit(1);                                                                                  \
    }                                                                                            \
  } while (false)

// Of a child: each failure ends it.
struct AtomicScene {
  explicit AtomicScene(const char* responder = "block:127.0.0.1") {
    const haul_atomic_node_options options = atomic_options();
    ATOMIC_OK(haul_atomic_node_open(responder, &options, &server));
    ATOMIC_OK(haul_atomic_window_create(server, 8192, &window));
    ATOMIC_OK(haul_atomic_window_export(window, &name));
    ATOMIC_OK(haul_atomic_node_open("none", &options, &client));
    ATOMIC_OK(haul_atomic_connect(client, &name, &remote));
    lock = open_lock();
  }
  // Its words lie behind the first 4 KiB.
  haul_atomic_lock* open_lock(std::uint64_t home_offset = 4096) {
    const haul_atomic_lock_place home{name, home_offset}, member{name, home_offset + 64};
    haul_atomic_lock_options options{};
    options.size = sizeof options;
    options.count = 1;
    options.home = &home;
    options.members = &member;
    haul_atomic_lock* made = nullptr;
    ATOMIC_OK(haul_atomic_lock_open(client, window, &options, &made));
    return made;
  }
  std::uint64_t& word() { return *static_cast<std::uint64_t*>(haul_atomic_window_memory(window)); }
  // Everything still does what it did.
  void works() {
    std::uint64_t token = 0, old = 0;
    const std::uint64_t before = __atomic_load_n(&word(), __ATOMIC_SEQ_CST);
    ATOMIC_OK(haul_atomic_fetch_add(remote, name.address, 1, &old));
    CHILD_EQUAL(old, before);
    ATOMIC_OK(haul_atomic_lock_acquire(lock, 20'000'000'000, &token));
    ATOMIC_OK(haul_atomic_lock_release(lock));
    haul_atomic_window* attached = nullptr;
    ATOMIC_OK(haul_atomic_window_attach(&name, &attached));
    CHILD_EQUAL(*static_cast<std::uint64_t*>(haul_atomic_window_memory(attached)), before + 1);
    ATOMIC_OK(haul_atomic_window_destroy(attached));
    haul_atomic_remote* other = nullptr;
    ATOMIC_OK(haul_atomic_connect(client, &name, &other));
    ATOMIC_OK(haul_atomic_fetch_add(other, name.address, 1, &old));
    CHILD_EQUAL(old, before + 1);
    ATOMIC_OK(haul_atomic_disconnect(other));
  }
  void close() {
    ATOMIC_OK(haul_atomic_lock_close(lock));
    ATOMIC_OK(haul_atomic_node_close(client));
    ATOMIC_OK(haul_atomic_window_destroy(window));
    ATOMIC_OK(haul_atomic_node_close(server));
  }

  haul_atomic_node *server = nullptr, *client = nullptr;
  haul_atomic_window* window = nullptr;
  haul_atomic_window_name name{};
  haul_atomic_remote* remote = nullptr;
  haul_atomic_lock* lock = nullptr;
};

}  // namespace e2e
