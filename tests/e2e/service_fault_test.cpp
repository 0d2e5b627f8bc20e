// The node's service dies, stops, refuses, or was never there; its clients go on.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <string>
#include <vector>

#include "request/wire.hpp"
#include "service_support.hpp"

namespace {

using namespace e2e;

// Seen by the test and its children.
struct Stage {
  std::atomic<unsigned> step, attached;
  std::atomic<bool> stop;
};
Stage& stage() {
  void* at =
      mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *static_cast<Stage*>(at);
}

// Copies in flight all the time, checked, some tested and some waited for, until told to stop.
// Source and destination are written anew as soon as a ticket says so: what is copied late would
// show.
int busy_client(const Service& service, Stage& shared, unsigned seed) {
  service.use();
  attach();
  shared.attached.fetch_add(1);
  constexpr unsigned window = 6;
  constexpr std::size_t bytes = 2 * mib;
  std::vector<Shared*> src, dst;
  for (unsigned i = 0; i < window; ++i) {
    src.push_back(new Shared(bytes));
    dst.push_back(new Shared(bytes));
  }
  for (std::uint64_t round = seed; !shared.stop; round += 100) {
    haul_ticket tickets[window];
    for (unsigned i = 0; i < window; ++i) {
      std::memset(src[i]->data(), static_cast<int>((round + i) % 251 + 1), bytes);
      dst[i]->data()[0] = dst[i]->data()[bytes - 1] = 0;
      tickets[i] = haul_copy(dst[i]->data(), src[i]->data(), bytes - i);
    }
    for (unsigned i = 0; i < window; ++i) {
      if (i % 2 == 0) {
        while (haul_test(tickets[i]) == 0) sched_yield();
      }
      CHILD_EQUAL(haul_wait(tickets[i]), 0);
      CHILD_EQUAL(std::memcmp(dst[i]->data(), src[i]->data(), bytes - i), 0);
    }
  }
  return 0;
}

TEST(ServiceFault, KilledAndRestartedUnderLoad) {
  Service service;
  ASSERT_TRUE(service.start());
  Stage& shared = stage();
  std::vector<pid_t> clients;
  for (unsigned i = 0; i < 3; ++i)
    clients.push_back(start_child([&, i] { return busy_client(service, shared, i); }));
  while (shared.attached < 3) sleep_ms(1);
  for (unsigned round = 0; round < 12; ++round) {
    sleep_ms(20 + 13 * round);
    service.end(SIGKILL);
    sleep_ms(round % 3 * 30);
    ASSERT_TRUE(service.start());
  }
  sleep_ms(600);  // clients look again after 200 ms
  shared.stop = true;
  for (const pid_t client : clients) EXPECT_EQ(end_of(client), 0);
}

TEST(ServiceFault, AClientAttachesToTheNextOneWithoutARestart) {
  Service service;
  ASSERT_TRUE(service.start());
  Stage& shared = stage();
  const pid_t client = start_child([&] {
    service.use();
    CHILD_CHECK(attach());
    const int first = state_now().service_pid;
    const Shared src(mib), dst(mib);
    src.fill(1);
    CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), mib)), 0);
    shared.step = 1;
    CHILD_CHECK(detached());
    dst.clear();
    CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), mib)), 0);  // alone
    CHILD_EQUAL(first_wrong(dst.data(), mib, 1), -1);
    shared.step = 2;
    while (shared.step != 3) sleep_ms(1);
    CHILD_CHECK(attach());
    CHILD_CHECK(state_now().service_pid != first);
    dst.clear();
    haul_ticket ticket = haul_copy(dst.data(), src.data(), mib);
    while (haul_test(ticket) == 0) sched_yield();
    CHILD_EQUAL(first_wrong(dst.data(), mib, 1), -1);
    return 0;
  });
  while (shared.step != 1) sleep_ms(1);
  service.end(SIGKILL);
  while (shared.step != 2 && kill(client, 0) == 0) sleep_ms(1);
  ASSERT_TRUE(service.start());
  shared.step = 3;
  EXPECT_EQ(end_of(client), 0);
}

