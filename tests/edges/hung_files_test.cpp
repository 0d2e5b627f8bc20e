// The home directory, the service's socket, or what stands for sysfs, does not answer: a FUSE file
// system whose server reads requests and never replies, as that of a dead sshfs or lxcfs. Copies
// are moved all the same, by default figures and a guessed core; fork, exit() and SIGTERM work, and
// no pipe stays open.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/mount.h>

#include <string>
#include <thread>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

// Mounts it over `place`, in a mount name space of the calling process's own, and serves it in a
// child of its own. False: that cannot be done here.
bool mount_hung(const char* place) {
  const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) return false;
  char options[96];
  std::snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
                device);
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("hung", place, "fuse", MS_NOSUID | MS_NODEV, options) != 0) {
    close(device);
    return false;
  }
  start_child([device] {
    static char request[1 << 17];
    for (;;) {
      if (read(device, request, sizeof request) < static_cast<ssize_t>(sizeof(fuse_in_header)))
        return 1;
      fuse_in_header head;
      std::memcpy(&head, request, sizeof head);
      if (head.opcode != FUSE_INIT) continue;
      struct {
        fuse_out_header head;
        fuse_init_out body;
      } reply{};
      reply.head.len = sizeof reply;
      reply.head.unique = head.unique;
      reply.body.major = 7;
      reply.body.minor = 31;
      reply.body.max_write = 4096;
      if (write(device, &reply, sizeof reply) < 0) return 1;
    }
  });
  close(device);
  return true;
}

void with_home(const char* home) {
  setenv("HAUL_MOVER_LEASE", "off", 1);
  setenv("HAUL_SERVICE_USE", "off", 1);
  setenv("HAUL_TUNE_BACKGROUND", "on", 1);
  setenv("XDG_CACHE_HOME", home, 1);
  unsetenv("HAUL_TUNE_CACHE");
}

