// The local network: opening, packets, ends, deaths, forks and bells.
#include <fcntl.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

#include "base/knobs.hpp"
#include "base/net/socket.hpp"
#include "base/os/pages/sealed.hpp"
#include "local_harness.hpp"

namespace haul::fabric::local_test {
namespace {

TEST(LocalNetwork, OpensBothWaysWithinOneProcess) {
  const auto a = open_local(), b = open_local();
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  a->connect(b->address());
  Outbox* to_b = await(*a, What::connected).outbox;
  ASSERT_NE(to_b, nullptr);
  ASSERT_TRUE(send_number(*to_b, 7));
  const NetworkEvent opened = await(*b, What::opened);
  EXPECT_EQ(opened.address, a->address());
  ASSERT_NE(opened.inbox, nullptr);
  EXPECT_EQ(receive_number(*opened.inbox), 7u);

  b->connect(a->address());
  Outbox* to_a = await(*b, What::connected).outbox;
  ASSERT_NE(to_a, nullptr);
  ASSERT_TRUE(send_number(*to_a, 8));
  Inbox* from_b = await(*a, What::opened).inbox;
  ASSERT_NE(from_b, nullptr);
  EXPECT_EQ(receive_number(*from_b), 8u);
}

// Nothing is called of the peer's but by its control thread.
TEST(LocalNetwork, ARingIsAcceptedWhateverThePeersProgramDoes) {
  const auto a = open_local(), b = open_local();
  ASSERT_TRUE(a && b);
  a->connect(b->address());
  NetworkEvent event;
  ASSERT_TRUE(await(*a, event));
  ASSERT_EQ(event.what, What::connected);
  EXPECT_TRUE(eventually([&] { return event.outbox->delivery() == Outbox::Delivery::at_once; }));
}

TEST(LocalNetwork, SpeaksWithItself) {
  const auto a = open_local();
  Joined joined;
  ASSERT_TRUE(join(*a, a->address(), &joined));
  ASSERT_TRUE(send_number(*joined.outbox, 3));
  EXPECT_EQ(receive_number(*joined.inbox), 3u);
}

TEST(LocalNetwork, BothMayConnectAtOnce) {
  const auto a = open_local(), b = open_local();
  a->connect(b->address());
  b->connect(a->address());
  Joined at_a, at_b;
  NetworkEvent event;
  for (auto [network, joined] : {std::pair(a.get(), &at_a), std::pair(b.get(), &at_b)}) {
    while (joined->outbox == nullptr || joined->inbox == nullptr) {
      ASSERT_TRUE(await(*network, event));
      if (event.what == What::connected) joined->outbox = event.outbox;
      if (event.what == What::opened) joined->inbox = event.inbox;
    }
  }
  ASSERT_TRUE(send_number(*at_a.outbox, 1));
  ASSERT_TRUE(send_number(*at_b.outbox, 2));
  EXPECT_EQ(receive_number(*at_b.inbox), 1u);
  EXPECT_EQ(receive_number(*at_a.inbox), 2u);
}

TEST(LocalNetwork, AddressOfNobodyIsRefused) {
  const auto a = open_local();
  Address nobody;
  ASSERT_TRUE(make_address(&nobody));
  a->connect(nobody);
  EXPECT_EQ(await(*a, What::refused).error, FI_ECONNREFUSED);
}

TEST(LocalNetwork, EndIsToldAfterWhatWasSent) {
  const auto a = open_local();
  auto b = open_local();
  b->connect(a->address());
  Outbox* to_a = await(*b, What::connected).outbox;
  ASSERT_TRUE(send_number(*to_a, 1) && send_number(*to_a, 2));
  b.reset();
  Inbox* from_b = await(*a, What::opened).inbox;
  EXPECT_EQ(await(*a, What::ended).error, 0);
  EXPECT_EQ(receive_number(*from_b), 1u);
  EXPECT_EQ(receive_number(*from_b), 2u);
}

TEST(LocalNetwork, EndIsToldToWhoseHelloWasNotRead) {
  const auto a = open_local();
  auto b = open_local();
  a->connect(b->address());
  await(*a, What::connected);
  b.reset();
  await(*a, What::ended);
}

// What a peer sent over one connection is not lost if another of its connections is seen to end
// first.
TEST(LocalNetwork, EndIsToldAfterWhatCameOverAnotherConnection) {
  for (int round = 0; round < 200; ++round) {
    const auto a = open_local();
    auto b = open_local();
    a->connect(b->address());
    Outbox* to_a = nullptr;
    b->connect(a->address());
    NetworkEvent event;
    while (to_a == nullptr && await(*b, event)) to_a = event.outbox;
    ASSERT_NE(to_a, nullptr);
    ASSERT_TRUE(send_number(*to_a, 4));
    b.reset();
    Inbox* from_b = nullptr;
    while (await(*a, event) && event.what != What::ended) {
      if (event.what == What::opened) from_b = event.inbox;
    }
    ASSERT_NE(from_b, nullptr) << round;
    EXPECT_EQ(receive_number(*from_b), 4u);
  }
}

TEST(LocalNetwork, DroppedPeerMayOpenAnew) {
  const auto a = open_local(), b = open_local();
  a->connect(b->address());
  await(*a, What::connected);
  await(*b, What::opened);
  a->drop(b->address());
  await(*b, What::ended);
  b->drop(a->address());
  a->connect(b->address());
  Outbox* to_b = await(*a, What::connected).outbox;
  Inbox* from_a = await(*b, What::opened).inbox;
  ASSERT_TRUE(send_number(*to_b, 5));
  EXPECT_EQ(receive_number(*from_a), 5u);
}

// Connects from a process of its own and sends numbers 1 to 3; then it waits to be killed.
bool send_and_hang(Child& child, const Address& to) {
  const auto network = open_local();
  if (network == nullptr) return false;
  network->connect(to);
  NetworkEvent event;
  if (!await(*network, event) || event.what != What::connected) return false;
  for (std::uint64_t number = 1; number <= 3; ++number) send_number(*event.outbox, number);
  child.tell(char{1});
  pause();
  return true;
}

TEST_F(LocalProcesses, DeathIsToldAndWhatWasSentStays) {
  const auto a = open_local();
  Child child([&](Child& self) { return send_and_hang(self, a->address()); });
  char sent = 0;
  ASSERT_TRUE(child.hear(&sent));
  Inbox* inbox = await(*a, What::opened).inbox;
  child.kill_it();
  await(*a, What::died);
  for (std::uint64_t number = 1; number <= 3; ++number) EXPECT_EQ(receive_number(*inbox), number);
}

// A clone that no fork handler sees holds the peer's sockets open: the pidfd tells.
TEST_F(LocalProcesses, DeathIsToldWhileAChildOfThePeerLives) {
  const auto a = open_local();
  Child child([&](Child& self) {
    const auto network = open_local();
    if (network == nullptr) return false;
    network->connect(a->address());
    NetworkEvent event;
    if (!await(*network, event)) return false;
    const pid_t grandchild = static_cast<pid_t>(_Fork());
    if (grandchild == 0) {
      alarm(60);
      pause();
      _exit(0);
    }
    self.tell(grandchild);
    pause();
    return true;
  });
  pid_t grandchild = 0;
  ASSERT_TRUE(child.hear(&grandchild));
  await(*a, What::opened);
  child.kill_it();
  await(*a, What::died);
  kill(grandchild, SIGKILL);
}

TEST_F(LocalProcesses, ForkedChildIsAloneAndDisturbsNobody) {
  const auto a = open_local(), b = open_local();
  Joined at_a, at_b;
  a->connect(b->address());
  ASSERT_TRUE(join(*b, a->address(), &at_b));
  ASSERT_NE(at_a.outbox = await(*a, What::connected).outbox, nullptr);
  ASSERT_NE(at_a.inbox = await(*a, What::opened).inbox, nullptr);
  {
    Child child([&](Child&) {
      for (std::uint64_t i = 0; i < 10; ++i) send_number(*at_a.outbox, 666);
      NetworkEvent event;
      if (!await(*a, event) || event.what != What::died) return false;
      a->drop(event.address);
      Address address = b->address();
      a->connect(address);
      if (!await(*a, event) || event.what != What::refused) return false;
      delete const_cast<std::unique_ptr<LocalNetwork>&>(a).release();
      // Of its own it may open what it wants.
      const auto fresh = open_local();
      if (fresh == nullptr) return false;
      fresh->connect(address);
      return await(*fresh, event) && event.what == What::connected;
    });
    EXPECT_TRUE(child.succeeded());
  }
  ASSERT_TRUE(send_number(*at_a.outbox, 1));
  EXPECT_EQ(receive_number(*at_b.inbox), 1u);
  ASSERT_TRUE(send_number(*at_b.outbox, 2));
  EXPECT_EQ(receive_number(*at_a.inbox), 2u);
  // The child's own endpoint came and went.
  const NetworkEvent opened = await(*b, What::opened);
  EXPECT_EQ(await(*b, What::ended).address, opened.address);
}

bool readable(int fd, int timeout_ms) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) == 1;
}

