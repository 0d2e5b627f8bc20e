// Who is let in, and what is said to who is not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/machine/clock.hpp"
#include "service/fake.hpp"

namespace haul::service_test {
namespace {

class Handshake : public testing::Test {
 protected:
  static FakeOptions silent() {
    FakeOptions options;
    options.hello = false;
    return options;
  }
  void expect_refused(Fake& client, Code code, const char* part) {
    EXPECT_FALSE(client.say_hello());
    EXPECT_EQ(client.refused().code, static_cast<int>(code));
    EXPECT_NE(std::strstr(client.refused().sentence, part), nullptr) << client.refused().sentence;
    EXPECT_TRUE(service_.alive());
  }
  void expect_refused_with(Fake& client, const std::vector<int>& fds) {
    EXPECT_FALSE(client.say_hello(fds));
    EXPECT_EQ(client.refused().code, static_cast<int>(Code::invalid));
  }
  Service service_;
};

TEST_F(Handshake, Welcome) {
  Fake client(service_.path());
  EXPECT_EQ(client.welcome().pid, service_.pid());
  EXPECT_EQ(client.welcome().protocol, wire::protocol);
  EXPECT_STREQ(client.welcome().version, "0.1.0");
  EXPECT_EQ(client.welcome().reaches_memory != 0, client.welcome().why[0] == '\0');
  EXPECT_TRUE(service_.says("(fake) attached"));
}

TEST_F(Handshake, OtherVersionsAreNamed) {
  Fake newer(service_.path(), silent());
  newer.hello.protocol = 7;
  std::strcpy(newer.hello.version, "9.8.7");
  expect_refused(newer, Code::not_supported, "9.8.7, protocol 7");
  Fake built_otherwise(service_.path(), silent());
  built_otherwise.hello.layout ^= 1;
  expect_refused(built_otherwise, Code::not_supported, "update");
  Fake stranger(service_.path(), silent());
  stranger.hello.magic = 1;
  expect_refused(stranger, Code::invalid, "no message of haul");
  Fake role(service_.path(), silent());
  role.hello.role = static_cast<wire::Role>(2);
  expect_refused(role, Code::invalid, "role");
}

TEST_F(Handshake, TruncatedAndLongPackets) {
  for (const std::size_t bytes : {1ul, 3ul, 4ul, 11ul, 12ul, 40ul, sizeof(wire::Hello) - 1}) {
    Fake client(service_.path(), silent());
    const int table = client.table_fd();
    ASSERT_GT(os::send_packet(client.fd(), &client.hello, bytes, &table, 1), 0);
    EXPECT_TRUE(client.closed());
    EXPECT_LT(client.refused().code, 0) << bytes;
  }
  Fake client(service_.path());
  const char large[1000] = {};
  ASSERT_GT(os::send_packet(client.fd(), large, sizeof large), 0);
  EXPECT_TRUE(client.closed());
  // The right kinds with a wrong length.
  for (std::uint32_t kind = 0; kind < 20; ++kind) {
    Fake other(service_.path());
    std::uint32_t message[3] = {kind, 1, 2};
    ASSERT_GT(os::send_packet(other.fd(), message, sizeof message), 0);
    if (kind == static_cast<std::uint32_t>(wire::MessageKind::bell)) continue;
    EXPECT_TRUE(other.closed()) << kind;
    EXPECT_EQ(other.refused().code, static_cast<int>(Code::invalid)) << kind;
  }
}

TEST_F(Handshake, TablesThatAreNone) {
  {
    Fake client(service_.path(), silent());
    expect_refused_with(client, {});
  }
  const int zero = open("/dev/zero", O_RDWR), event = os::event_fd();
  const int unsealed = memfd_create("x", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(unsealed, shared_table_bytes), 0);
  const int read_only = memfd_create("x", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(read_only, shared_table_bytes), 0);
  ASSERT_EQ(fcntl(read_only, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
  const int future = memfd_create("x", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(future, shared_table_bytes), 0);
  ASSERT_EQ(fcntl(future, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE), 0);
  const int small = os::make_sealed("x", shared_table_bytes - 4096);
  char file_name[] = "/tmp/haul-service-test-XXXXXX";
  const int file = mkstemp(file_name);
  unlink(file_name);
  ASSERT_EQ(ftruncate(file, shared_table_bytes), 0);
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", unsealed);
  const int reading = open(path, O_RDONLY | O_CLOEXEC);
  for (const int fd : {zero, event, unsealed, read_only, future, small, file, reading}) {
    Fake client(service_.path(), silent());
    expect_refused_with(client, {fd, client.usual_fds()[1]});
    close(fd);
  }
}

TEST_F(Handshake, ArenasThatAreNone) {
  const auto attempt = [&](auto change, std::vector<int> fds = {}) {
    Fake client(service_.path(), silent());
    change(client.hello);
    if (fds.empty()) fds = client.usual_fds();
    if (fds[0] < 0) fds[0] = client.table_fd();
    EXPECT_FALSE(client.say_hello(fds));
    EXPECT_EQ(client.refused().code, static_cast<int>(Code::invalid));
    EXPECT_TRUE(service_.alive());
  };
  attempt([](wire::Hello& h) { h.arena_bytes += 4096; });
  attempt([](wire::Hello& h) { h.arena_bytes = ~0ull & ~4095ull; });
  attempt([](wire::Hello& h) { h.arena_bytes = 1ull << 41; });
  attempt([](wire::Hello& h) { h.arena_base += 1; });
  attempt([](wire::Hello& h) { h.arena_bytes -= 1; });
  attempt([](wire::Hello& h) { h.arena_base = 1ull << 47; });
  attempt([](wire::Hello& h) { h.arena_base = ~0ull & ~4095ull; });
  const int unsealed = memfd_create("x", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(unsealed, 16 * mib), 0);
  attempt([](wire::Hello&) {}, {-1, unsealed});
  close(unsealed);
  Fake later(service_.path());  // a second arena
  wire::ArenaHandover arena;
  arena.base = later.hello.arena_base;
  arena.bytes = later.hello.arena_bytes;
  ASSERT_TRUE(later.send(arena, {later.usual_fds()[1]}));  // the same: told twice
  EXPECT_EQ(later.run(Fake::copy_job(later.arena(), later.arena() + 64, 64)), Code::ok);
  arena.base -= 4096;
  ASSERT_TRUE(later.send(arena, {later.usual_fds()[1]}));
  EXPECT_TRUE(later.closed());
}

TEST_F(Handshake, AnArenaThatComesLater) {
  Fake client(service_.path(), silent());
  const wire::Hello whole = client.hello;
  client.hello.arena_base = client.hello.arena_bytes = 0;
  client.hello.probe_value ^= 1;  // so that there is no other way than the mapping
  ASSERT_TRUE(client.say_hello({client.table_fd()}));
  wire::ArenaHandover arena;
  arena.base = whole.arena_base;
  arena.bytes = whole.arena_bytes;
  ASSERT_TRUE(client.send(arena, {client.usual_fds()[1]}));
  client.arena()[0] = 3;
  EXPECT_EQ(client.run(Fake::copy_job(client.arena_address(4096), client.arena_address(), 1)),
            Code::ok);
  EXPECT_EQ(client.arena()[4096], 3);
}

TEST_F(Handshake, AWrongProbeMeansMappedMemoryAlone) {
  Fake client(service_.path(), silent());
  client.hello.probe_value ^= 1;
  ASSERT_TRUE(client.say_hello());
  EXPECT_EQ(client.welcome().reaches_memory, 0u);
  EXPECT_NE(client.welcome().why[0], '\0');
  std::uint8_t own = 5;
  const std::uint64_t seq = client.submit(Fake::copy_job(client.arena(), &own, 1));
  EXPECT_EQ(client.wait(seq), Code::permission);
  EXPECT_EQ(client.run(Fake::copy_job(client.arena(), client.arena() + 100, 8)), Code::ok);
}

TEST_F(Handshake, AnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const std::string directory = service_.path().substr(0, service_.path().rfind('/'));
  ASSERT_EQ(chmod(directory.c_str(), 0755), 0);
  ASSERT_EQ(chmod(service_.path().c_str(), 0666), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(2);
    Fake client(service_.path(), silent());
    const bool welcome = client.say_hello();
    const bool named = std::strstr(client.refused().sentence, "65534") != nullptr;
    _exit(!welcome && (named || client.refused().code == 0) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(service_.stats().clients, 0u);
}

TEST_F(Handshake, AKeyIsOneProcesss) {
  Fake first(service_.path());
  Fake again(service_.path(), silent());
  std::memcpy(again.hello.key, first.hello.key, sizeof again.hello.key);
  EXPECT_TRUE(again.say_hello());  // the same process, come anew: its former link goes
  EXPECT_TRUE(first.closed());
  const pid_t child = fork();
  if (child == 0) {
    Fake thief(service_.path(), silent());
    std::memcpy(thief.hello.key, again.hello.key, sizeof thief.hello.key);
    _exit(thief.say_hello() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Handshake, NamesArePrintable) {
  Fake client(service_.path(), silent());
  std::strcpy(client.hello.name, "a\033[2Jb\nc");
  ASSERT_TRUE(client.say_hello());
  EXPECT_TRUE(service_.says("(a?[2Jb?c) attached"));
}

TEST_F(Handshake, ManyMonitorsAndSilentCallers) {
  Fake client(service_.path());
  std::vector<std::unique_ptr<Fake>> crowd;
  FakeOptions options = silent();
  options.arena_bytes = 0;
  for (unsigned i = 0; i < 150; ++i) {
    crowd.push_back(std::make_unique<Fake>(service_.path(), options));
    if (i % 2 == 0) continue;
    crowd.back()->hello.role = wire::Role::monitor;
    EXPECT_TRUE(crowd.back()->say_hello({}));
  }
  EXPECT_EQ(client.run(Fake::copy_job(client.arena(), client.arena() + 64, 64)), Code::ok);
  EXPECT_EQ(service_.stats().clients, 1u);
}

// Two hundred clients, then a sentence.
TEST(HandshakeLimits, ClientsUpToTheLimit) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 1200) GTEST_SKIP() << "ulimit -n is " << limit.rlim_cur;
  Service service;
  std::vector<std::unique_ptr<Fake>> crowd;
  FakeOptions options;
  options.arena_bytes = mib;
  for (unsigned i = 0; i < 200; ++i)
    crowd.push_back(std::make_unique<Fake>(service.path(), options));
  options.hello = false;
  Fake late(service.path(), options);
  EXPECT_FALSE(late.say_hello());
  EXPECT_EQ(late.refused().code, static_cast<int>(Code::no_memory));
  for (auto& client : crowd)
    ASSERT_EQ(client->run(Fake::copy_job(client->arena(), client->arena() + 4096, 4096)), Code::ok);
  crowd.pop_back();
  Fake next(service.path());
  EXPECT_EQ(next.run(Fake::copy_job(next.arena(), next.arena() + 4096, 4096)), Code::ok);
}

// Descriptors run out: the service says so to who comes, and goes on for who is there.
TEST(HandshakeLimits, NoDescriptorLeft) {
  const pid_t child = fork();
  if (child == 0) {
    {
      Service service;
      rlimit few{20, 20};
      if (prlimit(service.pid(), RLIMIT_NOFILE, &few, nullptr) != 0) _exit(3);
      FakeOptions options;
      options.arena_bytes = mib;
      Fake first(service.path(), options);
      std::vector<std::unique_ptr<Fake>> crowd;
      options.hello = false;
      unsigned refused = 0;
      for (unsigned i = 0; i < 30; ++i) {
        crowd.push_back(std::make_unique<Fake>(service.path(), options));
        if (!crowd.back()->say_hello()) ++refused;
      }
      const bool works =
          first.run(Fake::copy_job(first.arena(), first.arena() + 4096, 4096)) == Code::ok;
      crowd.clear();
      usleep(100'000);
      Fake last(service.path(), options);
      const bool again = last.say_hello();
      if (refused == 0 || !works || !again) {
        std::fprintf(stderr, "refused %u works %d again %d\n", refused, works, again);
        _exit(1);
      }
    }
    _exit(testing::Test::HasFailure() ? 2 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace haul::service_test
