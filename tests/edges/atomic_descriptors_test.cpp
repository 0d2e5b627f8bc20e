// A program closes the descriptors of a node, one or all of them, or puts files of its own in their
// place: haul goes on, or says what it has lost, and the program's files are as they were.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <haul/atomic.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "edges/atomic_support.hpp"
#include "edges/lost_descriptors.hpp"

namespace {

using namespace e2e;

constexpr int no_such_descriptor = 99;

std::vector<int> open_descriptors() {
  std::vector<int> all;
  DIR* const directory = opendir("/proc/self/fd");
  CHILD_CHECK(directory != nullptr);
  while (const dirent* one = readdir(directory)) {
    const int fd = std::atoi(one->d_name);
    if (one->d_name[0] != '.' && fd != dirfd(directory)) all.push_back(fd);
  }
  closedir(directory);
  std::sort(all.begin(), all.end());
  return all;
}

// A file of the program's that would show it if somebody read from it, wrote to it or closed it.
class Treasure {
 public:
  enum class Kind { file, stream, datagrams, pipe };
  explicit Treasure(Kind kind) : kind_(kind) {
    if (kind == Kind::file) {
      char name[] = "/tmp/haul-edges-XXXXXX";
      mine_ = mkstemp(name);
      unlink(name);
      CHILD_EQUAL(write(mine_, content, sizeof content), sizeof content);
      CHILD_EQUAL(lseek(mine_, 3, SEEK_SET), 3);
    } else if (kind == Kind::pipe) {
      int ends[2];
      CHILD_EQUAL(pipe(ends), 0);
      other_ = ends[0];
      mine_ = ends[1];
    } else {
      connect_pair(kind == Kind::stream ? SOCK_STREAM : SOCK_DGRAM);
      CHILD_EQUAL(send(other_, content, sizeof content, 0), sizeof content);
    }
    struct stat status;
    CHILD_EQUAL(fstat(mine_, &status), 0);
    inode_ = status.st_ino;
  }
  // Puts it at this number, too.
  void put_at(int fd) {
    CHILD_EQUAL(dup2(mine_, fd), fd);
    places_.push_back(fd);
  }
  void is_untouched() const {
    for (const int fd : places_) {
      struct stat status;
      CHILD_EQUAL(fstat(fd, &status), 0);
      CHILD_EQUAL(status.st_ino, inode_);
    }
    int bytes = -1;
    if (kind_ == Kind::file) {
      char now[sizeof content + 1];
      CHILD_EQUAL(pread(mine_, now, sizeof now, 0), sizeof content);
      CHILD_CHECK(std::memcmp(now, content, sizeof content) == 0);
      CHILD_EQUAL(lseek(mine_, 0, SEEK_CUR), 3);
      return;
    }
    CHILD_EQUAL(ioctl(other_, FIONREAD, &bytes), 0);
    CHILD_EQUAL(bytes, 0);  // nothing was written
    if (kind_ == Kind::pipe) return;
    CHILD_EQUAL(ioctl(mine_, FIONREAD, &bytes), 0);
    CHILD_EQUAL(bytes, sizeof content);  // nothing was read
    // Neither end was shut.
    CHILD_EQUAL(send(mine_, content, sizeof content, MSG_NOSIGNAL), sizeof content);
    CHILD_EQUAL(ioctl(other_, FIONREAD, &bytes), 0);
  }

 private:
  static constexpr char content[] = "mine";

  void connect_pair(int type) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    const int first = socket(AF_INET, type, 0);
    CHILD_EQUAL(bind(first, generic, sizeof address), 0);
    CHILD_EQUAL(getsockname(first, generic, &length), 0);
    mine_ = socket(AF_INET, type, 0);
    if (type == SOCK_STREAM) {
      CHILD_EQUAL(listen(first, 1), 0);
      CHILD_EQUAL(connect(mine_, generic, sizeof address), 0);
      other_ = accept(first, nullptr, nullptr);
      close(first);
      return;
    }
    CHILD_EQUAL(connect(mine_, generic, sizeof address), 0);
    CHILD_EQUAL(getsockname(mine_, generic, &length), 0);
    CHILD_EQUAL(connect(first, generic, sizeof address), 0);
    other_ = first;
  }

  const Kind kind_;
  int mine_ = -1, other_ = -1;
  ino_t inode_ = 0;
  std::vector<int> places_;
};

enum class State { idle, used, waiting, holding };
enum class Deed { closes, puts_file, puts_stream, puts_datagrams, puts_pipe };

struct Case {
  const char* responder;
  State state;
  Deed deed;
  const char* name;
};

Treasure::Kind kind_of(Deed deed) {
  switch (deed) {
    case Deed::puts_stream: return Treasure::Kind::stream;
    case Deed::puts_datagrams: return Treasure::Kind::datagrams;
    case Deed::puts_pipe: return Treasure::Kind::pipe;
    default: return Treasure::Kind::file;
  }
}

