// Copies between processes: one grants memory, others name it, the node's service copies.
#include <gtest/gtest.h>

#include <atomic>
#include <haul/haul.hpp>
#include <string>
#include <vector>

#include "service_support.hpp"

namespace {

using namespace e2e;

struct Stage {
  std::atomic<unsigned> step, done;
};
Stage& stage() {
  void* at =
      mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *static_cast<Stage*>(at);
}

// Grants travel as they would in a program: over a socket.
struct Wire {
  int ends[2];
  Wire() { CHILD_EQUAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0); }
};

void send_grant(int socket, const haul_grant& grant) {
  iovec part{const_cast<haul_grant*>(&grant), sizeof grant};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &grant.fd, sizeof(int));
  CHILD_EQUAL(sendmsg(socket, &message, 0), sizeof grant);
}

haul_grant receive_grant(int socket) {
  haul_grant grant{};
  iovec part{&grant, sizeof grant};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  CHILD_EQUAL(recvmsg(socket, &message, 0), sizeof grant);
  std::memcpy(&grant.fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
  return grant;
}

haul_request between(haul_space dst_space, void* dst, haul_space src_space, void* src,
                     std::size_t bytes) {
  haul_request request = haul_request_copy(dst, src, bytes);
  request.dst.space = dst_space;
  request.src.space = src_space;
  return request;
}

void* at(std::size_t offset) {
  return reinterpret_cast<void*>(offset);
}

int run_one(haul_request request) {
  haul_ticket ticket{};
  const int taken = haul_submit(&request, 1, &ticket);
  return taken == 1 ? haul_wait(ticket) : taken;
}

// Both sides must be clients of one service.
TEST(ServiceGrant, OneProducerManyConsumers) {
  Service service;
  ASSERT_TRUE(service.start());
  Stage& shared = stage();
  std::vector<Wire> wires(3);
  const pid_t producer = start_child([&] {
    service.use();
    const Shared data(5 * mib);
    data.fill(42);
    haul_grant grant{};
    CHILD_EQUAL(haul_share(data.data(), data.size(), HAUL_SHARE_READ, &grant), 0);
    for (const Wire& wire : wires) send_grant(wire.ends[0], grant);
    for (int turn = 0; shared.done != 3 && turn < 20000; ++turn) sleep_ms(1);
    CHILD_EQUAL(haul_unshare(&grant), 0);
    CHILD_EQUAL(haul_unshare(&grant), HAUL_EINVAL);
    return 0;
  });
  std::vector<pid_t> consumers;
  for (unsigned i = 0; i < 3; ++i) {
    consumers.push_back(start_child([&, i] {
      service.use();
      const haul_grant grant = receive_grant(wires[i].ends[1]);
      haul_space space = 0;
      std::size_t length = 0;
      CHILD_EQUAL(haul_space_open_grant(&grant, &space, &length), 0);
      close(grant.fd);
      CHILD_EQUAL(length, 5 * mib);
      const Shared copy(5 * mib);
      const Buffer own(5 * mib);
      for (unsigned round = 0; round < 10; ++round) {
        copy.clear();
        CHILD_EQUAL(run_one(between(0, copy.data(), space, at(0), 5 * mib)), 0);
        CHILD_EQUAL(first_wrong(copy.data(), 5 * mib, 42), -1);
        own.clear();
        CHILD_EQUAL(run_one(between(0, own.data(), space, at(mib + 7), 3 * mib)), 0);
        CHILD_EQUAL(first_wrong(own.data(), 3 * mib, 42, mib + 7), -1);
      }
      // Not what was not granted: writing, and beyond its end.
      CHILD_EQUAL(run_one(between(space, at(0), 0, copy.data(), 4096)), HAUL_EPERM);
      CHILD_EQUAL(run_one(between(0, copy.data(), space, at(5 * mib - 100), 101)), HAUL_EFAULT);
      CHILD_EQUAL(run_one(between(0, copy.data(), space, at(std::size_t{1} << 40), 1)),
                  HAUL_EFAULT);
      haul_request checked = between(0, copy.data(), space, at(0), 4096);
      checked.flags = HAUL_CHECKED;
      CHILD_EQUAL(run_one(checked), 0);
      CHILD_EQUAL(run_one(between(space, at(0), space, at(10), 4096)), HAUL_ENOTSUP);
      std::uint64_t own_word = 0;
      haul_request notifying = between(0, copy.data(), space, at(0), 4096);
      notifying.notify = &own_word;
      CHILD_EQUAL(run_one(notifying), HAUL_ENOTSUP);
      CHILD_EQUAL(haul_space_close(space), 0);
      CHILD_EQUAL(run_one(between(0, copy.data(), space, at(0), 4096)), HAUL_ECLOSED);
      shared.done.fetch_add(1);
      return 0;
    }));
  }
  for (const pid_t consumer : consumers) EXPECT_EQ(end_of(consumer), 0);
  EXPECT_EQ(end_of(producer), 0);
}

TEST(ServiceGrant, BetweenTwoOthersAndIntoOthers) {
  Service service;
  ASSERT_TRUE(service.start());
  Stage& shared = stage();
  Wire source, target;
  const auto owner = [&](const Wire& wire, std::uint32_t rights, bool is_source) {
    return start_child([&service, &shared, &wire, rights, is_source] {
      service.use();
      const Shared data(mib);
      if (is_source) data.fill(9);
      haul_grant grant{};
      CHILD_EQUAL(haul_share(data.data() + 4096, mib - 4096, rights, &grant), 0);
      send_grant(wire.ends[0], grant);
      while (shared.step != 1) sleep_ms(1);
      if (!is_source) {
        CHILD_EQUAL(first_wrong(data.data() + 4096, mib - 4096, 9, 4096), -1);
        CHILD_EQUAL(data.data()[4095], 0);
      }
      return 0;
    });
  };
  const pid_t from = owner(source, HAUL_SHARE_READ, true);
  const pid_t to = owner(target, HAUL_SHARE_READ | HAUL_SHARE_WRITE, false);
  EXPECT_EQ(run_child([&] {
              service.use();
              const haul_grant a = receive_grant(source.ends[1]), b = receive_grant(target.ends[1]);
              haul_space src = 0, dst = 0;
              CHILD_EQUAL(haul_space_open_grant(&a, &src, nullptr), 0);
              CHILD_EQUAL(haul_space_open_grant(&b, &dst, nullptr), 0);
              haul_request fill = haul_request_fill(at(0), 0xAB, 1, 1000);
              fill.dst.space = dst;
              CHILD_EQUAL(run_one(fill), 0);
              CHILD_EQUAL(run_one(between(dst, at(0), src, at(0), mib - 4096)), 0);
              shared.step = 1;
              return 0;
            }),
            0);
  EXPECT_EQ(end_of(from), 0);
  EXPECT_EQ(end_of(to), 0);
}

TEST(ServiceGrant, TakenBackInTheMiddle) {
  Service service;
  ASSERT_TRUE(service.start());
  Stage& shared = stage();
  Wire wire;
  const pid_t owner = start_child([&] {
    service.use();
    const Shared data(64 * mib);
    data.fill(1);
    haul_grant grant{};
    CHILD_EQUAL(haul_share(data.data(), data.size(), HAUL_SHARE_READ | HAUL_SHARE_WRITE, &grant),
                0);
    send_grant(wire.ends[0], grant);
    while (shared.step != 1) sched_yield();
    CHILD_EQUAL(haul_unshare(&grant), 0);
    // From here on nobody writes there.
    data.clear();
    shared.step = 2;
    sleep_ms(50);
    for (std::size_t i = 0; i < data.size(); ++i) CHILD_EQUAL(data.data()[i], 0);
    while (shared.step != 3) sleep_ms(1);
    return 0;
  });
  EXPECT_EQ(run_child([&] {
              service.use();
              const haul_grant grant = receive_grant(wire.ends[1]);
              haul_space space = 0;
              CHILD_EQUAL(haul_space_open_grant(&grant, &space, nullptr), 0);
              const Shared own(64 * mib);
              own.fill(7);
              haul_ticket tickets[16];
              for (haul_ticket& ticket : tickets) {
                haul_request request = between(space, at(0), 0, own.data(), 64 * mib);
                CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
              }
              shared.step = 1;
              unsigned failed = 0;
              for (const haul_ticket ticket : tickets) {
                const int status = haul_wait(ticket);
                CHILD_CHECK(status == 0 || status == HAUL_EPERM);
                std::size_t good = 0;
                CHILD_EQUAL(haul_progress(ticket, &good), status == 0 ? 1 : status);
                CHILD_CHECK(status == 0 || good < 64 * mib);
                failed += status != 0;
              }
              CHILD_CHECK(failed > 0);
              while (shared.step != 2) sleep_ms(1);
              CHILD_EQUAL(run_one(between(0, own.data(), space, at(0), 10)), HAUL_EPERM);
              shared.step = 3;
              haul_space again = 0;
              CHILD_EQUAL(haul_space_open_grant(&grant, &again, nullptr), HAUL_EPERM);
              return 0;
            }),
            0);
  EXPECT_EQ(end_of(owner), 0);
}

// Memory that goes away under a copy: a failure for who asked, nothing for the service.
TEST(ServiceGrant, UnmappedOrFreedByItsOwner) {
  Service service;
  ASSERT_TRUE(service.start());
  Stage& shared = stage();
  Wire wire;
  const pid_t owner = start_child([&] {
    service.use();
    constexpr std::size_t bytes = 16 * mib;
    auto* born = static_cast<unsigned char*>(haul_alloc(bytes));
    void* own = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHILD_CHECK(born != nullptr && own != MAP_FAILED);
    std::memset(born, 1, bytes);
    std::memset(own, 2, bytes);
    haul_grant grants[2];
    CHILD_EQUAL(haul_share(born, bytes, HAUL_SHARE_READ | HAUL_SHARE_WRITE, &grants[0]), 0);
    CHILD_EQUAL(haul_share(own, bytes, HAUL_SHARE_READ | HAUL_SHARE_WRITE, &grants[1]), 0);
    send_grant(wire.ends[0], grants[0]);
    send_grant(wire.ends[0], grants[1]);
    while (shared.step != 1) sched_yield();
    munmap(own, bytes);
    // The arena itself cannot be shrunk by anybody.
    for (int fd = 3; fd < 64; ++fd) {
      struct stat status {};
      // Files with a name are others', such as the log of who runs this test.
      if (fstat(fd, &status) == 0 && status.st_nlink == 0 &&
          status.st_size > static_cast<off_t>(mib)) {
        CHILD_EQUAL(ftruncate(fd, 0), -1);
      }
    }
    CHILD_EQUAL(haul_free(born), 0);
    shared.step = 2;
    while (shared.step != 3) sleep_ms(1);
    return 0;
  });
  EXPECT_EQ(run_child([&] {
              service.use();
              haul_space spaces[2];
              for (haul_space& space : spaces) {
                const haul_grant grant = receive_grant(wire.ends[1]);
                CHILD_EQUAL(haul_space_open_grant(&grant, &space, nullptr), 0);
              }
              const Shared copy(16 * mib);
              haul_ticket tickets[20];
              for (unsigned i = 0; i < 20; ++i) {
                haul_request request = between(0, copy.data(), spaces[i % 2], at(0), 16 * mib);
                CHILD_EQUAL(haul_submit(&request, 1, &tickets[i]), 1);
              }
              shared.step = 1;
              for (unsigned i = 0; i < 20; ++i) {
                const int status = haul_wait(tickets[i]);
                CHILD_CHECK(status == 0 || (i % 2 == 1 && status == HAUL_EFAULT));
              }
              while (shared.step != 2) sleep_ms(1);
              CHILD_EQUAL(run_one(between(0, copy.data(), spaces[1], at(0), mib)), HAUL_EFAULT);
              CHILD_EQUAL(run_one(between(spaces[1], at(0), 0, copy.data(), mib)), HAUL_EFAULT);
              CHILD_EQUAL(run_one(between(0, copy.data(), spaces[0], at(0), mib)), 0);
              shared.step = 3;
              return 0;
            }),
            0);
  EXPECT_EQ(end_of(owner), 0);
  EXPECT_TRUE(service.running());
}

TEST(ServiceGrant, ItsOwnerDies) {
  Service service;
  ASSERT_TRUE(service.start());
  Wire wire;
  const pid_t owner = start_child([&] {
    service.use();
    const Shared data(32 * mib);
    haul_grant grant{};
    CHILD_EQUAL(haul_share(data.data(), data.size(), HAUL_SHARE_READ, &grant), 0);
    send_grant(wire.ends[0], grant);
    pause();
    return 0;
  });
  EXPECT_EQ(run_child([&] {
              service.use();
              const haul_grant grant = receive_grant(wire.ends[1]);
              haul_space space = 0;
              CHILD_EQUAL(haul_space_open_grant(&grant, &space, nullptr), 0);
              const Shared own(32 * mib);
              haul_ticket tickets[30];
              for (haul_ticket& ticket : tickets) {
                haul_request request = between(0, own.data(), space, at(0), 32 * mib);
                CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
              }
              kill(owner, SIGKILL);
              unsigned failed = 0;
              for (const haul_ticket ticket : tickets) {
                const int status = haul_wait(ticket);
                CHILD_CHECK(status == 0 || status == HAUL_EPEER);
                failed += status != 0;
              }
              CHILD_CHECK(failed > 0);
              haul_space again = 0;
              CHILD_EQUAL(haul_space_open_grant(&grant, &again, nullptr), HAUL_EPERM);
              return 0;
            }),
            0);
  EXPECT_EQ(end_of(owner), 1000 + SIGKILL);
}

TEST(ServiceGrant, TheServiceDiesAndComesBack) {
  Service service;
  ASSERT_TRUE(service.start());
  Stage& shared = stage();
  Wire wire;
  const pid_t owner = start_child([&] {
    service.use();
    const Shared data(16 * mib);
    data.fill(3);
    haul_grant grant{};
    CHILD_EQUAL(haul_share(data.data(), data.size(), HAUL_SHARE_READ, &grant), 0);
    send_grant(wire.ends[0], grant);
    while (shared.step != 3) {
      haul_wake();  // attaches again
      sleep_ms(5);
    }
    return 0;
  });
  const pid_t user = start_child([&] {
    service.use();
    const haul_grant grant = receive_grant(wire.ends[1]);
    haul_space space = 0;
    CHILD_EQUAL(haul_space_open_grant(&grant, &space, nullptr), 0);
    const Shared own(16 * mib);
    haul_ticket tickets[40];
    for (haul_ticket& ticket : tickets) {
      haul_request request = between(0, own.data(), space, at(0), 16 * mib);
      CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
    }
    shared.step = 1;
    unsigned failed = 0;
    for (const haul_ticket ticket : tickets) {
      const int status = haul_wait(ticket);
      CHILD_CHECK(status == 0 || status == HAUL_EIO);
      failed += status != 0;
      std::size_t good = 0;
      haul_progress(ticket, &good);
      if (status != 0) CHILD_CHECK(good < 16 * mib);
    }
    CHILD_CHECK(failed > 0);
    shared.step = 2;
    int status = HAUL_EAGAIN;
    for (int turn = 0; turn < 5000 && status != 0; ++turn) {
      haul_wake();
      own.clear();
      status = run_one(between(0, own.data(), space, at(0), 16 * mib));
      CHILD_CHECK(status == 0 || status == HAUL_EAGAIN || status == HAUL_EPERM ||
                  status == HAUL_EPEER || status == HAUL_ECLOSED);
      if (status != 0) sleep_ms(5);
    }
    CHILD_EQUAL(status, 0);
    CHILD_EQUAL(first_wrong(own.data(), 16 * mib, 3), -1);
    shared.step = 3;
    return 0;
  });
  while (shared.step != 1) sched_yield();
  service.end(SIGKILL);
  ASSERT_TRUE(service.start());
  EXPECT_EQ(end_of(user), 0);
  EXPECT_EQ(end_of(owner), 0);
}

TEST(ServiceGrant, TheCppFace) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              const haul::memory memory(mib), copy(mib);
              std::memset(memory.data(), 5, mib);
              haul_grant left{};
              {
                haul::grant first(memory.data(), mib, HAUL_SHARE_READ);
                const haul::grant grant = std::move(first);
                std::size_t length = 0;
                const haul::space space(grant.raw(), &length);
                CHILD_EQUAL(length, mib);
                CHILD_EQUAL(run_one(between(0, copy.data(), space.handle(), at(0), mib)), 0);
                CHILD_EQUAL(std::memcmp(copy.data(), memory.data(), mib), 0);
                left = grant.raw();
              }
              try {
                const haul::space late(left);
              } catch (const haul::error& error) {
                return error.code() == HAUL_EPERM ? 0 : 2;
              }
              return 1;
            }),
            0);
}

