// Strangers: other users of this host at the socket by which processes attach, clients that nobody
// knows, a process without rights, children that keep what their parent has closed.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "atomic/handmade.hpp"
#include "atomic/node.hpp"

namespace atomic_test {
namespace {

constexpr unsigned nobody = 65534;

// A child that does `work`, killed at the end of its life here if it still runs.
class Child {
 public:
  template <class Work>
  explicit Child(const Work& work) : pid_(fork()) {
    if (pid_ == 0) _exit(work());
  }
  ~Child() {
    if (pid_ > 0 && status_ < 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  // Waits for its end; -1 if it died.
  int exit_status() {
    EXPECT_EQ(waitpid(pid_, &status_, 0), pid_);
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }

 private:
  const pid_t pid_;
  int status_ = -1;
};

sockaddr_un attach_address(const haul_atomic_window_name& name, socklen_t* bytes) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text =
      "haul-atomic/" + std::string(name.host) + "/" + std::to_string(name.port);
  std::memcpy(address.sun_path + 1, text.data(), text.size());
  *bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

bool becomes_nobody() {
  return setgid(nobody) == 0 && setuid(nobody) == 0;
}

class Strangers : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs a second user, which only root can become";
  }
};

TEST_F(Strangers, WhoTookTheNodesNameLearnsNoKey) {
  haul_atomic_window_name name{};
  std::strcpy(name.host, "127.0.0.1");
  name.port = 9;
  name.bytes = 4096;
  name.address = 4096;
  name.key = 12345;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  Child squatter([&] {
    if (!becomes_nobody()) return 100;
    socklen_t bytes = 0;
    const sockaddr_un address = attach_address(name, &bytes);
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
        listen(listener, 4) != 0 || write(ready[1], "x", 1) != 1) {
      return 101;
    }
    // Both questions: nothing may be sent.
    for (int i = 0; i < 2; ++i) {
      const int victim = accept(listener, nullptr, nullptr);
      char told[256];
      if (victim < 0 || recv(victim, told, sizeof told, 0) != 0) return 1;
      close(victim);
    }
    return 0;
  });
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  haul_atomic_window* none = nullptr;
  EXPECT_REFUSED(HAUL_EPERM, haul_atomic_window_attach(&name, &none));
  EXPECT_REFUSED(HAUL_EPERM, haul_atomic_window_counters(&name, nullptr, 0));
  EXPECT_EQ(squatter.exit_status(), 0);