haul_atomic_operation add_one(const AtomicScene& scene) {
  haul_atomic_operation one{};
  one.code = HAUL_ATOMIC_ADD;
  one.width = 8;
  one.address = scene.name.address;
  one.operand = 1;
  return one;
}

// Everything works, but that a window whose descriptor is gone lets nobody in any more.
void goes_on(AtomicScene& scene, State state, std::uint64_t ticket) {
  std::uint64_t old = 0;
  if (state == State::waiting) ATOMIC_OK(haul_atomic_wait(scene.remote, ticket, nullptr, 0));
  if (state == State::holding) ATOMIC_OK(haul_atomic_lock_release(scene.lock));
  const std::uint64_t before = __atomic_load_n(&scene.word(), __ATOMIC_SEQ_CST);
  ATOMIC_OK(haul_atomic_fetch_add(scene.remote, scene.name.address, 1, &old));
  CHILD_EQUAL(old, before);
  ATOMIC_OK(haul_atomic_lock_acquire(scene.lock, 20'000'000'000, nullptr));
  ATOMIC_OK(haul_atomic_lock_release(scene.lock));
  haul_atomic_window* attached = nullptr;
  const int result = haul_atomic_window_attach(&scene.name, &attached);
  if (result == HAUL_EIO) {
    CHILD_CHECK(std::strstr(haul_last_error(), "descriptor") != nullptr);
  } else {
    ATOMIC_OK(result);
  }
  ATOMIC_OK(haul_atomic_window_destroy(attached));
  haul_atomic_remote* other = nullptr;
  ATOMIC_OK(haul_atomic_connect(scene.client, &scene.name, &other));
  ATOMIC_OK(haul_atomic_fetch_add(other, scene.name.address, 1, &old));
  CHILD_EQUAL(old, before + 1);
  // A window made now is whole.
  haul_atomic_window* fresh = nullptr;
  haul_atomic_window_name name;
  ATOMIC_OK(haul_atomic_window_create(scene.server, 100, &fresh));
  ATOMIC_OK(haul_atomic_window_export(fresh, &name));
  ATOMIC_OK(haul_atomic_window_attach(&name, &attached));
  ATOMIC_OK(haul_atomic_window_destroy(attached));
  ATOMIC_OK(haul_atomic_window_destroy(fresh));
}

// XDP takes an interface of its own: the loopback of a network namespace. False: no right to that.
bool have_own_loopback() {
  if (unshare(CLONE_NEWNET) != 0) return false;
  const int any = socket(AF_INET, SOCK_DGRAM, 0);
  ifreq up{};
  std::strcpy(up.ifr_name, "lo");
  up.ifr_flags = IFF_UP;
  CHILD_EQUAL(ioctl(any, SIOCSIFFLAGS, &up), 0);
  close(any);
  return true;
}

// XDP's descriptors cannot be had again, and a node without them serves nobody: has it said so?
bool says_that_it_is_lost(const AtomicScene& scene) {
  char text[400];
  ATOMIC_OK(haul_atomic_node_describe(scene.server, text, sizeof text));
  if (std::strstr(text, "not serving") == nullptr) return false;
  CHILD_CHECK(std::strstr(text, "descriptors") != nullptr);
  haul_atomic_window* fresh = nullptr;
  CHILD_EQUAL(haul_atomic_window_create(scene.server, 100, &fresh), HAUL_EIO);
  CHILD_CHECK(std::strstr(haul_last_error(), "descriptors") != nullptr);
  return true;
}

// `which`: the place among the node's descriptors; -1: all of them.
int one_deed(const Case& what, int which) {
  const bool by_xdp = std::strncmp(what.responder, "xdp", 3) == 0;
  if (by_xdp && !have_own_loopback()) return skip_status;
  const std::vector<int> before = open_descriptors();
  AtomicScene scene(what.responder);
  std::vector<int> ours;
  for (const int fd : open_descriptors()) {
    if (!std::binary_search(before.begin(), before.end(), fd)) ours.push_back(fd);
  }
  for (const int fd : ours) CHILD_CHECK(fd > 2);
  if (which >= static_cast<int>(ours.size())) return no_such_descriptor;
  if (which >= 0) ours = {ours[static_cast<std::size_t>(which)]};
  std::uint64_t ticket = 0;
  if (what.state != State::idle) scene.works();
  if (what.state == State::holding) ATOMIC_OK(haul_atomic_lock_acquire(scene.lock, ~0ull, nullptr));
  if (what.state == State::waiting) {
    const haul_atomic_operation one = add_one(scene);
    ATOMIC_OK(haul_atomic_submit(scene.remote, &one, 1, 0, &ticket));
  }
  Treasure treasure(kind_of(what.deed));
  for (const int fd : ours) what.deed == Deed::closes ? void(close(fd)) : treasure.put_at(fd);
  // (Of what a node that is lost has been asked, the answer may come late or never.)
  if (!by_xdp || !says_that_it_is_lost(scene)) goes_on(scene, what.state, ticket);
  scene.close();
  treasure.is_untouched();
  return 0;
}

class AtomicDescriptors : public testing::TestWithParam<Case> {};

TEST_P(AtomicDescriptors, OneAfterAnother) {
  int which = 0, end = 0;
  while (end == 0) {
    end = run_child([&] { return one_deed(GetParam(), which); });
    if (end == 0) ++which;
  }
  if (end == skip_status) GTEST_SKIP() << "no right to make a network namespace";
  EXPECT_EQ(end, no_such_descriptor) << "descriptor " << which << " of the node's";
  EXPECT_GE(which, 5);
}

TEST_P(AtomicDescriptors, AllAtOnce) {
  const int end = run_child([] { return one_deed(GetParam(), -1); });
  if (end == skip_status) GTEST_SKIP() << "no right to make a network namespace";
  EXPECT_EQ(end, 0);
}

constexpr Case cases[] = {
    {"block:127.0.0.1", State::idle, Deed::closes, "BlockIdleClosed"},
    {"block:127.0.0.1", State::used, Deed::puts_stream, "BlockUsedStream"},
    {"block:127.0.0.1", State::waiting, Deed::puts_datagrams, "BlockWaitingDatagrams"},
    {"poll:127.0.0.1", State::holding, Deed::puts_file, "PollHoldingFile"},
    {"poll:127.0.0.1", State::used, Deed::puts_datagrams, "PollUsedDatagrams"},
    {"spin", State::waiting, Deed::puts_stream, "SpinWaitingStream"},
    {"spin", State::holding, Deed::puts_pipe, "SpinHoldingPipe"},
    {"block", State::used, Deed::closes, "EverywhereUsedClosed"},
    {"xdp-skb:lo", State::used, Deed::closes, "XdpUsedClosed"},
    {"xdp-skb:lo", State::waiting, Deed::puts_datagrams, "XdpWaitingDatagrams"},
    {"xdp-skb:lo", State::holding, Deed::puts_file, "XdpHoldingFile"},
};
INSTANTIATE_TEST_SUITE_P(, AtomicDescriptors, testing::ValuesIn(cases),
                         [](const auto& one) { return one.param.name; });

// Another program's socket has the port meanwhile: nothing can be heard there, which is said.
TEST(AtomicDescriptorsLost, APortThatIsTakenIsSaid) {
  EXPECT_EQ(run_child([] {
              const std::vector<int> before = open_descriptors();
              AtomicScene scene;
              // The responder's and the client's; the thief holds both ports.
              for (const int fd : open_descriptors()) {
                sockaddr_in6 address{};
                socklen_t length = sizeof address;
                int type = 0;
                socklen_t type_bytes = sizeof type;
                if (std::binary_search(before.begin(), before.end(), fd) ||
                    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) != 0 ||
                    type != SOCK_DGRAM ||
                    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
                    address.sin6_family == AF_UNIX) {
                  continue;
                }
                CHILD_CHECK(fcntl(fd, F_DUPFD, 200) >= 200);
                close(fd);
              }
              haul_atomic_operation one = add_one(scene);
              CHILD_EQUAL(haul_atomic_run(scene.remote, &one, 1), HAUL_EIO);
              CHILD_CHECK(std::strstr(haul_last_error(), "closed") != nullptr);
              haul_atomic_remote* none = nullptr;
              CHILD_EQUAL(haul_atomic_connect(scene.client, &scene.name, &none), HAUL_EIO);
              // The responder notices when it next looks.
              char text[300] = "";
              for (int i = 0; i < 500 && std::strstr(text, "not serving") == nullptr; ++i) {
                sleep_ms(10);
                ATOMIC_OK(haul_atomic_node_describe(scene.server, text, sizeof text));
              }
              CHILD_CHECK(std::strstr(text, "not serving") != nullptr);
              haul_atomic_window* window = nullptr;
              CHILD_EQUAL(haul_atomic_window_create(scene.server, 1, &window), HAUL_EIO);
              haul_atomic_lock_close(scene.lock);
              ATOMIC_OK(haul_atomic_node_close(scene.client));
              ATOMIC_OK(haul_atomic_window_destroy(scene.window));
              ATOMIC_OK(haul_atomic_node_close(scene.server));
              return 0;
            }),
            0);
}

TEST(AtomicDescriptorsLow, NoneLiesAmongTheStandardStreams) {
  EXPECT_EQ(run_child([] {
              for (int fd = 0; fd < 3; ++fd) close(fd);
              AtomicScene scene;
              for (int fd = 0; fd < 3; ++fd) {
                if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) return 2 + fd;
              }
              scene.works();
              scene.close();
              return 0;
            }),
            0);
}

}  // namespace
