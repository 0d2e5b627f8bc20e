// A process ends when the last of its own threads does, whether that is main's or another: haul's
// threads do not keep it, and what exit() runs then runs as on any thread of the program's.
#include <dirent.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/uio.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "e2e/service_support.hpp"
#include "edges/absent_memory.hpp"

namespace {

using namespace e2e;

constexpr std::size_t bytes = 4 * mib;

void copy_with_the_mover() {
  const Buffer src(bytes), dst(bytes);
  src.fill(1);
  dst.clear();
  haul_request request = haul_request_copy(dst.data(), src.data(), bytes);
  request.flags = HAUL_DEDICATED;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  CHILD_EQUAL(haul_wait(ticket), 0);
  CHILD_EQUAL(std::memcmp(dst.data(), src.data(), bytes), 0);
}

// How many of the process's threads are haul's, of this name.
unsigned threads_named(const std::string& name) {
  unsigned count = 0;
  DIR* tasks = opendir("/proc/self/task");
  CHILD_CHECK(tasks != nullptr);
  while (const dirent* task = readdir(tasks)) {
    char path[300], text[64] = "";
    std::snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    std::FILE* file = task->d_name[0] == '.' ? nullptr : std::fopen(path, "r");
    if (file == nullptr) continue;
    if (std::fgets(text, sizeof text, file) != nullptr) count += text == name + "\n";
    std::fclose(file);
  }
  closedir(tasks);
  return count;
}

bool all_end(const std::string& name) {
  for (int turn = 0; turn < 20000; ++turn) {
    if (threads_named(name) == 0) return true;
    sleep_ms(1);
  }
  return false;
}

// At the end of the process, on whatever thread: it is one with room and with its signals open.
void at_the_end() {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  if (sigismember(&blocked, SIGTERM) != 0) _exit(2);
  pthread_attr_t attributes;
  std::size_t stack = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstacksize(&attributes, &stack);
  pthread_attr_destroy(&attributes);
  _exit(stack >= mib ? 7 : 3);
}

// What play() does on a thread that is left, when the kernel does not find the process's memory
// under its pid any more.
void copy_from_own_space() {
  unsigned char from[64], to[64] = {};
  std::memset(from, 7, sizeof from);
  const iovec local{to, sizeof to}, remote{from, sizeof from};
  for (int turn = 0; turn < 5000; ++turn) {
    if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0) break;
    sleep_ms(1);
  }
  std::memset(to, 0, sizeof to);
  haul_space space = HAUL_SPACE_SELF;
  CHILD_EQUAL(haul_space_open(getpid(), &space), 0);
  haul_request request = haul_request_copy(to, from, sizeof to);
  request.src.space = space;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  CHILD_EQUAL(haul_wait(ticket), 0);
  CHILD_EQUAL(std::memcmp(to, from, sizeof to), 0);
  CHILD_EQUAL(haul_space_close(space), 0);
}

// Granted memory, copied by the service into memory of this process that nobody has let it into.
void copy_from_a_grant() {
  auto* memory = static_cast<unsigned char*>(haul_alloc(bytes));
  std::memset(memory, 9, bytes);
  haul_grant grant;
  CHILD_EQUAL(haul_share(memory, bytes, HAUL_SHARE_READ, &grant), 0);
  haul_space space = HAUL_SPACE_SELF;
  std::size_t length = 0;
  CHILD_EQUAL(haul_space_open_grant(&grant, &space, &length), 0);
  const Buffer to(bytes);
  to.clear();
  haul_request request = haul_request_copy(to.data(), nullptr, bytes);
  request.src.space = space;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  CHILD_EQUAL(haul_wait(ticket), 0);
  CHILD_EQUAL(std::memcmp(to.data(), memory, bytes), 0);
}

bool kernel_reads_processes() {
  char from = 1, to = 0;
  const iovec local{&to, 1}, remote{&from, 1};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

// What the program does whose main thread ends first; in a process of its own (below), for the end
// of a thread unwinds its stack, and GoogleTest stands in the way of that.
int play(const std::string& part) {
  always_mover();
  if (part == "two movers") setenv("HAUL_MOVER_CORES", "2", 1);
  if (part == "attached") {
    unsetenv("HAUL_PLAN_MOVER");
    CHILD_CHECK(attach());
  }
  static haul_grant grant;
  static unsigned char* memory = nullptr;
  if (part == "granted") {
    unsetenv("HAUL_PLAN_MOVER");
    CHILD_CHECK(attach());
    memory = static_cast<unsigned char*>(haul_alloc(bytes));
    CHILD_EQUAL(haul_share(memory, bytes, HAUL_SHARE_READ, &grant), 0);
  }
  if (part == "main too") copy_with_the_mover();
  if (part == "measured") {
    // No figures are stored, so one of haul's threads measures, which takes a mover.
    setenv("HAUL_TUNE_BACKGROUND", "on", 1);
    copy_with_the_mover();
    sleep_ms(1000);
  }
  if (part == "stuck") {
    setenv("HAUL_MOVER_PATIENCE_MS", "500", 1);
    copy_works(mib, 1);
    static unsigned char dst[mib];
    haul_request request = haul_request_copy(dst, memory_that_does_not_arrive(mib), mib);
    request.flags = HAUL_DEDICATED;
    haul_ticket ticket{};
    CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
    sleep_ms(50);
    std::atexit(at_the_end);
    pthread_exit(nullptr);
  }
  if (part == "own space" || part == "own grant") {
    static const bool granted = part == "own grant";
    if (granted) unsetenv("HAUL_PLAN_MOVER");
    std::thread([] {
      copy_from_own_space();
      if (!granted) _exit(7);
      CHILD_CHECK(attach());
      copy_from_a_grant();
      _exit(7);
    }).detach();
    pthread_exit(nullptr);
  }
  std::atexit(at_the_end);
  std::thread([] {
    for (int i = 0; i < 3; ++i) copy_with_the_mover();
  }).detach();
  pthread_exit(nullptr);
}

int end_of_part(const char* part, const Service* service = nullptr) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (service != nullptr) service->use("auto");
    setenv("EDGES_PART", part, 1);
    execl("/proc/self/exe", "edges", nullptr);
    _exit(1);
  }
  return end_of(child, 30);
}