TEST(LocalNetwork, DoorbellRingsForPacketsAndNewsOnlyWhileArmed) {
  const auto a = open_local(), b = open_local();
  const int bell = b->doorbell();
  ASSERT_GE(bell, 0);
  b->arm();
  a->connect(b->address());
  EXPECT_TRUE(readable(bell, 20000));
  Outbox* to_b = await(*a, What::connected).outbox;
  Inbox* from_a = await(*b, What::opened).inbox;
  b->disarm();
  EXPECT_FALSE(readable(bell, 0));

  ASSERT_TRUE(send_number(*to_b, 1));
  EXPECT_EQ(receive_number(*from_a), 1u);
  EXPECT_FALSE(readable(bell, 20));

  b->arm();
  ASSERT_TRUE(send_number(*to_b, 2));
  EXPECT_TRUE(readable(bell, 20000));
  EXPECT_EQ(receive_number(*from_a), 2u);
  b->disarm();
  EXPECT_FALSE(readable(bell, 0));
}

// The next packet on a socket, as a reply; false: it is none.
bool read_reply(int socket, MonitorReply* reply) {
  int fds[os::max_packet_fds];
  unsigned count = 0;
  return os::wait_readable(socket, 20000) == 1 &&
         os::receive_packet(socket, reply, sizeof *reply, fds, &count) ==
             static_cast<ssize_t>(sizeof *reply);
}