  // Nor does it keep a node from serving.
  Child again([&] {
    socklen_t bytes = 0;
    const sockaddr_un address = attach_address(name, &bytes);
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (!becomes_nobody() ||
        bind(listener, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
        write(ready[1], "x", 1) != 1) {
      return 1;
    }
    for (;;) pause();
  });
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  haul_atomic_node_options options = default_options();
  options.port = name.port;
  testing::internal::CaptureStderr();
  const Node server = open_node("block:127.0.0.1", options);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("can attach"), std::string::npos);
  const Window window = make_window(server);
  const Node client = open_node("none");
  const Remote remote = connect(client, name_of(window));
  EXPECT_EQ(haul_atomic_fetch_add(remote.get(), name_of(window).address, 1, nullptr), 0);
  EXPECT_EQ(word_of(window), 1u);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(Strangers, AreSentAwayAtOnceByTheNode) {
  const Node server = open_node("block:127.0.0.1");
  const Window window = make_window(server);
  const haul_atomic_window_name name = name_of(window);
  // Says nothing, and would make the others wait.
  Child silent([&] {
    socklen_t bytes = 0;
    const sockaddr_un address = attach_address(name, &bytes);
    const int socket_fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (!becomes_nobody() ||
        connect(socket_fd, reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
      return 1;
    }
    std::int32_t told[256] = {};
    if (recv(socket_fd, told, sizeof told, 0) <= 0 || told[0] != HAUL_EPERM) return 2;
    return recv(socket_fd, told, sizeof told, 0) == 0 ? 0 : 3;
  });
  EXPECT_EQ(silent.exit_status(), 0);
  haul_atomic_window* none = nullptr;
  ASSERT_EQ(haul_atomic_window_attach(&name, &none), 0) << haul_last_error();
  haul_atomic_window_destroy(none);
}

TEST(OrdinaryUsers, AreServedByAThread) {
#ifdef HAUL_TEST_XDP
  constexpr int refusal = HAUL_EPERM;
  constexpr char reason[] = "not permitted";
#else
  constexpr int refusal = HAUL_ENOTSUP;
  constexpr char reason[] = "cannot be loaded";
#endif
  Child child([&] {
    if (geteuid() == 0 && !becomes_nobody()) return 1;
    haul_atomic_node* node = nullptr;
    if (haul_atomic_node_open("xdp-skb:lo", nullptr, &node) != refusal) return 2;
    testing::internal::CaptureStderr();
    const Node server = open_node("xdp:lo");
    const std::string said = testing::internal::GetCapturedStderr();
    if (said.find(reason) == std::string::npos || said.find("block") == std::string::npos) return 3;
    if (said.find(reason) != said.rfind(reason)) return 4;  // once
    if (description_of(server).find("block on lo, 127.0.0.1") != 0) return 5;
    const Window window = make_window(server);
    const Node client = open_node("none");
    const Remote remote = connect(client, name_of(window));
    if (haul_atomic_fetch_add(remote.get(), name_of(window).address, 1, nullptr) != 0) return 6;
    return word_of(window) == 1 ? 0 : 7;
  });
  EXPECT_EQ(child.exit_status(), 0) << "which step went wrong";
}

class Served : public OnCarrier {};

TEST_P(Served, AFloodOfUnknownClientsStopsNobody) {
  constexpr unsigned floods = 2;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> answered{0};
  std::vector<std::thread> strangers;
  haul_atomic_window_name wrong = name;
  wrong.key ^= 1;
  for (unsigned i = 0; i < floods; ++i) {
    strangers.emplace_back([&] {
      const auto inside = place->enter_client();
      HandmadeClient stranger(wrong);
      while (!stop) {
        std::uint64_t old = 0;
        if (stranger.hello() || stranger.fetch_add(at(0), &old)) ++answered;
      }
    });
  }
  const auto refused = [&] { return counter_of(server, "refused: window or key"); };
  for (int i = 0; i < 10'000 && refused() < floods; ++i) usleep(1000);
  const std::uint64_t before = refused();
  std::uint64_t count = 0;
  for (; count < 300; ++count) {
    std::uint64_t old = 0;
    EXPECT_EQ(haul_atomic_fetch_add(remote.get(), at(0), 1, &old), 0) << haul_last_error();
    EXPECT_EQ(old, count);
    if (HasFailure()) break;
  }
  for (int i = 0; i < 10'000 && refused() == before; ++i) usleep(1000);
  EXPECT_GT(refused(), before);
  stop = true;
  for (std::thread& stranger : strangers) stranger.join();
  EXPECT_EQ(answered.load(), 0u) << "a stranger was served";
  EXPECT_EQ(word(), count);
}

TEST_P(Served, AChildKeepsNothingServedThatItsParentHasClosed) {
  Child child([] {
    for (;;) pause();
    return 0;
  });
  haul_atomic_operation one = operation(HAUL_ATOMIC_ADD, at(0), 1);
  ASSERT_EQ(haul_atomic_run(remote.get(), &one, 1), 0);
  server.reset();
  if (place->cable() != nullptr) {
    const std::string shown =
        "ip -d link show dev " + std::string(Cable::server_interface) + " | grep -q xdp";
    EXPECT_NE(place->cable()->server.shell(shown), 0) << "an XDP program is still there";
  }
  std::uint64_t ticket = 0;
  ASSERT_EQ(haul_atomic_submit(remote.get(), &one, 1, 0, &ticket), 0);
  usleep(50'000);
  EXPECT_EQ(haul_atomic_test(remote.get(), ticket, nullptr, 0), 0) << "somebody answers";
  EXPECT_EQ(word(), 1u);
  const auto inside = place->enter_server();
  haul_atomic_window* none = nullptr;
  EXPECT_REFUSED(HAUL_EPEER, haul_atomic_window_attach(&name, &none));
}

INSTANTIATE_TEST_SUITE_P(, Served, testing::ValuesIn(responder_carriers()), name_of_carrier);

}  // namespace
}  // namespace atomic_test