#define NEEDS_THREADS_OF_ITS_OWN() \
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer keeps a thread of its own in the process"

TEST(MainThreadEnds, TheProcessEndsWithItsLastThread) {
  NEEDS_THREADS_OF_ITS_OWN();
  EXPECT_EQ(end_of_part("plain"), 7);
}

TEST(MainThreadEnds, AlsoIfItHasCopiedItself) {
  NEEDS_THREADS_OF_ITS_OWN();
  EXPECT_EQ(end_of_part("main too"), 7);
}

TEST(MainThreadEnds, AlsoIfFiguresWereMeasured) {
  NEEDS_THREADS_OF_ITS_OWN();
  EXPECT_EQ(end_of_part("measured"), 7);
}

// Its mover never comes to an end: exit() leaves it, and says so.
TEST(MainThreadEnds, WithACopyThatCannotEnd) {
  NEEDS_THREADS_OF_ITS_OWN();
  if (memory_that_does_not_arrive(mib) == nullptr)
    GTEST_SKIP() << "the kernel gives no userfaultfd()";
  EXPECT_EQ(end_of_part("stuck"), 7);
}

TEST(MainThreadEnds, WithTwoMovers) {
  NEEDS_THREADS_OF_ITS_OWN();
  EXPECT_EQ(end_of_part("two movers"), 7);
}

TEST(MainThreadEnds, AttachedToAService) {
  NEEDS_THREADS_OF_ITS_OWN();
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(end_of_part("attached", &service), 7);
}

TEST(MainThreadEnds, AndTheProcessIsStillASpace) {
  if (!kernel_reads_processes()) GTEST_SKIP() << "process_vm_readv is refused";
  EXPECT_EQ(end_of_part("own space"), 7);
}

TEST(MainThreadEnds, AndTheServiceReachesItsMemory) {
  if (!kernel_reads_processes()) GTEST_SKIP() << "process_vm_readv is refused";
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(end_of_part("own grant", &service), 7);
}

TEST(MainThreadEnds, WithMemoryGranted) {
  NEEDS_THREADS_OF_ITS_OWN();
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(end_of_part("granted", &service), 7);
}

TEST(MainThreadEnds, WithMemoryGrantedAndTheServiceGone) {
  NEEDS_THREADS_OF_ITS_OWN();
  Service service;
  ASSERT_TRUE(service.start());
  std::thread killer([&] {
    sleep_ms(500);
    service.end(SIGKILL);
  });
  EXPECT_EQ(end_of_part("granted", &service), 7);
  killer.join();
}

TEST(MoverRetires, AndComesBackWhenAThreadCopiesAgain) {
  EXPECT_EQ(run_child(
                [] {
                  always_mover();
                  setenv("HAUL_MOVER_CORES", "2", 1);
                  for (int round = 0; round < 5; ++round) {
                    std::vector<std::thread> threads;
                    for (int i = 0; i < 2; ++i) threads.emplace_back(copy_with_the_mover);
                    for (std::thread& thread : threads) thread.join();
                    CHILD_CHECK(all_end("haul-mover"));
                  }
                  // This thread keeps one.
                  copy_with_the_mover();
                  sleep_ms(400);
                  CHILD_CHECK(threads_named("haul-mover") != 0);
                  CHILD_EQUAL(haul_shutdown(), 0);
                  CHILD_EQUAL(threads_named("haul-mover"), 0);
                  return 0;
                },
                120),
            0);
}

TEST(MoverRetires, WhileThreadsComeAndGo) {
  EXPECT_EQ(run_child(
                [] {
                  always_mover();
                  setenv("HAUL_MOVER_SPIN_US", "0", 1);
                  for (int round = 0; round < 30; ++round) {
                    std::thread(copy_with_the_mover).join();
                    sleep_ms(95 + static_cast<unsigned>(round) % 12);  // about when it retires
                  }
                  return 0;
                },
                120),
            0);
}

TEST(MoverRetires, TheLinkToTheServiceEndsTooAndIsMadeAgain) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child(
                [&service] {
                  service.use("auto");
                  for (int round = 0; round < 2; ++round) {
                    std::thread([] { CHILD_CHECK(attach()); }).join();
                    CHILD_CHECK(all_end("haul-service"));
                  }
                  return 0;
                },
                120),
            0);
}

}  // namespace

int main(int argc, char** argv) {
  if (const char* part = std::getenv("EDGES_PART"); part != nullptr) return play(part);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