TEST(LocalNetwork, AnswersWhoAsksForCounters) {
  Statistics statistics;
  statistics.count_sent(Path::eager, 100);
  const auto a = open_local(), b = open_local();
  a->publish(&statistics);
  b->connect(a->address());
  await(*b, What::connected);
  await(*a, What::opened);

  char name[name_bytes];
  socket_name(a->address(), name);
  const int socket = os::connect_abstract(name);
  ASSERT_GE(socket, 0);
  for (int round = 0; round < 2; ++round) {
    constexpr Greeting question = Greeting::monitor;
    ASSERT_EQ(os::send_packet(socket, &question, sizeof question),
              static_cast<ssize_t>(sizeof question));
    MonitorReply reply;
    ASSERT_TRUE(read_reply(socket, &reply));
    EXPECT_EQ(reply.pid, getpid());
    EXPECT_EQ(reply.sent_bytes[static_cast<std::size_t>(Path::eager)], 100u);
    ASSERT_EQ(reply.peer_count, 1u);
    EXPECT_EQ(reply.peer[0].pid, getpid());
    EXPECT_EQ(reply.peer[0].ring, 1);
  }
  os::close_fd(socket);
}

TEST(LocalNetwork, ReportsToACollectorAtFirstFromTimeToTimeAndAtLast) {
  char name[64];
  std::snprintf(name, sizeof name, "haul-test-collector.%d", getpid());
  const int listener = os::listen_abstract(name, 4);
  ASSERT_GE(listener, 0);
  setenv("HAUL_FABRIC_REPORT", name, 1);
  setenv("PMI_RANK", "7", 1);
  reread_knobs();
  Statistics statistics;
  const auto a = open_local();
  a->publish(&statistics);
  unsetenv("HAUL_FABRIC_REPORT");
  unsetenv("PMI_RANK");
  reread_knobs();
  EXPECT_TRUE(a->access().observed);
  const int socket = os::accept_from(listener);
  ASSERT_GE(socket, 0);
  MonitorReply reply;
  ASSERT_TRUE(read_reply(socket, &reply));
  EXPECT_EQ(reply.sent_bytes[static_cast<std::size_t>(Path::ring)], 0u);
  EXPECT_EQ(reply.last, 0u);
  EXPECT_EQ(reply.rank, 7);
  // By itself, so that what a rank has done is known when it is killed.
  statistics.count_sent(Path::mapped, 9);
  static char buffer[100];  // (A sanitizer's stack may lie anywhere.)
  const iovec piece{buffer, sizeof buffer};
  a->access().note_large(Path::mapped, std::size_t{1} << 20, 5000);
  a->access().note_unmapped(&piece, 1, 100, true);
  ASSERT_TRUE(read_reply(socket, &reply));
  EXPECT_EQ(reply.sent_bytes[static_cast<std::size_t>(Path::mapped)], 9u);
  EXPECT_EQ(reply.last, 0u);
  EXPECT_EQ(reply.large[large_class(std::size_t{1} << 20)][static_cast<std::size_t>(Path::mapped)]
                .messages,
            1u);
  ASSERT_EQ(reply.slow_count, 1u);
  EXPECT_EQ(reply.slow[0].kind, static_cast<std::uint8_t>(MemoryKind::static_data));
  // A child of fork says nothing.
  Child child([&](Child&) {
    a->publish(nullptr);
    return true;
  });
  EXPECT_TRUE(child.succeeded());
  statistics.count_sent(Path::ring, 5);
  a->publish(nullptr);
  EXPECT_FALSE(a->access().observed);
  do {
    ASSERT_TRUE(read_reply(socket, &reply));  // another one may have come meanwhile
  } while (reply.last == 0);
  EXPECT_EQ(reply.pid, getpid());
  EXPECT_EQ(reply.sent_bytes[static_cast<std::size_t>(Path::ring)], 5u);
  EXPECT_FALSE(read_reply(socket, &reply));  // closed
  os::close_fd(socket);
  os::close_fd(listener);
}