TEST(ServiceFault, AStoppedServiceHoldsUpOnlyWhatItHasBegun) {
  Service service;
  ASSERT_TRUE(service.start());
  Stage& shared = stage();
  const pid_t client = start_child([&] {
    service.use();
    CHILD_CHECK(attach());
    const Shared src(mib), dst(mib);
    shared.step = 1;
    while (shared.step != 2) sleep_ms(1);
    for (unsigned round = 0; round < 20; ++round) {  // nobody else is there: the waiter does it all
      src.fill(round);
      CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), mib)), 0);
      CHILD_EQUAL(first_wrong(dst.data(), mib, round), -1);
    }
    const haul_ticket ticket = haul_copy(dst.data(), src.data(), mib);
    sleep_ms(20);
    CHILD_EQUAL(haul_test(ticket), 0);  // a test never helps
    shared.step = 3;
    while (haul_test(ticket) == 0) sleep_ms(1);
    CHILD_EQUAL(first_wrong(dst.data(), mib, 19), -1);
    return 0;
  });
  while (shared.step != 1) sleep_ms(1);
  kill(service.pid(), SIGSTOP);
  shared.step = 2;
  // A newcomer is not held up either.
  EXPECT_EQ(run_child([&] {
              service.use();
              const Shared src(mib), dst(mib);
              for (unsigned round = 0; round < 5; ++round) {
                haul_wake();
                src.fill(round);
                CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), mib)), 0);
                CHILD_EQUAL(first_wrong(dst.data(), mib, round), -1);
              }
              CHILD_EQUAL(state_now().service_state, 0);
              return 0;
            }),
            0);
  while (shared.step != 3 && kill(client, 0) == 0) sleep_ms(1);
  kill(service.pid(), SIGCONT);
  EXPECT_EQ(end_of(client), 0);
}

TEST(ServiceFault, AStoppedOrKilledClientHoldsUpNobody) {
  Service service;
  ASSERT_TRUE(service.start());
  Stage& shared = stage();
  const pid_t stopped = start_child([&] { return busy_client(service, shared, 1); });
  const pid_t killed = start_child([&] { return busy_client(service, shared, 2); });
  while (shared.attached < 2) sleep_ms(1);
  sleep_ms(20);
  kill(stopped, SIGSTOP);
  kill(killed, SIGKILL);
  EXPECT_EQ(run_child([&] {
              service.use();
              CHILD_CHECK(attach());
              const Shared src(mib), dst(mib);
              for (unsigned round = 0; round < 50; ++round) {
                src.fill(round);
                const haul_ticket ticket = haul_copy(dst.data(), src.data(), mib);
                while (haul_test(ticket) == 0) sched_yield();
                CHILD_EQUAL(first_wrong(dst.data(), mib, round), -1);
              }
              return 0;
            }),
            0);
  EXPECT_EQ(end_of(killed), 1000 + SIGKILL);
  EXPECT_TRUE(service.running());
  kill(stopped, SIGCONT);
  sleep_ms(20);
  shared.stop = true;
  EXPECT_EQ(end_of(stopped), 0);
}

