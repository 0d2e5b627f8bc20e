// The C++ face: every function and member of haul.hpp, what it gives back and what it throws.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <haul/haul.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "support.hpp"

namespace {

using namespace e2e;
using namespace std::chrono_literals;

static_assert(std::is_trivially_copyable_v<haul::ticket> &&
              sizeof(haul::ticket) == sizeof(haul_ticket));
static_assert(!std::is_copy_constructible_v<haul::space> &&
              std::is_nothrow_move_constructible_v<haul::space>);

// The code of the haul::error that `call` throws, after a look at its sentence; 0 if it throws
// none.
template <class Call>
int thrown(Call call) {
  try {
    call();
  } catch (const haul::error& error) {
    CHILD_CHECK(std::strcmp(error.what(), haul_last_error()) == 0 && error.what()[0] != '\0');
    return error.code();
  }
  return 0;
}

// All of it with movers, and where every copy is the caller's.
template <class Body>
void with_both(Body body) {
  for (const char* mover : {"thread", "caller"}) {
    EXPECT_EQ(run_child([&] {
                always_mover();
                setenv("HAUL_PLAN_MOVER", mover, 1);
                body();
                return 0;
              }),
              0)
        << mover;
  }
}

TEST(Hpp, CopiesSpansAndPointers) {
  with_both([] {
    std::vector<int> src(300'001), dst(300'003, -1);
    std::iota(src.begin(), src.end(), 1);
    const haul::ticket ticket = haul::copy(std::span(dst), std::span<const int>(src));
    ticket.wait();
    CHILD_CHECK(ticket.test());
    CHILD_CHECK(std::equal(src.begin(), src.end(), dst.begin()));
    CHILD_EQUAL(dst[src.size()], -1);
    CHILD_EQUAL(dst[src.size() + 1], -1);

    std::vector<double> to(1000), from(1000, 2.5);
    haul::copy(to.data(), from.data(), 999 * sizeof(double)).wait();
    CHILD_CHECK(to[998] == 2.5 && to[999] == 0);

    bool refused = false;
    std::vector<int> small(src.size() - 1, 7);
    try {
      haul::copy(std::span(small), std::span<const int>(src)).wait();
    } catch (const std::length_error& error) {
      refused = std::strstr(error.what(), "shorter") != nullptr;
    }
    CHILD_CHECK(refused && small.front() == 7 && small.back() == 7);
    haul::copy(std::span<int>(), std::span<const int>()).wait();
  });
}

TEST(Hpp, FillsWithValuesOfEverySize) {
  with_both([] {
    const auto check = [](auto value) {
      std::vector<decltype(value)> dst(100'001, decltype(value){});
      haul::fill(std::span(dst).first(100'000), value).wait();
      for (std::size_t at = 0; at < 100'000; ++at) CHILD_CHECK(dst[at] == value);
      CHILD_CHECK(dst[100'000] == decltype(value){});
    };
    check(std::uint8_t{0xA5});
    check(std::int16_t{-12345});
    check(1.25f);
    check(-3.0e300);
    struct Pair {
      std::uint32_t first, second;
      bool operator==(const Pair&) const = default;
    };
    check(Pair{1, 0x80000002});
  });
}

TEST(Hpp, TicketsTellTheirProgress) {
  with_both([] {
    const haul::ticket none;
    CHILD_CHECK(none.test() && none.wait_for(0ns) && none.test_range(0, 1));
    CHILD_CHECK(none.wait_range_for(0, 1, 0ns));
    none.wait();
    CHILD_EQUAL(none.raw().where, 0);
    CHILD_EQUAL(none.raw().tenancy, 0);

    const Buffer src(16 * mib), dst(16 * mib);
    src.fill(1);
    dst.clear();
    const haul::ticket ticket = haul::copy(dst.data(), src.data(), src.size());
    ticket.wait_range(5 * mib + 1, 3 * mib);
    CHILD_CHECK(ticket.test_range(5 * mib + 1, 3 * mib));
    CHILD_CHECK(ticket.wait_range_for(5 * mib + 1, 3 * mib, -1ns));
    CHILD_CHECK(ticket.wait_range_for(15 * mib, mib, std::chrono::hours(1)));
    CHILD_EQUAL(std::memcmp(dst.data() + 15 * mib, src.data() + 15 * mib, mib), 0);
    CHILD_EQUAL(std::memcmp(dst.data() + 5 * mib + 1, src.data() + 5 * mib + 1, 3 * mib), 0);
    const std::size_t good = ticket.good_bytes();
    CHILD_EQUAL(std::memcmp(dst.data(), src.data(), std::min(good, src.size())), 0);
    // A negative time is none, and both may be too short.
    (void)ticket.wait_for(-1ns);
    (void)ticket.wait_for(1ns);
    CHILD_CHECK(ticket.wait_for(std::chrono::hours(1)));
    CHILD_CHECK(ticket.test());
    CHILD_CHECK(ticket.good_bytes() >= src.size());
    CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
    CHILD_CHECK(haul::ticket(ticket.raw()).test());
  });
}

TEST(Hpp, FailedTicketsThrow) {
  with_both([] {
    const Buffer src(64 * kib), dst(64 * kib);
    src.fill(2);
    mprotect(src.data() + 32 * kib, 32 * kib, PROT_NONE);
    haul_request request = haul_request_copy(dst.data(), src.data(), src.size());
    request.flags = HAUL_CHECKED;
    std::vector<haul::ticket> tickets;
    haul::submit(std::span(&request, 1), tickets);
    CHILD_EQUAL(tickets.size(), 1);
    const haul::ticket ticket = tickets[0];
    CHILD_EQUAL(thrown([&] { ticket.wait(); }), HAUL_EFAULT);
    CHILD_EQUAL(thrown([&] { (void)ticket.test(); }), HAUL_EFAULT);
    CHILD_EQUAL(thrown([&] { (void)ticket.wait_for(1s); }), HAUL_EFAULT);
    CHILD_EQUAL(thrown([&] { ticket.wait_range(0, src.size()); }), HAUL_EFAULT);
    CHILD_EQUAL(thrown([&] { (void)ticket.wait_range_for(0, kib, 1s); }), HAUL_EFAULT);
    CHILD_EQUAL(thrown([&] { (void)ticket.test_range(60 * kib, kib); }), HAUL_EFAULT);
    CHILD_EQUAL(ticket.good_bytes(), 32 * kib);

    CHILD_EQUAL(thrown([&] { haul::copy(nullptr, src.data(), 8).wait(); }), HAUL_EINVAL);
    CHILD_EQUAL(thrown([] { (void)haul::ticket(haul_ticket{~0ull, 5}).test(); }), HAUL_ESTALE);
    CHILD_EQUAL(haul::ticket(haul_ticket{~0ull, 5}).good_bytes(), 0);
    CHILD_EQUAL(haul::check(3), 3);
    CHILD_EQUAL(thrown([] { haul::check(haul_space_close(77)); }), HAUL_EINVAL);
  });
}

TEST(Hpp, SubmitsAllOrThrowsWithTheEarlierTickets) {
  with_both([] {
    constexpr std::size_t count = 600, bytes = 4096;  // more than a ring has
    const Buffer src(count * bytes), dst(count * bytes);
    src.fill(4);
    dst.clear();
    std::vector<haul_request> requests;
    for (std::size_t i = 0; i < count; ++i)
      requests.push_back(haul_request_copy(dst.data() + i * bytes, src.data() + i * bytes, bytes));
    std::vector<haul::ticket> tickets(1);
    haul::submit(requests, tickets);
    CHILD_EQUAL(tickets.size(), count + 1);  // appended
    for (const haul::ticket& ticket : tickets) ticket.wait();
    CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);

    dst.clear();
    tickets.clear();
    requests[5].flags = 1u << 31;
    CHILD_EQUAL(thrown([&] { haul::submit(requests, tickets); }), HAUL_EINVAL);
    CHILD_EQUAL(tickets.size(), 5);
    for (const haul::ticket& ticket : tickets) ticket.wait();
    CHILD_EQUAL(std::memcmp(dst.data(), src.data(), 5 * bytes), 0);
    for (std::size_t at = 5 * bytes; at < dst.size(); ++at) CHILD_EQUAL(dst[at], 0);

    tickets.clear();
    haul::submit({}, tickets);
    CHILD_CHECK(tickets.empty());
    haul_shutdown();
    CHILD_EQUAL(thrown([&] { haul::submit(requests, tickets); }), HAUL_ECLOSED);
    CHILD_CHECK(tickets.empty());
  });
}

TEST(Hpp, MemoryIsFreedWithItsObject) {
  static_assert(!std::is_copy_constructible_v<haul::memory> &&
                std::is_nothrow_move_constructible_v<haul::memory>);
  with_both([] {
    void* where = nullptr;
    {
      haul::memory first(mib + 3);
      const haul::memory src(std::move(first)), dst(mib + 3);
      CHILD_CHECK(first.data() == nullptr && first.size() == 0 && first.as<int>().empty());
      CHILD_EQUAL(src.size(), mib + 3);
      CHILD_EQUAL(src.as<std::uint32_t>().size(), mib / 4);
      const auto words = src.as<std::uint32_t>();
      std::iota(words.begin(), words.end(), 1u);
      haul::copy(dst.as<std::uint32_t>(), std::span<const std::uint32_t>(words)).wait();
      CHILD_EQUAL(std::memcmp(dst.data(), src.data(), mib + 3), 0);
      where = src.data();
      CHILD_CHECK(where != nullptr && where != dst.data());
    }
    CHILD_EQUAL(haul_free(where), HAUL_EINVAL);  // the object freed it
    CHILD_EQUAL(thrown([] { const haul::memory none(0); }), HAUL_EINVAL);
    CHILD_EQUAL(thrown([] { const haul::memory all(SIZE_MAX); }), HAUL_ENOMEM);
  });
}

// A forked peer that holds a pattern, reads what arrives, and ends.
TEST(Hpp, CopiesFromAndToASpace) {
  with_both([] {
    const Buffer theirs(256 * kib), ours(256 * kib);
    theirs.fill(6);
    ours.clear();
    int ready[2], go[2];
    CHILD_CHECK(pipe(ready) == 0 && pipe(go) == 0);
    const pid_t peer = start_child([&] {
      char byte = 'r';
      if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1) return 1;
      for (std::size_t at = 0; at < theirs.size(); ++at) {
        if (theirs[at] != Buffer::expected(8, at)) return 2;
      }
      return 0;
    });
    char byte = 0;
    CHILD_EQUAL(read(ready[0], &byte, 1), 1);
    haul_space handle = 0;
    {
      haul::space first(peer);
      handle = first.handle();
      CHILD_CHECK(handle != HAUL_SPACE_SELF);
      const haul::space space(std::move(first));
      CHILD_EQUAL(first.handle(), HAUL_SPACE_SELF);
      CHILD_EQUAL(space.handle(), handle);

      haul_request request = haul_request_copy(ours.data(), theirs.data(), ours.size());
      request.src.space = space.handle();
      std::vector<haul::ticket> tickets;
      haul::submit(std::span(&request, 1), tickets);
      tickets.at(0).wait();
      for (std::size_t at = 0; at < ours.size(); ++at)
        CHILD_EQUAL(ours[at], Buffer::expected(6, at));

      ours.fill(8);
      request = haul_request_copy(theirs.data(), ours.data(), ours.size());
      request.dst.space = space.handle();
      haul::submit(std::span(&request, 1), tickets);
      tickets.at(1).wait();
      CHILD_EQUAL(theirs[0], Buffer::expected(6, 0));  // this process's own was not meant
    }
    CHILD_EQUAL(haul_space_close(handle), HAUL_EINVAL);  // the object closed it
    CHILD_EQUAL(write(go[1], "g", 1), 1);
    CHILD_EQUAL(end_of(peer), 0);
    CHILD_EQUAL(thrown([&] { const haul::space gone(peer); }), HAUL_EPEER);
    CHILD_EQUAL(thrown([] { const haul::space none(-1); }), HAUL_EINVAL);
  });
}

}  // namespace
