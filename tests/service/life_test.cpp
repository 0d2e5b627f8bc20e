// Sleeping and waking, sharing fairly, stopping.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/machine/clock.hpp"
#include "service/fake.hpp"

namespace haul::service_test {
namespace {

service::Options sleepy() {
  service::Options options;
  options.spin_ns = 50'000;
  return options;
}

TEST(ServiceLife, SleepsAndIsRungAwake) {
  Service service(sleepy());
  Fake client(service.path());
  unsigned slept = 0;
  for (unsigned i = 0; i < 300; ++i) {
    if (i % 3 == 0) {
      const std::uint64_t end = now_ns() + 10'000'000'000;
      while (client.board().asleep.load() == 0 && now_ns() < end) usleep(100);
    }
    slept += client.board().asleep.load();
    ASSERT_EQ(client.run(Fake::copy_job(client.arena(), client.arena() + 4096, 100)), Code::ok)
        << i;
  }
  EXPECT_GE(slept, 100u);
}

TEST(ServiceLife, NoBellIsLostAtTheMomentOfFallingAsleep) {
  service::Options options;
  options.spin_ns = 0;
  Service service(options);
  Fake client(service.path());
  for (unsigned i = 0; i < 20'000; ++i) {
    Job job = Fake::copy_job(client.arena(), client.arena() + 4096, 64);
    while (!client.ring().has_room()) {
    }
    client.ring().publish(job, nullptr);
    os::compiler_barrier();  // as the library does: the service's barrier is the other half
    client.ring_bell();
    ASSERT_EQ(client.wait(job.seq), Code::ok) << i;
  }
}

TEST(ServiceLife, AsleepItIsAskedWithoutWaking) {
  Service service(sleepy());
  Fake client(service.path());
  const std::uint64_t end = now_ns() + 10'000'000'000;
  while (client.board().asleep.load() == 0 && now_ns() < end) usleep(100);
  for (unsigned i = 0; i < 5; ++i) {
    EXPECT_EQ(service.stats().state, 2u);
    EXPECT_EQ(service.stats().cpu, -1);
  }
}

TEST(ServiceLife, AStoppedClientStopsNobody) {
  Service service;
  const pid_t child = fork();
  if (child == 0) {
    Fake client(service.path());
    for (;;) client.submit(Fake::copy_job(client.arena(), client.arena() + mib, mib / 2));
  }
  usleep(20'000);
  kill(child, SIGSTOP);
  Fake other(service.path());
  for (unsigned i = 0; i < 100; ++i)
    EXPECT_EQ(other.run(Fake::copy_job(other.arena(), other.arena() + mib, 4096)), Code::ok);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(ServiceLife, AMonitorStopsItAndItsClientsLearn) {
  Service service;
  Fake client(service.path());
  FakeOptions options;
  options.hello = false;
  Fake monitor(service.path(), options);
  monitor.hello.role = wire::Role::monitor;
  ASSERT_TRUE(monitor.say_hello({}));
  ASSERT_TRUE(monitor.send(wire::Stop{}));
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(service.stop(), 0);
}

TEST(ServiceLife, AClientCannotStopIt) {
  Service service;
  Fake client(service.path());
  ASSERT_TRUE(client.send(wire::Stop{}));
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(service.alive());
}

TEST(ServiceLife, EndsWhenNobodyIsThere) {
  service::Options options;
  options.idle_exit_ns = 300'000'000;
  Service service(options);
  {
    Fake client(service.path());
    usleep(600'000);
    EXPECT_TRUE(service.alive());
  }
  const std::uint64_t end = now_ns() + 10'000'000'000;
  while (service.alive() && now_ns() < end) usleep(10'000);
  EXPECT_FALSE(service.alive());
}

TEST(ServiceLife, ASecondOneSaysSo) {
  Service service;
  service::Options options;
  options.socket_path = service.path();
  try {
    service::run(options);
    FAIL() << "it runs";
  } catch (const std::exception& failure) {
    EXPECT_NE(std::string(failure.what()).find("listens at"), std::string::npos);
  }
  EXPECT_TRUE(service.alive());
}

TEST(ServiceLife, ASocketThatWasLeftIsReplaced) {
  {
    Service first;
    const std::string path = first.path();
    kill(first.pid(), SIGKILL);
    const std::uint64_t end = now_ns() + 10'000'000'000;
    while (first.alive() && now_ns() < end) usleep(1000);
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
    const pid_t child = fork();
    if (child == 0) {
      service::Options options;
      options.socket_path = path;
      options.idle_exit_ns = 1;
      try {
        service::run(options);
      } catch (const std::exception&) {
        _exit(1);
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    first.forgive();
  }
}

}  // namespace
}  // namespace haul::service_test