TEST(ServiceFault, AForkedChildIsAClientOfItsOwn) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              CHILD_CHECK(attach());
              const Shared src(mib), dst(mib);
              src.fill(5);
              haul_request request = haul_request_copy(dst.data(), src.data(), mib);
              request.flags = HAUL_COMPLETE;
              request.user_data = 77;
              haul_ticket before{};
              CHILD_EQUAL(haul_submit(&request, 1, &before), 1);
              const pid_t child = start_child([&] {
                CHILD_EQUAL(haul_test(before), 1);  // finished before the fork
                haul_completion entry{};
                CHILD_EQUAL(haul_reap(&entry, 1), 0);  // what was not reaped is the parent's
                CHILD_EQUAL(state_now().service_state, 0);
                CHILD_CHECK(attach());
                const Shared own_src(mib), own_dst(mib);
                for (unsigned round = 0; round < 30; ++round) {
                  own_src.fill(100 + round);
                  const haul_ticket ticket = haul_copy(own_dst.data(), own_src.data(), mib);
                  while (haul_test(ticket) == 0) sched_yield();
                  CHILD_EQUAL(first_wrong(own_dst.data(), mib, 100 + round), -1);
                }
                return 0;
              });
              for (unsigned round = 0; round < 30; ++round) {
                src.fill(200 + round);
                const haul_ticket ticket = haul_copy(dst.data(), src.data(), mib);
                while (haul_test(ticket) == 0) sched_yield();
                CHILD_EQUAL(first_wrong(dst.data(), mib, 200 + round), -1);
              }
              haul_completion entry{};
              CHILD_EQUAL(haul_reap(&entry, 1), 1);
              CHILD_EQUAL(entry.user_data, 77);
              return end_of(child);
            }),
            0);
}

TEST(ServiceFault, ForksUnderLoadAndWhileTheServiceDies) {
  Service service;
  ASSERT_TRUE(service.start());
  Stage& shared = stage();
  const pid_t client = start_child([&] {
    service.use();
    CHILD_CHECK(attach());
    const Shared src(4 * mib), dst(4 * mib);
    for (unsigned round = 0; round < 30; ++round) {
      haul_wake();
      src.fill(round);
      dst.clear();
      const haul_ticket ticket = haul_copy(dst.data(), src.data(), 4 * mib);
      if (round == 10) shared.step = 1;
      const pid_t child = start_child([&] {
        CHILD_EQUAL(haul_test(ticket), 1);
        return 0;
      });
      CHILD_EQUAL(end_of(child), 0);
      CHILD_EQUAL(haul_wait(ticket), 0);
      CHILD_EQUAL(first_wrong(dst.data(), 4 * mib, round), -1);
    }
    return 0;
  });
  while (shared.step != 1) sched_yield();
  service.end(SIGKILL);
  ASSERT_TRUE(service.start());
  EXPECT_EQ(end_of(client), 0);
}

TEST(ServiceFault, WithFewDescriptorsAClientGoesOn) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              const rlimit few{32, 32};
              CHILD_EQUAL(setrlimit(RLIMIT_NOFILE, &few), 0);
              CHILD_CHECK(attach());
              copy_works(2 * mib, 1);
              const Shared src(mib), dst(mib);
              src.fill(3);
              CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), mib)), 0);
              CHILD_EQUAL(first_wrong(dst.data(), mib, 3), -1);
              return 0;
            }),
            0);
  EXPECT_EQ(run_child([&] {
              service.use();
              const rlimit few{32, 32};
              CHILD_EQUAL(setrlimit(RLIMIT_NOFILE, &few), 0);
              while (dup(2) >= 0) {
              }
              haul_wake();
              for (unsigned round = 0; round < 5; ++round) copy_works(2 * mib, round);
              CHILD_EQUAL(state_now().service_state, 0);
              CHILD_CHECK(state_now().service_status[0] != 0);
              return 0;
            }),
            0);
}

TEST(ServiceFault, AServiceWithFewDescriptorsServesWhomItCan) {
  Service service;
  ASSERT_TRUE(service.start(std::uint64_t{64} << 30, 32));
  Stage& shared = stage();
  std::vector<pid_t> clients;
  for (unsigned i = 0; i < 16; ++i) {
    clients.push_back(start_child([&] {
      service.use();
      if (attach(300)) shared.attached.fetch_add(1);
      shared.step.fetch_add(1);
      const Shared src(mib), dst(mib);
      for (unsigned round = 0; round < 10 || shared.step < 16; ++round) {
        src.fill(round);
        CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), mib)), 0);
        CHILD_EQUAL(first_wrong(dst.data(), mib, round), -1);
      }
      return 0;
    }));
  }
  for (const pid_t client : clients) EXPECT_EQ(end_of(client), 0);
  EXPECT_GT(shared.attached, 0u);
  EXPECT_LT(shared.attached, 16u) << "the limit was too high for this test";
  EXPECT_EQ(run_child([&] {  // there is room again
              service.use();
              return attach() ? 0 : 1;
            }),
            0);
}

