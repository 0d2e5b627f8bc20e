// A thread whose cancellation is pending calls each function of atomic.h: it comes back from it
// with its work done, leaves nothing locked, and is cancelled at the program's own next
// cancellation point.
#include <gtest/gtest.h>
#include <haul/atomic.h>
#include <pthread.h>
#include <signal.h>

#include <cctype>
#include <functional>
#include <string>

#include "edges/atomic_support.hpp"

namespace {

using namespace e2e;

// What `call` returned, in a thread that was cancelled before it.
int call_cancelled(const std::function<int()>& call) {
  struct Work {
    const std::function<int()>& call;
    int result = 0;
    bool came_back = false, signals_open = false;
  } work{call};
  const auto body = [](void* argument) -> void* {
    auto& mine = *static_cast<Work*>(argument);
    pthread_cancel(pthread_self());
    mine.result = mine.call();
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    mine.signals_open = sigisemptyset(&mask) != 0;
    mine.came_back = true;
    pthread_testcancel();
    return nullptr;
  };
  pthread_t thread;
  CHILD_EQUAL(pthread_create(&thread, nullptr, body, &work), 0);
  void* end = nullptr;
  CHILD_EQUAL(pthread_join(thread, &end), 0);
  CHILD_CHECK(work.came_back);
  CHILD_CHECK(work.signals_open);
  CHILD_CHECK(end == PTHREAD_CANCELED);
  return work.result;
}

struct Call {
  const char* name;
  int expected;
  int (*make)(AtomicScene& scene);
};

haul_atomic_operation add_one(const AtomicScene& scene) {
  haul_atomic_operation one{};
  one.code = HAUL_ATOMIC_ADD;
  one.width = 8;
  one.address = scene.name.address + 64;
  one.operand = 1;
  return one;
}
std::uint64_t submit_one(const AtomicScene& scene) {
  const haul_atomic_operation one = add_one(scene);
  std::uint64_t ticket = 0;
  ATOMIC_OK(haul_atomic_submit(scene.remote, &one, 1, 0, &ticket));
  return ticket;
}

const Call calls[] = {
    {"haul_atomic_node_open, haul_atomic_node_close", 0,
     [](AtomicScene&) {
       haul_atomic_node* node = nullptr;
       const int opened = haul_atomic_node_open("poll:127.0.0.1", nullptr, &node);
       return opened != 0 ? opened : haul_atomic_node_close(node);
     }},
    {"haul_atomic_node_open, in vain", HAUL_EINVAL,
     [](AtomicScene&) {
       haul_atomic_node* node = nullptr;
       return haul_atomic_node_open("block:nowhere", nullptr, &node);
     }},
    {"haul_atomic_probe_xdp", 0,
     [](AtomicScene&) {
       haul_atomic_probe_xdp();  // whatever it says
       return 0;
     }},
    {"haul_atomic_node_describe", 0,
     [](AtomicScene& scene) {
       char text[100];
       return haul_atomic_node_describe(scene.server, text, sizeof text);
     }},
    {"haul_atomic_node_counters", 1,
     [](AtomicScene& scene) {
       std::uint64_t one = 0;
       return haul_atomic_node_counters(scene.server, &one, 1) > 1 ? 1 : 0;
     }},
    {"haul_atomic_window_create, haul_atomic_window_destroy", 0,
     [](AtomicScene& scene) {
       haul_atomic_window* window = nullptr;
       const int made = haul_atomic_window_create(scene.server, 4096, &window);
       return made != 0 ? made : haul_atomic_window_destroy(window);
     }},
    {"haul_atomic_window_attach", 0,
     [](AtomicScene& scene) {
       haul_atomic_window* window = nullptr;
       const int made = haul_atomic_window_attach(&scene.name, &window);
       return made != 0 ? made : haul_atomic_window_destroy(window);
     }},
    {"haul_atomic_window_counters", 1,
     [](AtomicScene& scene) {
       std::uint64_t one = 0;
       return haul_atomic_window_counters(&scene.name, &one, 1) > 1 ? 1 : 0;
     }},
    {"haul_atomic_window_format, haul_atomic_window_parse", 0,
     [](AtomicScene& scene) {
       char text[160];
       haul_atomic_window_name name;
       const int made = haul_atomic_window_format(&scene.name, text, sizeof text);
       return made != 0 ? made : haul_atomic_window_parse(text, &name);
     }},
    {"haul_atomic_connect, haul_atomic_disconnect", 0,
     [](AtomicScene& scene) {
       haul_atomic_remote* remote = nullptr;
       const int made = haul_atomic_connect(scene.client, &scene.name, &remote);
       return made != 0 ? made : haul_atomic_disconnect(remote);
     }},
    {"haul_atomic_submit, haul_atomic_wait", 0,
     [](AtomicScene& scene) {
       return haul_atomic_wait(scene.remote, submit_one(scene), nullptr, 0);
     }},
    {"haul_atomic_test", 1,
     [](AtomicScene& scene) {
       const std::uint64_t ticket = submit_one(scene);
       for (;;) {
         const int result = haul_atomic_test(scene.remote, ticket, nullptr, 0);
         if (result != 0) return result;
       }
     }},
    {"haul_atomic_reap", 1,
     [](AtomicScene& scene) {
       submit_one(scene);
       haul_atomic_completion completion{};
       for (;;) {
         const int result = haul_atomic_reap(scene.remote, &completion, 1);
         if (result != 0) return result;
       }
     }},
    {"haul_atomic_run", 0,
     [](AtomicScene& scene) {
       haul_atomic_operation one = add_one(scene);
       return haul_atomic_run(scene.remote, &one, 1);
     }},
    {"haul_atomic_window_run", 0,
     [](AtomicScene& scene) {
       haul_atomic_operation one = add_one(scene);
       return haul_atomic_window_run(scene.window, &one, 1);
     }},
    {"haul_atomic_lock_open, haul_atomic_lock_close", 0,
     [](AtomicScene& scene) { return haul_atomic_lock_close(scene.open_lock(6144)); }},
    {"haul_atomic_lock_acquire, haul_atomic_lock_release", 0,
     [](AtomicScene& scene) {
       const int got = haul_atomic_lock_acquire(scene.lock, ~0ull, nullptr);
       return got != 0 ? got : haul_atomic_lock_release(scene.lock);
     }},
    {"haul_atomic_lock_try, haul_atomic_lock_renew, haul_atomic_lock_remaining, "
     "haul_atomic_lock_stats",
     0,
     [](AtomicScene& scene) {
       haul_atomic_lock_counts counts;
       ATOMIC_OK(haul_atomic_lock_try(scene.lock, nullptr));
       ATOMIC_OK(haul_atomic_lock_renew(scene.lock));
       CHILD_CHECK(haul_atomic_lock_remaining(scene.lock) > 0);
       ATOMIC_OK(haul_atomic_lock_stats(scene.lock, &counts));
       return haul_atomic_lock_release(scene.lock);
     }},
    {"haul_atomic_lock_start, haul_atomic_lock_test", 1,
     [](AtomicScene& scene) {
       ATOMIC_OK(haul_atomic_lock_start(scene.lock, HAUL_ATOMIC_LOCK_ACQUIRE, ~0ull));
       while (haul_atomic_lock_test(scene.lock, nullptr) == 0) {
       }
       ATOMIC_OK(haul_atomic_lock_start(scene.lock, HAUL_ATOMIC_LOCK_RELEASE, ~0ull));
       for (;;) {
         const int result = haul_atomic_lock_test(scene.lock, nullptr);
         if (result != 0) return result;
       }
     }},
};

class AtomicCancel : public testing::TestWithParam<Call> {};

TEST_P(AtomicCancel, IsNoCancellationPoint) {
  EXPECT_EQ(run_child([] {
              AtomicScene scene;
              CHILD_EQUAL(call_cancelled([&] { return GetParam().make(scene); }),
                          GetParam().expected);
              scene.works();
              scene.close();
              return 0;
            }),
            0)
      << GetParam().name;
}

// Waits that sleep: nobody answers, for as long as the node's timeout says.
TEST(AtomicCancelled, WaitsToTheirEnd) {
  EXPECT_EQ(run_child([] {
              AtomicScene scene;
              haul_atomic_node_options hasty = atomic_options();
              hasty.timeout_ns = 300'000'000;
              haul_atomic_node* node = nullptr;
              ATOMIC_OK(haul_atomic_node_open("none", &hasty, &node));
              haul_atomic_window_name nobody = scene.name;
              nobody.port = 9;  // discard
              haul_atomic_remote* remote = nullptr;
              CHILD_EQUAL(
                  call_cancelled([&] { return haul_atomic_connect(node, &nobody, &remote); }),
                  HAUL_ETIMEDOUT);
              ATOMIC_OK(haul_atomic_node_close(node));
              scene.works();
              scene.close();
              return 0;
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(, AtomicCancel, testing::ValuesIn(calls), [](const auto& call) {
  std::string name;
  for (const char* at = call.param.name; *at != '\0'; ++at) {
    if (std::isalnum(static_cast<unsigned char>(*at)) != 0) name += *at;
  }
  return name;
});

}  // namespace
