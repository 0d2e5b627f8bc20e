// The node's service and its clients in different namespaces, as in containers; and where the place
// for the socket is missing, stale or taken.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <string>

#include "service_support.hpp"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace {

using namespace e2e;

constexpr int cannot = skip_status;  // this machine does not let us make the namespace

// Mapped and private copies arrive, by whomever.
void copies_arrive() {
  const Shared src(2 * mib), dst(2 * mib);
  const Buffer own_src(2 * mib), own_dst(2 * mib);
  for (unsigned round = 0; round < 5; ++round) {
    src.fill(round);
    dst.clear();
    const haul_ticket ticket = haul_copy(dst.data(), src.data(), 2 * mib);
    while (haul_test(ticket) == 0) sched_yield();
    CHILD_EQUAL(first_wrong(dst.data(), 2 * mib, round), -1);
    own_src.fill(round);
    own_dst.clear();
    CHILD_EQUAL(haul_wait(haul_copy(own_dst.data(), own_src.data(), 2 * mib)), 0);
    CHILD_EQUAL(first_wrong(own_dst.data(), 2 * mib, round), -1);
  }
}

// In a namespace of its own, a client attaches all the same.
int attached_client(const Service& service, int flags) {
  return run_child([&] {
    service.use();
    if (unshare(flags) != 0) return cannot;
    // New pids and clocks are for children.
    if ((flags & (CLONE_NEWPID | CLONE_NEWTIME)) == 0) {
      CHILD_CHECK(attach());
      copies_arrive();
      CHILD_CHECK(state_now().service_chunks > 0);
      return 0;
    }
    if ((flags & CLONE_NEWTIME) != 0) {
      const int fd = open("/proc/self/timens_offsets", O_WRONLY);
      const char offsets[] = "monotonic 86400 0\n";
      if (fd < 0 || write(fd, offsets, sizeof offsets - 1) < 0) return cannot;
      close(fd);
    }
    return end_of(start_child([] {
      CHILD_CHECK(attach());
      copies_arrive();
      CHILD_CHECK(state_now().service_chunks > 0);
      return 0;
    }));
  });
}

#define EXPECT_GOOD_OR_SKIP(expression)                                              \
  do {                                                                               \
    const int status = (expression);                                                 \
    if (status == cannot) GTEST_SKIP() << "this user may not make such a namespace"; \
    EXPECT_EQ(status, 0);                                                            \
  } while (false)

TEST(ServicePlaces, AClientInANetworkNamespaceOfItsOwn) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_GOOD_OR_SKIP(attached_client(service, CLONE_NEWNET));
}

TEST(ServicePlaces, AClientInAMountNamespaceThatSeesTheSocket) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_GOOD_OR_SKIP(attached_client(service, CLONE_NEWNS));
}

TEST(ServicePlaces, AClientInAPidNamespaceOfItsOwn) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_GOOD_OR_SKIP(attached_client(service, CLONE_NEWPID));
}

TEST(ServicePlaces, AClientInAnIpcNamespaceOfItsOwn) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_GOOD_OR_SKIP(attached_client(service, CLONE_NEWIPC));
}

// Its clock is a day ahead: nobody compares times across processes.
TEST(ServicePlaces, AClientWithAnotherClock) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_GOOD_OR_SKIP(attached_client(service, CLONE_NEWTIME));
}

TEST(ServicePlaces, AClientThatDoesNotSeeTheSocketGoesOnAlone) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_GOOD_OR_SKIP(run_child([&] {
    service.use();
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", service.directory().c_str(), "tmpfs", 0, "size=64k") != 0)
      return cannot;
    CHILD_CHECK(!attach(300));
    copies_arrive();
    CHILD_CHECK(std::strstr(state_now().service_status, "haul serve") != nullptr);
    return 0;
  }));
}

// The service sees no pid for a client outside of its own pid namespace: mapped memory it moves,
// private memory it cannot reach.
TEST(ServicePlaces, AServiceInAPidNamespaceOfItsOwn) {
  Service service;
  const pid_t outer = start_child([&] {
    if (unshare(CLONE_NEWPID) != 0) return cannot;
    return service.start() ? (pause(), 0) : 1;
  });
  for (int turn = 0; turn < 2000 && !service.listens() && kill(outer, 0) == 0; ++turn) sleep_ms(1);
  if (!service.listens()) {
    EXPECT_EQ(end_of(outer), cannot);
    GTEST_SKIP() << "this user may not make such a namespace";
  }
  EXPECT_EQ(run_child([&] {
              service.use();
              setenv("HAUL_MOVER_CORES", "0", 1);
              CHILD_CHECK(attach());
              copies_arrive();
              const haul_state state = state_now();
              CHILD_CHECK(state.service_chunks > 0);
              CHILD_CHECK(std::strstr(state.service_status, "haul_alloc() only") != nullptr);
              return 0;
            }),
            0);
  kill(outer, SIGKILL);
  end_of(outer);
}

// memfds take no room in /dev/shm.
TEST(ServicePlaces, WithAFullDevShm) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_GOOD_OR_SKIP(run_child([&] {
    service.use();
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4k") != 0)
      return cannot;
    const int fd = open("/dev/shm/full", O_WRONLY | O_CREAT, 0600);
    char page[4096] = {};
    while (write(fd, page, sizeof page) > 0) {
    }
    CHILD_EQUAL(errno, ENOSPC);
    CHILD_CHECK(attach());
    copies_arrive();
    CHILD_CHECK(state_now().service_chunks > 0);
    return 0;
  }));
}

TEST(ServicePlaces, AClientOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  Service service;
  ASSERT_TRUE(service.start());
  chmod(service.directory().c_str(), 0755);
  chmod(service.socket().c_str(), 0666);
  EXPECT_EQ(run_child([&] {
              service.use();
              CHILD_CHECK(setgroups(0, nullptr) == 0 && setresgid(65534, 65534, 65534) == 0 &&
                          setresuid(65534, 65534, 65534) == 0);
              CHILD_CHECK(!attach(300));
              copies_arrive();
              CHILD_CHECK(std::strstr(state_now().service_status, "another user") != nullptr);
              return 0;
            }),
            0);
}

TEST(ServicePlaces, AStaleSocketIsReplacedAndALiveOneIsNot) {
  Service service;
  ASSERT_TRUE(service.start());
  service.end(SIGKILL);
  EXPECT_EQ(access(service.socket().c_str(), F_OK), 0) << "a killed service leaves its socket";
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              haul::service::Options options;
              options.socket_path = service.socket();
              options.lease = false;
              try {
                haul::service::run(options);
              } catch (const std::exception& failure) {
                return std::strstr(failure.what(), "listens") != nullptr ? 0 : 2;
              }
              return 1;
            }),
            0);
  EXPECT_EQ(run_child([&] {
              service.use();
              CHILD_CHECK(attach());
              copies_arrive();
              return 0;
            }),
            0);
}

}  // namespace