// Something that listens at the service's place, and answers as it likes.
template <class Answer>
pid_t start_impostor(const Service& service, Answer answer) {
  const pid_t impostor = start_child([&service, answer] {
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", service.socket().c_str());
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 1;
    listen(listener, 8);
    for (;;) {
      const int fd = accept(listener, nullptr, nullptr);
      char hello[1024];
      if (recv(fd, hello, sizeof hello, 0) > 0) answer(fd);
      close(fd);
    }
  });
  for (int turn = 0; turn < 2000 && !service.listens(); ++turn) sleep_ms(1);
  return impostor;
}

template <class Answer>
void expect_alone(Answer answer, const char* words) {
  Service service;
  const pid_t impostor = start_impostor(service, answer);
  EXPECT_EQ(run_child([&] {
              service.use();
              const Shared src(mib), dst(mib);
              // Longer than the 2 s for which an answer is waited for.
              for (unsigned round = 0; round < 25; ++round) {
                haul_wake();
                src.fill(round);
                CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), mib)), 0);
                CHILD_EQUAL(first_wrong(dst.data(), mib, round), -1);
                sleep_ms(100);
              }
              const haul_state state = state_now();
              CHILD_EQUAL(state.service_state, 0);
              if (std::strstr(state.service_status, words) == nullptr)
                std::fprintf(stderr, "status: %s\n", state.service_status);
              CHILD_CHECK(std::strstr(state.service_status, words) != nullptr);
              return 0;
            }),
            0);
  kill(impostor, SIGKILL);
  end_of(impostor);
}

TEST(ServiceFault, AnotherVersionIsRefusedByName) {
  expect_alone(
      [](int fd) {
        haul::wire::Refused refused;
        refused.code = HAUL_ENOTSUP;
        std::snprintf(refused.sentence, sizeof refused.sentence,
                      "the service is haul 9.8.7, the program uses 0.1.0");
        send(fd, &refused, sizeof refused, MSG_NOSIGNAL);
      },
      "haul 9.8.7");
}

TEST(ServiceFault, AnswersWithoutSenseAreRefused) {
  expect_alone(
      [](int fd) {
        const char nonsense[100] = {42};
        send(fd, nonsense, sizeof nonsense, MSG_NOSIGNAL);
      },
      "not understood");
  expect_alone([](int) {}, "closed the connection");
}

TEST(ServiceFault, AWordFromASilentOneIsNotWaitedForForEver) {
  expect_alone([](int) { sleep_ms(60000); }, "does not answer");
}

TEST(ServiceFault, ExitAndShutdownWithCopiesInFlight) {
  Service service;
  ASSERT_TRUE(service.start());
  for (const bool shut : {false, true}) {
    EXPECT_EQ(run_child([&] {
                service.use();
                CHILD_CHECK(attach());
                const Shared src(8 * mib), dst(8 * mib);
                src.fill(1);
                for (unsigned i = 0; i < 20; ++i) (void)haul_copy(dst.data(), src.data(), 8 * mib);
                if (!shut) std::exit(0);
                CHILD_EQUAL(haul_shutdown(), 0);
                CHILD_EQUAL(first_wrong(dst.data(), 8 * mib, 1), -1);
                CHILD_EQUAL(haul_test(haul_copy(dst.data(), src.data(), 8)), HAUL_ECLOSED);
                CHILD_EQUAL(haul_shutdown(), 0);
                return 0;
              }),
              0);
  }
  EXPECT_TRUE(service.running());
  EXPECT_EQ(service.end(SIGTERM) >= 0, true);
}

TEST(ServiceFault, SwitchedOffItIsNotEvenLookedFor) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use("auto");
              setenv("HAUL_SERVICE_USE", "off", 1);
              CHILD_CHECK(!attach(300));
              copy_works(2 * mib, 1);
              return 0;
            }),
            0);
}

}  // namespace