TEST(ServiceGrant, WrongArguments) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&] {
              service.use();
              const Shared data(mib);
              haul_grant grant{};
              CHILD_EQUAL(haul_share(nullptr, 10, HAUL_SHARE_READ, &grant), HAUL_EINVAL);
              CHILD_EQUAL(haul_share(data.data(), 0, HAUL_SHARE_READ, &grant), HAUL_EINVAL);
              CHILD_EQUAL(haul_share(data.data(), SIZE_MAX, HAUL_SHARE_READ, &grant), HAUL_EINVAL);
              CHILD_EQUAL(haul_share(data.data(), 10, 0, &grant), HAUL_EINVAL);
              CHILD_EQUAL(haul_share(data.data(), 10, 4, &grant), HAUL_EINVAL);
              CHILD_EQUAL(haul_share(data.data(), 10, HAUL_SHARE_READ, nullptr), HAUL_EINVAL);
              CHILD_EQUAL(haul_unshare(nullptr), HAUL_EINVAL);
              CHILD_EQUAL(haul_unshare(&grant), HAUL_EINVAL);
              haul_space space = 0;
              CHILD_EQUAL(haul_space_open_grant(nullptr, &space, nullptr), HAUL_EINVAL);
              CHILD_EQUAL(haul_space_open_grant(&grant, nullptr, nullptr), HAUL_EINVAL);
              grant.fd = -1;
              CHILD_EQUAL(haul_space_open_grant(&grant, &space, nullptr), HAUL_EINVAL);
              grant.fd = 2;
              CHILD_EQUAL(haul_space_open_grant(&grant, &space, nullptr), HAUL_EINVAL);
              CHILD_EQUAL(haul_share(data.data(), 10, HAUL_SHARE_READ, &grant), 0);
              grant.index ^= 1;  // another part than was granted
              CHILD_EQUAL(haul_space_open_grant(&grant, &space, nullptr), HAUL_EPERM);
              grant.index ^= 1;
              CHILD_EQUAL(haul_space_open_grant(&grant, &space, nullptr), 0);
              return 0;
            }),
            0);
  EXPECT_EQ(run_child([] {
              quiet_environment();
              setenv("HAUL_SERVICE_SOCKET", "/tmp/haul-e2e-no-such-place/service.sock", 1);
              const Shared data(mib);
              haul_grant grant{};
              CHILD_EQUAL(haul_share(data.data(), 10, HAUL_SHARE_READ, &grant), HAUL_ENOTSUP);
              CHILD_CHECK(std::strstr(haul_last_error(), "haul serve") != nullptr);
              return 0;
            }),
            0);
}

}  // namespace
