// Copies between processes by haul_space_open(): both directions, and what happens when a space is
// closed or was never one.
#include <gtest/gtest.h>

#include <vector>

#include "support.hpp"

namespace {

using namespace e2e;

// A process with a private buffer at a known address, which answers one-byte orders: v verify, q
// quit.
class Peer {
 public:
  explicit Peer(std::size_t bytes) : memory(bytes) {
    CHILD_CHECK(pipe(orders_) == 0 && pipe(answers_) == 0);
    memory.fill(11);
    pid_ = start_child([this] {
      char order;
      close(orders_[1]);
      while (read(orders_[0], &order, 1) == 1 && order != 'q') {
        bool right = true;
        const std::uint64_t seed = static_cast<unsigned char>(order);
        for (std::size_t at = 0; at < memory.size(); ++at)
          right = right && memory[at] == Buffer::expected(seed, at);
        const char answer = right ? 'y' : 'n';
        if (write(answers_[1], &answer, 1) != 1) return 1;
      }
      return 0;
    });
  }
  ~Peer() {
    if (pid_ > 0) {
      CHILD_EQUAL(write(orders_[1], "q", 1), 1);
      CHILD_EQUAL(end_of(pid_), 0);
    }
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Does its memory hold the pattern of this seed (1 to 127)?
  bool holds(std::uint64_t seed) const {
    const auto order = static_cast<char>(seed);
    char answer = 0;
    CHILD_CHECK(write(orders_[1], &order, 1) == 1 && read(answers_[0], &answer, 1) == 1);
    return answer == 'y';
  }
  pid_t pid() const { return pid_; }

  const Buffer memory;

 private:
  int orders_[2], answers_[2];
  pid_t pid_ = -1;
};

haul_request to_space(haul_request request, haul_space dst, haul_space src, unsigned flags) {
  request.dst.space = dst;
  request.src.space = src;
  request.flags = flags;
  return request;
}

int with_both(int (*body)(unsigned flags)) {
  for (const unsigned flags : {unsigned{HAUL_INLINE}, unsigned{HAUL_DEDICATED}}) {
    const int end = run_child([&] {
      always_mover();
      haul_space space = 0;
      if (haul_space_open(getpid(), &space) == HAUL_EPERM) return skip_status;
      return body(flags);
    });
    if (end != 0) return end;
  }
  return 0;
}

#define EXPECT_PASS_OR_SKIP(call)                                               \
  do {                                                                          \
    const int end = (call);                                                     \
    if (end == skip_status) GTEST_SKIP() << "process_vm_readv is refused here"; \
    EXPECT_EQ(end, 0);                                                          \
  } while (false)

TEST(Peer, CopiesGoBothWays) {
  EXPECT_PASS_OR_SKIP(with_both([](unsigned flags) {
    const Peer peer(3 * mib + 17);
    const Buffer mine(peer.memory.size());
    haul_space space = 0;
    CHILD_EQUAL(haul_space_open(peer.pid(), &space), 0);
    const auto there = peer.memory.data();
    haul_ticket ticket{};
    for (std::uint64_t seed = 30; seed < 34; ++seed) {
      mine.fill(seed);
      haul_request request =
          to_space(haul_request_copy(there, mine.data(), mine.size()), space, 0, flags);
      CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
      CHILD_EQUAL(haul_wait(ticket), 0);
      CHILD_CHECK(peer.holds(seed));
      mine.clear();
      request = to_space(haul_request_copy(mine.data(), there, mine.size()), 0, space, flags);
      CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
      CHILD_EQUAL(haul_wait_range(ticket, 12345, 777), 0);
      for (std::size_t at = 12345; at < 12345 + 777; ++at)
        CHILD_EQUAL(mine[at], Buffer::expected(seed, at));
      CHILD_EQUAL(haul_wait(ticket), 0);
      for (std::size_t at = 0; at < mine.size(); ++at)
        CHILD_EQUAL(mine[at], Buffer::expected(seed, at));
    }
    CHILD_EQUAL(haul_space_close(space), 0);
    return 0;
  }));
}

TEST(Peer, ANotMappedRangeIsAFaultAndThePeerLives) {
  EXPECT_PASS_OR_SKIP(with_both([](unsigned flags) {
    const Peer peer(256 * kib);
    // Up to the end of the page behind the peer's memory that nobody may write, and no further:
    // chunks beyond it go where they can.
    const Buffer mine(260 * kib);
    mine.fill(11);
    haul_space space = 0;
    CHILD_EQUAL(haul_space_open(peer.pid(), &space), 0);
    for (const unsigned more : {0u, unsigned{HAUL_CHECKED}}) {
      const haul_request request = to_space(
          haul_request_copy(peer.memory.data(), mine.data(), mine.size()), space, 0, flags | more);
      haul_ticket ticket{};
      CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
      CHILD_EQUAL(haul_wait(ticket), HAUL_EFAULT);
      std::size_t good = 0;
      CHILD_EQUAL(haul_progress(ticket, &good), HAUL_EFAULT);
      CHILD_CHECK(good <= 256 * kib && good + 4096 >= 256 * kib);
    }
    CHILD_CHECK(peer.holds(11));
    return 0;
  }));
}

TEST(Peer, AClosedSpaceIsClosed) {
  EXPECT_PASS_OR_SKIP(with_both([](unsigned flags) {
    const Peer peer(64 * kib);
    const Buffer mine(64 * kib);
    haul_space space = 0;
    CHILD_EQUAL(haul_space_open(peer.pid(), &space), 0);
    CHILD_EQUAL(haul_space_close(space), 0);
    CHILD_EQUAL(haul_space_close(space), HAUL_EINVAL);
    const haul_request request =
        to_space(haul_request_copy(peer.memory.data(), mine.data(), mine.size()), space, 0, flags);
    CHILD_EQUAL(haul_submit(&request, 1, nullptr), HAUL_ECLOSED);
    // Its number is not reused for the next one opened.
    haul_space next = 0;
    CHILD_EQUAL(haul_space_open(peer.pid(), &next), 0);
    CHILD_CHECK(next != space);
    CHILD_EQUAL(haul_submit(&request, 1, nullptr), HAUL_ECLOSED);
    CHILD_CHECK(peer.holds(11));
    return 0;
  }));
}

TEST(Peer, ClosingWithCopiesInFlight) {
  EXPECT_PASS_OR_SKIP(with_both([](unsigned) {
    const Peer peer(8 * mib);
    const Buffer mine(8 * mib);
    mine.fill(11);
    for (int round = 0; round < 20; ++round) {
      haul_space space = 0;
      CHILD_EQUAL(haul_space_open(peer.pid(), &space), 0);
      haul_ticket tickets[8];
      for (haul_ticket& ticket : tickets) {
        const haul_request request =
            to_space(haul_request_copy(peer.memory.data(), mine.data(), mine.size()), space, 0,
                     HAUL_DEDICATED);
        CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
      }
      CHILD_EQUAL(haul_space_close(space), 0);
      for (const haul_ticket& ticket : tickets) {
        const int result = haul_wait(ticket);
        CHILD_CHECK(result == 0 || result == HAUL_ECLOSED);
      }
    }
    CHILD_CHECK(peer.holds(11));
    return 0;
  }));
}

TEST(Peer, AtMost255SpacesAreOpen) {
  EXPECT_PASS_OR_SKIP(with_both([](unsigned) {
    std::vector<haul_space> spaces;
    for (;;) {
      haul_space space = 0;
      const int result = haul_space_open(getpid(), &space);
      if (result != 0) {
        CHILD_EQUAL(result, HAUL_ENOMEM);
        break;
      }
      spaces.push_back(space);
      CHILD_CHECK(spaces.size() < 300);
    }
    for (const haul_space space : spaces) CHILD_EQUAL(haul_space_close(space), 0);
    haul_space space = 0;
    CHILD_EQUAL(haul_space_open(getpid(), &space), 0);
    return 0;
  }));
}

// A space of this very process: memmove semantics hold across the two names of one memory.
TEST(Peer, OverlapThroughASpaceOfOneself) {
  EXPECT_PASS_OR_SKIP(with_both([](unsigned flags) {
    haul_space space = 0;
    CHILD_EQUAL(haul_space_open(getpid(), &space), 0);
    const Buffer bytes(4 * mib), expected(4 * mib);
    for (const std::size_t shift : {std::size_t{100}, 64 * kib + 1, mib}) {
      for (const bool up : {true, false}) {
        bytes.fill(shift);
        expected.fill(shift);
        unsigned char* to = bytes.data() + (up ? shift : 0);
        unsigned char* from = bytes.data() + (up ? 0 : shift);
        std::memmove(expected.data() + (up ? shift : 0), expected.data() + (up ? 0 : shift),
                     2 * mib);
        const haul_request request =
            to_space(haul_request_copy(to, from, 2 * mib), 0, space, flags);
        haul_ticket ticket{};
        CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
        CHILD_EQUAL(haul_wait(ticket), 0);
        CHILD_EQUAL(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
      }
    }
    return 0;
  }));
}

}  // namespace
