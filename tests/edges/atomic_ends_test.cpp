// A process with open nodes ends when it is told to, in whatever call it is, and however its peers
// do; and its nodes neither hinder fork() nor outlive it in a child.
#include <gtest/gtest.h>
#include <haul/atomic.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "edges/atomic_support.hpp"

namespace {

using namespace e2e;

// ---- a peer that has stopped -----------------------------------------------------------------

// A server in a process of its own, which is stopped once it has told its window's name.
struct StoppedServer {
  StoppedServer() {
    int ends[2];
    CHILD_EQUAL(pipe(ends), 0);
    pid = start_child([&] {
      haul_atomic_node* node = nullptr;
      haul_atomic_window* window = nullptr;
      haul_atomic_window_name told;
      ATOMIC_OK(haul_atomic_node_open("block:127.0.0.1", nullptr, &node));
      ATOMIC_OK(haul_atomic_window_create(node, 8192, &window));
      ATOMIC_OK(haul_atomic_window_export(window, &told));
      CHILD_EQUAL(write(ends[1], &told, sizeof told), sizeof told);
      for (;;) pause();
      return 0;
    });
    CHILD_EQUAL(read(ends[0], &name, sizeof name), sizeof name);
    close(ends[0]);
    close(ends[1]);
  }
  // It has when this returns.
  void stop() const {
    const std::string path = "/proc/" + std::to_string(pid) + "/stat";
    CHILD_EQUAL(kill(pid, SIGSTOP), 0);
    for (char state = '\0'; state != 'T'; sleep_ms(1)) {
      std::FILE* const file = std::fopen(path.c_str(), "r");
      CHILD_CHECK(file != nullptr && std::fscanf(file, "%*d %*s %c", &state) == 1);
      std::fclose(file);
    }
  }
  void end() const {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  pid_t pid = -1;
  haul_atomic_window_name name{};
};

struct Client {
  explicit Client(const StoppedServer& server, std::uint64_t timeout_ns = 1ull << 62) {
    haul_atomic_node_options options = atomic_options();
    options.timeout_ns = timeout_ns;
    ATOMIC_OK(haul_atomic_node_open("block:127.0.0.1", &options, &node));
    ATOMIC_OK(haul_atomic_window_create(node, 4096, &window));
    ATOMIC_OK(haul_atomic_window_export(window, &own));
    ATOMIC_OK(haul_atomic_connect(node, &server.name, &remote));
    const haul_atomic_lock_place home{server.name, 4096}, member{own, 0};
    haul_atomic_lock_options lock_options{};
    lock_options.size = sizeof lock_options;
    lock_options.count = 1;
    lock_options.home = &home;
    lock_options.members = &member;
    ATOMIC_OK(haul_atomic_lock_open(node, window, &lock_options, &lock));
    ATOMIC_OK(haul_atomic_lock_acquire(lock, ~0ull, nullptr));
    ATOMIC_OK(haul_atomic_lock_release(lock));
  }
  haul_atomic_node* node = nullptr;
  haul_atomic_window* window = nullptr;
  haul_atomic_window_name own{};
  haul_atomic_remote* remote = nullptr;
  haul_atomic_lock* lock = nullptr;
};

struct Wait {
  const char* name;
  void (*call)(const StoppedServer&, Client&);
};
constexpr Wait waits[] = {
    {"Run",
     [](const StoppedServer& server, Client& client) {
       haul_atomic_fetch_add(client.remote, server.name.address, 1, nullptr);
     }},
    {"Connect",
     [](const StoppedServer& server, Client& client) {
       haul_atomic_remote* other = nullptr;
       haul_atomic_connect(client.node, &server.name, &other);
     }},
    {"Attach",
     [](const StoppedServer& server, Client&) {
       haul_atomic_window* window = nullptr;
       for (;;) haul_atomic_window_attach(&server.name, &window);
     }},
    {"Acquire", [](const StoppedServer&,
                   Client& client) { haul_atomic_lock_acquire(client.lock, ~0ull, nullptr); }},
    {"Release",
     [](const StoppedServer& server, Client& client) {
       kill(server.pid, SIGCONT);
       ATOMIC_OK(haul_atomic_lock_acquire(client.lock, ~0ull, nullptr));
       server.stop();
       haul_atomic_lock_release(client.lock);
     }},
};
class AtomicWaits : public testing::TestWithParam<Wait> {};

// With SIGTERM's, SIGINT's and SIGALRM's default, in the middle of it.
TEST_P(AtomicWaits, IsEndedBySignals) {
  EXPECT_EQ(run_child([] {
              const StoppedServer server;
              for (const int signal : {SIGTERM, SIGINT, SIGALRM}) {
                const pid_t child = start_child([&] {
                  Client client(server);
                  server.stop();
                  raise(SIGSTOP);  // the signal is sent when this has been seen
                  GetParam().call(server, client);
                  return 0;
                });
                int status = 0;
                CHILD_EQUAL(waitpid(child, &status, WUNTRACED), child);
                CHILD_CHECK(WIFSTOPPED(status));
                kill(child, SIGCONT);
                sleep_ms(150);
                kill(child, signal);
                const int end = end_of(child, 20);
                kill(server.pid, SIGCONT);
                CHILD_EQUAL(end, 1000 + signal);
              }
              server.end();
              return 0;
            }),
            0);
}

// Handlers run at once, as often as they like, and the call goes on.
TEST(AtomicSignals, HandlersRunDuringAWait) {
  static std::atomic<int> handled{0};
  EXPECT_EQ(run_child([] {
              const StoppedServer server;
              Client client(server, 2'000'000'000);
              server.stop();
              struct sigaction action {};
              action.sa_handler = [](int) { handled.fetch_add(1); };
              sigaction(SIGALRM, &action, nullptr);
              const itimerval often{{0, 5'000}, {0, 5'000}};
              setitimer(ITIMER_REAL, &often, nullptr);
              CHILD_EQUAL(haul_atomic_fetch_add(client.remote, server.name.address, 1, nullptr),
                          HAUL_ETIMEDOUT);
              CHILD_CHECK(handled.load() > 20);
              haul_atomic_window* window = nullptr;
              CHILD_EQUAL(haul_atomic_window_attach(&server.name, &window), HAUL_EPEER);
              kill(server.pid, SIGCONT);
              ATOMIC_OK(haul_atomic_window_attach(&server.name, &window));
              server.end();
              return 0;
            }),
            0);
}

// Closing, leaving and exit() wait for nobody for ever.
TEST(AtomicEnds, CloseAndExitAreBoundedBesideAStoppedPeer) {
  EXPECT_EQ(run_child(
                [] {
                  const StoppedServer server;
                  Client client(server, 500'000'000);
                  haul_atomic_operation one{};
                  one.code = HAUL_ATOMIC_ADD;
                  one.width = 8;
                  one.address = server.name.address;
                  server.stop();
                  for (int i = 0; i < 60; ++i) {
                    ATOMIC_OK(haul_atomic_submit(client.remote, &one, 1, 0, nullptr));
                  }
                  CHILD_EQUAL(run_child([] { return 0; }, 20), 0);
                  ATOMIC_OK(haul_atomic_disconnect(client.remote));
                  haul_atomic_lock_close(client.lock);
                  ATOMIC_OK(haul_atomic_window_destroy(client.window));
                  ATOMIC_OK(haul_atomic_node_close(client.node));
                  server.end();
                  return 0;
                },
                30),
            0);
  EXPECT_EQ(run_child(
                [] {
                  const StoppedServer server;
                  Client client(server);
                  server.stop();
                  ATOMIC_OK(haul_atomic_lock_start(client.lock, HAUL_ATOMIC_LOCK_ACQUIRE, ~0ull));
                  kill(server.pid, SIGKILL);
                  std::fflush(nullptr);
                  std::exit(0);  // with everything open
                  return 1;
                },
                30),
            0);
}

// ---- main ends first -------------------------------------------------------------------------

void* just_end(void*) {
  return nullptr;
}
// As pthread_exit() in the end, which could not unwind GoogleTest.
void end_this_thread() {
  syscall(SYS_exit, 0);
}

TEST(AtomicEnds, AClientEndsWithItsThreads) {
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer keeps a thread of its own in the process";
  EXPECT_EQ(run_child(
                [] {
                  const StoppedServer server;
                  haul_atomic_node* node = nullptr;
                  ATOMIC_OK(haul_atomic_node_open("none", nullptr, &node));
                  haul_atomic_remote* remote = nullptr;
                  ATOMIC_OK(haul_atomic_connect(node, &server.name, &remote));
                  ATOMIC_OK(haul_atomic_fetch_add(remote, server.name.address, 1, nullptr));
                  kill(server.pid, SIGKILL);
                  pthread_t thread;
                  pthread_create(&thread, nullptr, just_end, nullptr);
                  end_this_thread();
                  return 1;
                },
                20),
            0);
}

// A node that serves is a server: it keeps the process, which signals end.
TEST(AtomicEnds, AServerWithoutThreadsOfItsProgramHearsSignals) {
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer keeps a thread of its own in the process";
  for (const int signal : {SIGTERM, SIGINT, SIGALRM}) {
    const pid_t child = start_child([] {
      haul_atomic_node* node = nullptr;
      ATOMIC_OK(haul_atomic_node_open("block:127.0.0.1", nullptr, &node));
      end_this_thread();
      return 1;
    });
    sleep_ms(500);
    EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "the server has ended";
    kill(child, signal);
    EXPECT_EQ(end_of(child, 20), 1000 + signal);
  }
}

// What its program blocks, while it has threads, stays blocked.
TEST(AtomicEnds, ABlockedSignalIsNotTakenFromAProgramThatLives) {
  EXPECT_EQ(run_child([] {
              haul_atomic_node* node = nullptr;
              ATOMIC_OK(haul_atomic_node_open("block:127.0.0.1", nullptr, &node));
              sigset_t set;
              sigemptyset(&set);
              sigaddset(&set, SIGTERM);
              pthread_sigmask(SIG_BLOCK, &set, nullptr);
              kill(getpid(), SIGTERM);
              sleep_ms(1500);
              int signal = 0;
              CHILD_EQUAL(sigwait(&set, &signal), 0);
              CHILD_EQUAL(signal, SIGTERM);
              return 0;
            }),
            0);
}

// Nor while that is called as haul's threads are, and its main thread has ended.
TEST(AtomicEnds, ABlockedSignalIsNotTakenFromThreadsThatAreNamedAsHauls) {
  EXPECT_EQ(run_child([] {
              prctl(PR_SET_NAME, "haul-frames");
              haul_atomic_node* node = nullptr;
              ATOMIC_OK(haul_atomic_node_open("block:127.0.0.1", nullptr, &node));
              static sigset_t set;
              sigemptyset(&set);
              sigaddset(&set, SIGTERM);
              pthread_sigmask(SIG_BLOCK, &set, nullptr);
              const auto rest = [](void*) -> void* {
                kill(getpid(), SIGTERM);
                sleep_ms(1500);
                int signal = 0;
                _exit(sigwait(&set, &signal) == 0 && signal == SIGTERM ? 0 : 1);
              };
              pthread_t thread;
              CHILD_EQUAL(pthread_create(&thread, nullptr, rest, nullptr), 0);
              end_this_thread();
              return 1;
            }),
            0);
}

// ---- fork ------------------------------------------------------------------------------------

// Handlers of the program's own take a lock under which another thread calls haul, as malloc
// survives it.
pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;

TEST(AtomicForks, BesideThreadsThatCallUnderALockOfTheProgram) {
  EXPECT_EQ(
      run_child([] {
        // In both orders: handlers registered before and after the node is there.
        const auto take = [] { pthread_mutex_lock(&program_lock); };
        const auto leave = [] { pthread_mutex_unlock(&program_lock); };
        pthread_atfork(take, leave, leave);
        AtomicScene scene;
        pthread_atfork([] {}, [] {}, [] {});
        std::atomic<bool> over{false};
        const auto work = [&](const std::function<void()>& body) {
          while (!over.load()) {
            pthread_mutex_lock(&program_lock);
            body();
            pthread_mutex_unlock(&program_lock);
          }
        };
        std::thread operations([&] {
          work([&] {
            ATOMIC_OK(haul_atomic_fetch_add(scene.remote, scene.name.address, 1, nullptr));
          });
        });
        std::thread nodes([&] {
          work([] {
            haul_atomic_node* node = nullptr;
            ATOMIC_OK(haul_atomic_node_open("block:127.0.0.1", nullptr, &node));
            ATOMIC_OK(haul_atomic_node_close(node));
          });
        });
        for (int i = 0; i < 50; ++i) {
          CHILD_EQUAL(
              run_child(
                  [&] {
                    // None of the parent's, each said clearly.
                    haul_atomic_operation one{};
                    one.code = HAUL_ATOMIC_ADD;
                    one.width = 8;
                    one.address = scene.name.address;
                    haul_atomic_remote* other = nullptr;
                    haul_atomic_window* window = nullptr;
                    CHILD_EQUAL(haul_atomic_run(scene.remote, &one, 1), HAUL_ESTALE);
                    CHILD_CHECK(std::strstr(haul_last_error(), "fork") != nullptr);
                    CHILD_EQUAL(haul_atomic_connect(scene.client, &scene.name, &other),
                                HAUL_ESTALE);
                    CHILD_EQUAL(haul_atomic_window_create(scene.server, 1, &window), HAUL_ESTALE);
                    CHILD_EQUAL(haul_atomic_lock_acquire(scene.lock, ~0ull, nullptr), HAUL_ESTALE);
                    CHILD_EQUAL(haul_atomic_lock_close(scene.lock), HAUL_ESTALE);
                    CHILD_EQUAL(haul_atomic_node_close(scene.client), HAUL_ESTALE);
                    CHILD_EQUAL(haul_atomic_node_close(scene.server), HAUL_ESTALE);
                    ATOMIC_OK(haul_atomic_window_destroy(scene.window));
                    // Its own it can have.
                    if (sanitizer) return 0;
                    AtomicScene own;
                    own.works();
                    own.close();
                    return 0;
                  },
                  20),
              0);
        }
        over = true;
        operations.join();
        nodes.join();
        scene.works();
        scene.close();
        return 0;
      }),
      0);
}

INSTANTIATE_TEST_SUITE_P(, AtomicWaits, testing::ValuesIn(waits),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
