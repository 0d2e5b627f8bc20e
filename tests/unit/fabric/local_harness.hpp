// What the tests of the local network share: networks that are polled until something has come, and
// processes that end with a verdict.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "fabric/protocol/operation.hpp"
#include "fabric/transport/identity.hpp"
#include "fabric/transport/local/introduction.hpp"
#include "fabric/transport/local/local.hpp"

namespace haul::fabric::local_test {

using What = NetworkEvent::What;

// Against hanging, not to measure.
inline constexpr std::uint64_t patience_ns = 20'000'000'000;

template <class Condition>
bool eventually(Condition condition) {
  const std::uint64_t end = now_ns() + patience_ns;
  while (!condition()) {
    if (now_ns() > end) return false;
    os::sleep_ns(50'000);
  }
  return true;
}

// The kernel copies small pages from these lengths on (sometimes, mostly).
inline HaulPrivateMessageLimits kernel_from(std::size_t try_from, std::size_t from) {
  HaulPrivateMessageLimits limits;
  limits.kernel_try_from_bytes = try_from;
  limits.kernel_from_bytes = from;
  return limits;
}

inline std::unique_ptr<LocalNetwork> open_local(
    const HaulPrivateMessageLimits& limits = kernel_from(SIZE_MAX, SIZE_MAX)) {
  Address address;
  if (!make_address(&address)) return nullptr;
  Expected<std::unique_ptr<LocalNetwork>> opened = LocalNetwork::open(address, nullptr, limits);
  return opened ? std::move(*opened) : nullptr;
}

inline bool await(Network& network, NetworkEvent& event) {
  return eventually([&] { return network.news.load() != 0 && network.next(event); });
}

inline NetworkEvent await(Network& network, What what) {
  NetworkEvent event;
  EXPECT_TRUE(await(network, event)) << "no event came";
  EXPECT_EQ(event.what, what);
  return event;
}

inline bool send_number(Outbox& outbox, std::uint64_t number) {
  const Outbox::Slot slot = outbox.reserve(0, Outbox::Lane::eager);
  if (slot.header == nullptr) return false;
  slot.header->kind = PacketKind::message;
  slot.header->flags = packet_inlined;
  slot.header->payload = 0;
  slot.header->data = number;
  outbox.commit();
  return true;
}

// The number in the next packet; ~0: none came.
inline std::uint64_t receive_number(Inbox& inbox) {
  ReceivedPacket packet;
  if (!eventually([&] { return inbox.ready(); }) || inbox.receive(packet) != Inbox::Got::packet)
    return ~std::uint64_t{0};
  const std::uint64_t number = packet.header.data;
  inbox.release();
  return number;
}

inline std::unique_ptr<Peer> peer_at(const Address& address) {
  auto peer = std::make_unique<Peer>();
  peer->address = address;
  return peer;
}

// Waits until the process's other threads sleep: a sanitizer's allocator is not whole in a child
// that was forked while another thread was in it.
inline void await_quiet_threads() {
  eventually([] {
    DIR* tasks = opendir("/proc/self/task");
    bool quiet = tasks != nullptr;
    while (const dirent* task = quiet ? readdir(tasks) : nullptr) {
      char path[64], text[256];
      std::snprintf(path, sizeof path, "/proc/self/task/%.16s/stat", task->d_name);
      if (task->d_name[0] == '.' || std::atoi(task->d_name) == os::thread_id()) continue;
      const bool known = os::read_file(path, text, sizeof text) > 0;
      const char* state = known ? std::strrchr(text, ')') : nullptr;
      quiet = state == nullptr || state[2] == 'S';
    }
    if (tasks != nullptr) closedir(tasks);
    return quiet;
  });
}

// A child of fork with a pipe each way. The body's answer is its exit status; it runs no exit
// handlers.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) {
    if (pipe(to_) != 0 || pipe(from_) != 0) return;
    await_quiet_threads();
    pid_ = fork();
    if (pid_ != 0) return;
    // Should the test die, so does this.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(body(*this) ? 0 : 1);
  }
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    for (const int fd : {to_[0], to_[1], from_[0], from_[1]}) close(fd);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // In the parent: from and to the child. In the child: the other way round.
  template <class T>
  bool tell(const T& value) {
    const int fd = pid_ == 0 ? from_[1] : to_[1];
    return write(fd, static_cast<const void*>(&value), sizeof value) == sizeof value;
  }
  template <class T>
  bool hear(T* value) {
    const int fd = pid_ == 0 ? to_[0] : from_[0];
    return read(fd, static_cast<void*>(value), sizeof *value) == sizeof *value;
  }
  void kill_it() { kill(pid_, SIGKILL); }
  bool succeeded() {
    int status = -1;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  int to_[2] = {-1, -1}, from_[2] = {-1, -1};
  pid_t pid_ = -1;
};

// ThreadSanitizer starts no thread in a child of a process that has several.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool children_start_threads = false;
#else
inline constexpr bool children_start_threads = true;
#endif

// Tests whose child processes open networks.
class LocalProcesses : public testing::Test {
 protected:
  void SetUp() override {
    if (!children_start_threads) GTEST_SKIP() << "not under ThreadSanitizer";
  }
};

// A network that has opened both ways with another one's.
struct Joined {
  Outbox* outbox = nullptr;
  Inbox* inbox = nullptr;
};

// Connects to `peer` and waits until it has connected to this one; false after patience_ns.
inline bool join(LocalNetwork& network, const Address& peer, Joined* joined) {
  network.connect(peer);
  NetworkEvent event;
  while (joined->outbox == nullptr || joined->inbox == nullptr) {
    if (!await(network, event)) return false;
    if (event.what == What::connected)
      joined->outbox = event.outbox;
    else if (event.what == What::opened)
      joined->inbox = event.inbox;
    else
      return false;
  }
  return true;
}

}  // namespace haul::fabric::local_test