// ---- peers that lie ----

class Liar {
 public:
  explicit Liar(const Address& victim) {
    char name[name_bytes];
    socket_name(victim, name);
    socket_ = os::connect_abstract(name);
    make_address(&hello.from);
    hello.segment_bytes = segment_bytes;
    hello.probe_address = probe_word_address();
    hello.probe_value = probe_word_value();
  }
  ~Liar() { os::close_fd(socket_); }
  Liar(const Liar&) = delete;
  Liar& operator=(const Liar&) = delete;

  void say(const void* data, std::size_t bytes, int fd) {
    os::send_packet(socket_, data, bytes, &fd, fd >= 0 ? 1 : 0);
  }
  void say_hello(int fd) { say(&hello, sizeof hello, fd); }
  bool thrown_out() {
    char byte;
    int fds[os::max_packet_fds];
    unsigned count = 0;
    return os::wait_readable(socket_, 20000) == 1 &&
           os::receive_packet(socket_, &byte, 1, fds, &count) <= 0;
  }

  Introduction hello;

 private:
  int socket_ = -1;
};

TEST(LocalNetwork, GarbageIsThrownOut) {
  const auto a = open_local();
  unsigned char noise[3000];
  for (std::size_t bytes : {1u, 4u, 100u, 200u, 3000u}) {
    os::random_bytes(noise, bytes);
    Liar liar(a->address());
    liar.say(noise, bytes, -1);
    EXPECT_TRUE(liar.thrown_out()) << bytes;
  }
  NetworkEvent event;
  EXPECT_FALSE(a->next(event));
}

