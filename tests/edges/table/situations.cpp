#include "situations.hpp"

#include <pthread.h>
#include <sys/time.h>

#include <atomic>
#include <thread>

#include "program_files.hpp"

namespace edges {
namespace {

constexpr const char* fork_of_threads = "a sanitizer's own locks do not survive a fork of threads";
constexpr const char* ended_threads =
    thread_sanitizer ? "ThreadSanitizer's threads have ended before the last destructors" : nullptr;

bool any(const Function&) {
  return true;
}

// An ordinary call, which the others are compared with.
void plain(World& w) {
  w.start();
  const Call call = w.prepare();
  w.call(call);
  w.settle(true);
  w.still_works();
}

// ---- cancellation

struct Cancelled {
  World* w;
  bool first, returned;
};

void* cancelled_thread(void* at) {
  Cancelled& cell = *static_cast<Cancelled*>(at);
  if (!cell.first) cell.w->start();
  const Call call = cell.w->prepare();
  pthread_cancel(pthread_self());
  cell.w->call(call);
  cell.w->settle(true);
  cell.returned = true;
  pthread_testcancel();
  return nullptr;
}

// The function returns on a thread that is to be cancelled, and the thread is still to be.
void cancel(World& w, bool first) {
  Cancelled cell{&w, first, false};
  pthread_t thread;
  CHILD_EQUAL(pthread_create(&thread, nullptr, cancelled_thread, &cell), 0);
  void* end = nullptr;
  CHILD_EQUAL(pthread_join(thread, &end), 0);
  CHILD_CHECK(cell.returned);  // or the call itself was cancelled

  CHILD_CHECK(end == PTHREAD_CANCELED);
  w.still_works();
}

void cancelled(World& w) {
  cancel(w, false);
}

void cancelled_first(World& w) {
  cancel(w, true);
}

// ---- fork

// In a child of a process in use, whose other thread copies while it forks; the arguments are of
// before the fork, or made in the child.
void fork_child(World& w, bool arguments_of_before) {
  w.start();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) copy_works(64 * kib, 3);
  });
  Call call;
  if (arguments_of_before) call = w.prepare();
  w.stage("fork()");
  const pid_t child = start_child([&] {
    if (arguments_of_before) {
      w.call(call);
      w.settle(true);
    } else {
      w.prepare_and_call();
    }
    w.still_works();
    w.stage("exit() of the child");
    std::exit(good_exit);
    return 0;
  });
  int status = 0;
  CHILD_EQUAL(waitpid(child, &status, 0), child);
  CHILD_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == good_exit);
  stop = true;
  w.stage("the other thread's copies");
  other.join();
  w.settle(true);
  w.still_works();
}

void fork_child_of_before(World& w) {
  fork_child(w, true);
}

void fork_child_anew(World& w) {
  fork_child(w, false);
}

// ---- descriptors

void closed(World& w) {
  w.start();
  const Call call = w.prepare();
  ProgramFiles files;
  w.stage("closefrom(3)");
  files.close_and_take();
  w.call(call);
  w.settle(false);
  files.check();
  w.still_works();
  files.check();
}

void closed_before_arguments(World& w) {
  w.start();
  ProgramFiles files;
  w.stage("closefrom(3)");
  files.close_and_take();
  w.prepare_and_call();
  files.check();
  w.still_works();
  files.check();
}

void overwritten(World& w) {
  w.start();
  const Call call = w.prepare();
  ProgramFiles files;
  w.stage("dup2() over all descriptors");
  files.take_over();
  w.call(call);
  w.settle(false);
  files.check();
  w.still_works();
  files.check();
}

// ---- ends of threads and of the process

struct AtThreadsEnd {
  World* w;
  pthread_key_t keys[2];
  int rounds[2];
};

template <int which>
void destructor(void* at) {
  AtThreadsEnd& end = *static_cast<AtThreadsEnd*>(at);
  // As many rounds as the C library allows; each re-arms.
  if (++end.rounds[which] < 4) pthread_setspecific(end.keys[which], at);
  end.w->prepare_and_call();
}

// Destructors that run before haul's own (the key is older than haul's first call) and after.
void key_destructor(World& w) {
  AtThreadsEnd end{&w, {}, {0, 0}};
  CHILD_EQUAL(pthread_key_create(&end.keys[0], destructor<0>), 0);
  copy_works(mib, 4);
  CHILD_EQUAL(pthread_key_create(&end.keys[1], destructor<1>), 0);
  std::thread([&] {
    w.start();
    pthread_setspecific(end.keys[0], &end);
    pthread_setspecific(end.keys[1], &end);
  }).join();
  CHILD_CHECK(end.rounds[0] >= 1 && end.rounds[1] >= 1);
  w.still_works();
}

World* at_exit_world;
Call at_exit_call;

void at_exit_handler() {
  at_exit_world->call(at_exit_call);
  at_exit_world->settle(false);
  at_exit_world->prepare_and_call();
  at_exit_world->stage("exit() after the handler");
}

// The handler is registered before haul's first call, so that it runs after haul's own.
void exit_handler_before(World& w) {
  at_exit_world = &w;
  std::atexit(at_exit_handler);
  w.start();
  at_exit_call = w.prepare();
}

void exit_handler_after(World& w) {
  at_exit_world = &w;
  w.start();
  at_exit_call = w.prepare();
  std::atexit(at_exit_handler);
}