// By the mover, and seen by polling alone.
void moved_by_the_mover(std::uint64_t seed) {
  CHILD_CHECK(wake_and_see());
  const Buffer src(mib), dst(mib);
  src.fill(seed);
  haul_request request = haul_request_copy(dst.data(), src.data(), mib);
  request.flags = HAUL_DEDICATED;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  int done = 0;
  for (unsigned turn = 0; (done = haul_test(ticket)) == 0 && turn < 20'000; ++turn) sleep_ms(1);
  CHILD_EQUAL(done, 1);
  CHILD_EQUAL(std::memcmp(dst.data(), src.data(), mib), 0);
}

bool explained(const char* word) {
  static unsigned char bytes[64];
  haul_plan plan{};
  plan.size = sizeof plan;
  haul_request request = haul_request_fill(bytes, 0, 1, sizeof bytes);
  CHILD_EQUAL(haul_explain(&request, &plan), 0);
  for (unsigned i = 0; i < plan.reason_count; ++i) {
    if (std::strstr(plan.reasons[i], word) != nullptr) return true;
  }
  return false;
}

// Waits until haul says what it waits for.
void stall_is_told() {
  bool said = false;
  for (unsigned turn = 0; !said && turn < 200; ++turn) {
    sleep_ms(100);
    said = explained("haul-files");
  }
  CHILD_CHECK(said);
}

class HungFiles : public testing::Test {
 protected:
  HungFiles() {
    const bool made = mkdtemp(directory_.data()) != nullptr;
    EXPECT_TRUE(made);
  }
  ~HungFiles() override { rmdir(directory_.c_str()); }

  // Runs `body` in a process whose `place` ("": the home) hangs, and that holds a pipe.
  template <class Body>
  void expect_good(const char* place, Body body, int signal = 0) {
    if (sanitizer) GTEST_SKIP() << "a sanitizer's runtime bears no helper process";
    if (unprivileged()) GTEST_SKIP() << "only root may mount a file system";
    const char* hung = place[0] != '\0' ? place : directory_.c_str();
    EXPECT_EQ(status_of(hung, body, signal), 0);
  }

 private:
  template <class Body>
  int status_of(const char* hung, Body body, int signal) {
    const int status = run_child(
        [&]() -> int {
          if (!mount_hung(hung)) return skip_status;
          int ends[2];
          CHILD_EQUAL(pipe(ends), 0);
          const pid_t child = start_child([&]() -> int {
            dup2(ends[1], STDOUT_FILENO);
            close(ends[0]);
            close(ends[1]);
            with_home(place_of_home(hung));
            body();
            if (signal != 0) raise(signal);
            exit(0);  // handlers run: run_child() would leave by _exit()
          });
          close(ends[1]);
          CHILD_EQUAL(end_of(child, 40), signal != 0 ? 1000 + signal : 0);
          pollfd end{ends[0], POLLIN, 0};
          CHILD_EQUAL(poll(&end, 1, 20'000), 1);  // nobody holds the other end
          return 0;
        },
        100);
    return status == skip_status ? 0 : status;
  }
  const char* place_of_home(const char* hung) const {
    return hung == directory_ ? directory_.c_str() : "/proc/nonexistent";
  }

  std::string directory_ = testing::TempDir() + "haul-hung-XXXXXX";
};

TEST_F(HungFiles, AHomeThatHangsCostsDefaultFigures) {
  expect_good("", [] {
    moved_by_the_mover(1);
    stall_is_told();
    moved_by_the_mover(2);
  });
}

TEST_F(HungFiles, ForkWorksInParentAndChild) {
  expect_good("", [] {
    moved_by_the_mover(1);
    for (std::uint64_t turn = 0; turn < 5; ++turn) {
      CHILD_EQUAL(run_child([turn] {
                    moved_by_the_mover(turn);
                    exit(0);
                    return 0;
                  }),
                  0);
      moved_by_the_mover(turn + 10);
    }
  });
}

TEST_F(HungFiles, SigtermEnds) {
  expect_good(
      "", [] { moved_by_the_mover(1); }, SIGTERM);
}

TEST_F(HungFiles, ShutdownEnds) {
  expect_good("", [] {
    moved_by_the_mover(1);
    CHILD_EQUAL(haul_shutdown(), 0);
  });
}

// The main thread ends, and then the only other one of the program's, which has copied.
[[noreturn]] void all_threads_end(void (*body)()) {
  std::thread([body] { body(); }).detach();
  syscall(SYS_exit, 0);
  __builtin_unreachable();
}

TEST_F(HungFiles, TheProcessEndsWithItsLastThread) {
  expect_good("", [] {
    all_threads_end([] {
      moved_by_the_mover(1);
      stall_is_told();
    });
  });
}

TEST_F(HungFiles, TuneMeasuresAndSaysThatItCannotStore) {
  expect_good("", [] {
    moved_by_the_mover(1);
    CHILD_CHECK(haul_tune(nullptr, nullptr) < 0);
    CHILD_CHECK(haul_last_error()[0] != '\0');
  });
}

TEST_F(HungFiles, ASurveyThatHangsCostsAGuess) {
  expect_good("/sys/devices/system/cpu", [] { moved_by_the_mover(1); });
}

TEST_F(HungFiles, CgroupsThatHangCostAGuess) {
  expect_good("/sys/fs/cgroup", [] { moved_by_the_mover(1); });
}

// The service is looked for in a directory that hangs.
void with_socket() {
  const std::string socket = std::string(getenv("XDG_CACHE_HOME")) + "/service.sock";
  setenv("HAUL_SERVICE_USE", "auto", 1);
  setenv("HAUL_SERVICE_SOCKET", socket.c_str(), 1);
  setenv("HAUL_TUNE_CACHE", "/proc/nonexistent/haul-hung", 1);
}

void socket_stall_is_told() {
  haul_state state = state_now();
  for (unsigned turn = 0;
       std::strstr(state.service_status, "haul-service waits") == nullptr && turn < 200; ++turn) {
    sleep_ms(100);
    state = state_now();
  }
  CHILD_CHECK(std::strstr(state.service_status, "haul-service waits") != nullptr);
}

TEST_F(HungFiles, ASocketThatHangsCostsTheService) {
  expect_good("", [] {
    with_socket();
    moved_by_the_mover(1);
    socket_stall_is_told();
    moved_by_the_mover(2);
    static unsigned char bytes[64];
    haul_grant grant{};
    CHILD_EQUAL(haul_share(bytes, sizeof bytes, HAUL_SHARE_READ, &grant), HAUL_ENOTSUP);
  });
}

TEST_F(HungFiles, ASocketThatHangsLetsForksGoOn) {
  expect_good("", [] {
    with_socket();
    moved_by_the_mover(1);
    for (std::uint64_t turn = 0; turn < 3; ++turn) {
      CHILD_EQUAL(run_child([turn] {
                    moved_by_the_mover(turn);
                    exit(0);
                    return 0;
                  }),
                  0);
      moved_by_the_mover(turn + 10);
    }
  });
}

TEST_F(HungFiles, ASocketThatHangsLetsTheProcessEndWithItsLastThread) {
  expect_good("", [] {
    with_socket();
    all_threads_end([] {
      moved_by_the_mover(1);
      socket_stall_is_told();
    });
  });
}

TEST_F(HungFiles, ASocketThatHangsLetsSigtermEnd) {
  expect_good(
      "",
      [] {
        with_socket();
        moved_by_the_mover(1);
      },
      SIGTERM);
}

TEST_F(HungFiles, ASocketThatHangsLetsShutdownEnd) {
  expect_good("", [] {
    with_socket();
    moved_by_the_mover(1);
    CHILD_EQUAL(haul_shutdown(), 0);
  });
}

}  // namespace