TEST(LocalNetwork, HelloThatLiesIsThrownOut) {
  const auto a = open_local();
  const int sealed = os::make_sealed("liar", segment_bytes);
  const int small = os::make_sealed("liar", 4096);
  const int unsealed = memfd_create("liar", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(unsealed, static_cast<off_t>(segment_bytes)), 0);
  const int file = open("/dev/zero", O_RDWR | O_CLOEXEC);
  for (const int fd : {small, unsealed, file, -1}) {
    Liar liar(a->address());
    liar.say_hello(fd);
    EXPECT_TRUE(liar.thrown_out()) << fd;
  }
  const auto expect_refused = [&](auto change) {
    Liar liar(a->address());
    change(liar.hello);
    liar.say_hello(sealed);
    EXPECT_TRUE(liar.thrown_out());
  };
  expect_refused([](Introduction& hello) { ++hello.version; });
  expect_refused([](Introduction& hello) { ++hello.segment_bytes; });
  expect_refused([](Introduction& hello) { hello.from.magic = 0; });
  expect_refused([](Introduction& hello) { ++hello.from.host; });
  expect_refused([](Introduction& hello) { hello.arena.bytes = 1; });  // and no descriptor
  NetworkEvent event;
  EXPECT_FALSE(a->next(event));
  for (const int fd : {sealed, small, unsealed, file}) os::close_fd(fd);
}

TEST(LocalNetwork, SecondHelloEndsThePeer) {
  const auto a = open_local();
  const int sealed = os::make_sealed("liar", segment_bytes);
  Liar liar(a->address());
  liar.say_hello(sealed);
  await(*a, What::opened);
  liar.say_hello(sealed);
  await(*a, What::died);
  os::close_fd(sealed);
}

// ---- descriptors run out ----

TEST_F(LocalProcesses, WithoutDescriptorsConnectingIsRefused) {
  const auto a = open_local();
  Child child([&](Child&) {
    const auto network = open_local();
    if (network == nullptr) return false;
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    network->connect(a->address());
    NetworkEvent event;
    return await(*network, event) && event.what == What::refused;
  });
  EXPECT_TRUE(child.succeeded());
}

TEST_F(LocalProcesses, WithoutDescriptorsWhoConnectsIsTurnedAway) {
  const auto a = open_local();
  Child child([&](Child& self) {
    const auto network = open_local();
    if (network == nullptr) return false;
    // What is free below the limit is taken; one descriptor is left to the one that is spare.
    const rlimit few{64, 64};
    setrlimit(RLIMIT_NOFILE, &few);
    while (dup(0) >= 0) {
    }
    self.tell(network->address());
    char done = 0;
    return self.hear(&done);
  });
  Address full;
  ASSERT_TRUE(child.hear(&full));
  a->connect(full);
  // It may be turned away before its Introduction, or after.
  NetworkEvent event;
  ASSERT_TRUE(await(*a, event));
  if (event.what == What::connected) {
    await(*a, What::died);
  } else {
    EXPECT_EQ(event.what, What::refused);
    EXPECT_EQ(event.error, FI_ECONNREFUSED);
  }
  child.tell(char{1});
  EXPECT_TRUE(child.succeeded());
}

}  // namespace
}  // namespace haul::fabric::local_test