// ---- signals

const Call* handler_call;
std::atomic<unsigned> handled{0};

void calling_handler(int) {
  const int error = errno;
  // (Two copies to one destination, neither of which waits for the other, are a data race.)
  if (handler_call != nullptr && (!thread_sanitizer || handled == 0)) (*handler_call)();
  ++handled;
  errno = error;
}

void counting_handler(int) {
  ++handled;
}

// Sends SIGUSR1 to a thread again and again, for as long as it lives.
class Storm {
 public:
  Storm(pthread_t target, void (*handler)(int)) : thread_([this, target] { run(target); }) {
    struct sigaction action {};
    action.sa_handler = handler;
    sigaction(SIGUSR1, &action, nullptr);
    ready_ = true;
  }
  ~Storm() {
    stop_ = true;
    thread_.join();
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

 private:
  void run(pthread_t target) {
    while (!ready_) sched_yield();
    while (!stop_) {
      pthread_kill(target, SIGUSR1);
      usleep(300);
    }
  }
  std::atomic<bool> ready_{false}, stop_{false};
  std::thread thread_;
};

// From a handler that interrupts copies of its own thread, where the function's comment allows it.
void from_a_handler(World& w) {
  w.start();
  const Call call = w.prepare();
  handler_call = &call;
  {
    const Storm storm(pthread_self(), calling_handler);
    w.stage("copies and the handler's call");
    for (int round = 0; round < 30 || handled < 20; ++round) copy_works(128 * kib, 5);
  }
  handler_call = nullptr;
  w.settle(false);
  w.still_works();
}

// A handler that returns interrupts the call again and again.
void interrupted(World& w) {
  w.start();
  const Call call = w.prepare();
  {
    const Storm storm(pthread_self(), counting_handler);
    while (handled < 2) sched_yield();
    w.call(call);
    w.settle(true);
    const unsigned before = handled;
    w.stage("a signal after the call");
    while (handled == before) sched_yield();
  }
  w.still_works();
}

// SIGTERM ends a process whose thread makes the call again and again.
void terminated(World& w) {
  for (unsigned round = 0; round < 3; ++round) {
    w.stage("SIGTERM during it");
    const pid_t child = start_child([&] {
      w.start();
      for (;;) w.prepare_and_call();
      return 0;
    });
    sleep_ms(40 + 17 * round);
    kill(child, SIGTERM);
    CHILD_EQUAL(end_of(child, 20), 1000 + SIGTERM);
  }
}

// ---- a service that does not answer

void stop_others(const World& w) {
  if (w.service() != nullptr) kill(w.service()->pid(), SIGSTOP);
  if (w.function().peer) kill(w.peer_pid(), SIGSTOP);
}

void stopped_service(World& w) {
  w.start();
  const Call call = w.prepare();
  stop_others(w);
  w.call(call);
  w.settle(false);
  w.still_works();
}

// SIGTERM is heard at once, not when what is waited for is given up (5 s).
void terminated_beside_a_stopped_service(World& w) {
  const pid_t child = start_child([&] {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    w.start();
    const Call call = w.prepare();
    stop_others(w);
    w.call(call);
    for (;;) pause();
    return 0;
  });
  sleep_ms(sanitizer ? 2000 : 600);
  w.stage("SIGTERM beside a stopped service");
  kill(child, SIGTERM);
  CHILD_EQUAL(end_of(child, 3), 1000 + SIGTERM);
}

}  // namespace

const std::vector<Situation>& situations() {
  static const std::vector<Situation> all{
      {"plain", "an ordinary call", plain, false, false, any, nullptr},
      {"cancelled", "with a cancellation pending", cancelled, true, false, any, nullptr},
      {"cancelled_first", "with a cancellation pending, haul's first use", cancelled_first, true,
       false, any, nullptr},
      {"fork_child", "in a fork's child, with arguments of before", fork_child_of_before, false,
       false, any, fork_of_threads},
      {"fork_child_anew", "in a fork's child", fork_child_anew, false, false, any, fork_of_threads},
      {"closed", "after closefrom(3)", closed, false, false, any, nullptr},
      {"closed_anew", "after closefrom(3), with arguments made afterwards", closed_before_arguments,
       false, false, any, nullptr},
      {"overwritten", "after dup2() over all descriptors", overwritten, false, false, any, nullptr},
      {"key_destructor", "from thread-specific destructors", key_destructor, false, false, any,
       ended_threads},
      {"exit_before", "from an atexit handler older than haul's", exit_handler_before, false, false,
       any, nullptr},
      {"exit_after", "from an atexit handler", exit_handler_after, false, false, any, nullptr},
      {"handler", "from a signal handler", from_a_handler, false, false,
       [](const Function& function) { return function.in_handlers; }, nullptr},
      {"interrupted", "interrupted by signals", interrupted, true, false,
       // (The kernel's verifier gives up when a signal comes, as atomic.h says.)
       [](const Function& function) {
         return std::strcmp(function.name, "haul_atomic_probe_xdp") != 0;
       },
       nullptr},
      {"terminated", "with SIGTERM during it", terminated, false, false, any, nullptr},
      {"stopped", "beside a stopped service", stopped_service, false, true, any, nullptr},
      {"stopped_terminated", "beside a stopped service, with SIGTERM during it",
       terminated_beside_a_stopped_service, false, true, any, nullptr},
  };
  return all;
}

}  // namespace edges
