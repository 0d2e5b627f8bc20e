// Wrong arguments: each is refused with HAUL_EINVAL and a sentence, nothing is touched, and the
// library goes on.
#include <gtest/gtest.h>

#include "support.hpp"

namespace {

using namespace e2e;

// Refused at once, in words, by every function that looks at the ticket.
void is_refused(haul_ticket ticket, int code) {
  CHILD_EQUAL(haul_test(ticket), code);
  CHILD_EQUAL(haul_wait(ticket), code);
  CHILD_EQUAL(haul_wait_for(ticket, 1000), code);
  CHILD_CHECK(std::strlen(haul_last_error()) > 20);
}

void is_refused(const haul_request& request, int code = HAUL_EINVAL) {
  haul_ticket ticket{~0u, ~0u};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), code);
  const char* sentence = haul_last_error();
  CHILD_CHECK(std::strlen(sentence) > 20 && sentence[std::strlen(sentence) - 1] == '.');
  CHILD_CHECK(ticket.where == ~0u && ticket.tenancy == ~0u);
}

// Runs the same checks while there is no mover yet, and while one is awake.
template <class Body>
int in_both_states(Body body) {
  const int cold = run_child([&] {
    quiet_environment();
    body();
    return 0;
  });
  if (cold != 0) return cold;
  return run_child([&] {
    always_mover();
    copy_works(mib, 1);
    body();
    copy_works(mib, 2);
    return 0;
  });
}

TEST(BadArguments, NullIsRefusedUnlessEmpty) {
  EXPECT_EQ(in_both_states([] {
              char byte = 7;
              for (const std::size_t length : {std::size_t{1}, std::size_t{64}, mib, SIZE_MAX}) {
                is_refused(haul_copy(nullptr, &byte, length), HAUL_EINVAL);
                is_refused(haul_copy(&byte, nullptr, length), HAUL_EINVAL);
                is_refused(haul_copy(nullptr, nullptr, length), HAUL_EINVAL);
                is_refused(haul_fill(nullptr, 0, 1, length), HAUL_EINVAL);
              }
              CHILD_EQUAL(haul_wait(haul_copy(nullptr, nullptr, 0)), 0);
              CHILD_EQUAL(haul_wait(haul_copy(&byte, nullptr, 0)), 0);
              CHILD_EQUAL(haul_wait(haul_copy(nullptr, &byte, 0)), 0);
              CHILD_EQUAL(haul_wait(haul_fill(nullptr, 0, 1, 0)), 0);
              CHILD_EQUAL(byte, 7);
            }),
            0);
}

TEST(BadArguments, RangesPastTheAddressSpaceAreRefused) {
  EXPECT_EQ(
      in_both_states([] {
        char bytes[64] = {};
        auto* top = reinterpret_cast<char*>(UINTPTR_MAX - 15);
        is_refused(haul_copy(bytes, bytes, SIZE_MAX), HAUL_EINVAL);
        is_refused(haul_copy(bytes, bytes + 1, SIZE_MAX - 64), HAUL_EINVAL);
        is_refused(haul_copy(bytes, top, 16), HAUL_EINVAL);
        is_refused(haul_copy(top, bytes, 32), HAUL_EINVAL);
        is_refused(haul_fill(top, 1, 8, 32), HAUL_EINVAL);
        is_refused(haul_fill(bytes, 1, 8, SIZE_MAX - 1), HAUL_EINVAL);
        haul_request request = haul_request_copy(bytes, bytes, SIZE_MAX - 8);
        is_refused(request);
        const haul_extent two[2] = {{0, 0, bytes, SIZE_MAX / 2}, {0, 0, bytes, SIZE_MAX / 2 + 8}};
        request = haul_request_copy(bytes, bytes, 64);
        request.dst_vector = two;
        request.dst_count = 2;
        is_refused(request);
      }),
      0);
}

TEST(BadArguments, FieldsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(in_both_states([] {
              static unsigned char to[256], from[256];
              const haul_request good = haul_request_copy(to, from, sizeof to);
              const auto with = [&](auto change) {
                haul_request bad = good;
                change(bad);
                is_refused(bad);
              };
              for (unsigned bit = 6; bit < 32; ++bit)
                with([&](haul_request& r) { r.flags = 1u << bit; });
              with([](haul_request& r) { r.flags = HAUL_INLINE | HAUL_DEDICATED; });
              with([](haul_request& r) { r.size = 0; });
              with([](haul_request& r) { r.size = sizeof(haul_request) - 8; });
              with([](haul_request& r) { r.operation = 2; });
              with([](haul_request& r) { r.operation = 255; });
              with([](haul_request& r) { r.dst_affinity = 3; });
              with([](haul_request& r) { r.src_affinity = 255; });
              with([](haul_request& r) { r.reserved = 1; });
              with([](haul_request& r) { r.dst.reserved = 1; });
              with([](haul_request& r) { r.src.reserved = 1; });
              with([](haul_request& r) { r.src.length -= 1; });
              with([](haul_request& r) { r.dst_count = 2; });
              with([](haul_request& r) {
                r.dst_vector = &r.dst;
                r.dst_count = 0;
              });
              with([](haul_request& r) {
                r.dst_vector = &r.dst;
                r.dst_count = 1025;
              });
              with([](haul_request& r) { r.notify = reinterpret_cast<std::uint64_t*>(to + 4); });
              with([](haul_request& r) { r.callback = [](const haul_completion*, void*) {}; });
              for (const unsigned bytes : {0u, 3u, 5u, 16u, 255u}) {
                haul_request fill =
                    haul_request_fill(to, 1, static_cast<std::uint8_t>(bytes), sizeof to);
                is_refused(fill);
                is_refused(haul_fill(to, 1, bytes, sizeof to), HAUL_EINVAL);
              }
              is_refused(haul_fill(to, 1, std::size_t{1} << 40, sizeof to), HAUL_EINVAL);
              for (const unsigned char byte : to) CHILD_EQUAL(byte, 0);
            }),
            0);
}

TEST(BadArguments, ExtentsOfOneSideLieInOneSpace) {
  EXPECT_EQ(in_both_states([] {
              char to[16], from[16] = {};
              const haul_extent mixed[2] = {{0, 0, from, 8}, {77, 0, from + 8, 8}};
              haul_request request = haul_request_copy(to, from, 16);
              request.src_vector = mixed;
              request.src_count = 2;
              is_refused(request);
              request = haul_request_copy(to, from, 16);
              request.dst.space = 77;
              is_refused(request, HAUL_ECLOSED);
              request.dst.space = UINT32_MAX;
              is_refused(request, HAUL_ECLOSED);
            }),
            0);
}

TEST(BadArguments, ASubmitStopsAtTheFirstBadRequest) {
  EXPECT_EQ(in_both_states([] {
              static unsigned char to[4][64];
              haul_request batch[4];
              for (int i = 0; i < 4; ++i)
                batch[i] = haul_request_fill(to[i], 0x11u * static_cast<unsigned>(i + 1), 1, 64);
              batch[2].flags = 1u << 31;
              haul_ticket tickets[4] = {};
              CHILD_EQUAL(haul_submit(batch, 4, tickets), 2);
              CHILD_EQUAL(haul_wait(tickets[0]), 0);
              CHILD_EQUAL(haul_wait(tickets[1]), 0);
              CHILD_EQUAL(to[0][63], 0x11);
              CHILD_EQUAL(to[1][0], 0x22);
              CHILD_EQUAL(to[2][0] | to[3][0], 0);
              CHILD_EQUAL(haul_submit(batch + 2, 2, tickets), HAUL_EINVAL);
              CHILD_EQUAL(haul_submit(nullptr, 1, tickets), HAUL_EINVAL);
              CHILD_EQUAL(haul_submit(batch, std::size_t{1} << 40, tickets), HAUL_EINVAL);
              CHILD_EQUAL(haul_submit(nullptr, 0, nullptr), 0);
              CHILD_EQUAL(haul_submit(batch, 1, nullptr), 1);
              CHILD_EQUAL(haul_drain(), 0);
              std::memset(to, 0, sizeof to);
            }),
            0);
}

TEST(BadArguments, OtherFunctionsRefuseToo) {
  EXPECT_EQ(in_both_states([] {
              haul_completion entry;
              CHILD_EQUAL(haul_reap(nullptr, 1), HAUL_EINVAL);
              CHILD_EQUAL(haul_reap(&entry, 0), HAUL_EINVAL);
              CHILD_EQUAL(haul_reap(&entry, 1), 0);
              CHILD_EQUAL(haul_progress(haul_ticket{}, nullptr), HAUL_EINVAL);
              CHILD_EQUAL(haul_query(nullptr), HAUL_EINVAL);
              haul_state state{};
              CHILD_EQUAL(haul_query(&state), HAUL_EINVAL);
              haul_plan plan{};
              const haul_request request = haul_request_copy(&entry, &entry, sizeof entry);
              CHILD_EQUAL(haul_explain(&request, &plan), HAUL_EINVAL);
              plan.size = sizeof plan;
              CHILD_EQUAL(haul_explain(nullptr, &plan), HAUL_EINVAL);
              CHILD_EQUAL(haul_explain(&request, nullptr), HAUL_EINVAL);
              haul_engine_info info{};
              CHILD_EQUAL(haul_engine(0, &info), HAUL_EINVAL);
              info.size = sizeof info;
              CHILD_EQUAL(haul_engine(99, &info), HAUL_EINVAL);
              CHILD_EQUAL(haul_engine(0, nullptr), HAUL_EINVAL);
              haul_space space = 0;
              CHILD_EQUAL(haul_space_open(getpid(), nullptr), HAUL_EINVAL);
              CHILD_EQUAL(haul_space_open(0, &space), HAUL_EINVAL);
              CHILD_EQUAL(haul_space_open(-1, &space), HAUL_EINVAL);
              CHILD_CHECK(haul_space_open(0x7ffffff0, &space) < 0);
              CHILD_EQUAL(haul_space_close(HAUL_SPACE_SELF), HAUL_EINVAL);
              CHILD_EQUAL(haul_space_close(1234567), HAUL_EINVAL);
              for (int code = 5; code >= -20; --code)
                CHILD_CHECK(std::strlen(haul_strerror(code)) > 0);
              CHILD_CHECK(std::strlen(haul_strerror(INT32_MIN)) > 0);
            }),
            0);
}

TEST(BadArguments, NoCallTouchesErrno) {
  EXPECT_EQ(in_both_states([] {
              static unsigned char to[64], from[64];
              const Buffer big(mib), other(mib);
              const auto kept = [](auto&& call) {
                errno = 12345;
                call();
                CHILD_EQUAL(errno, 12345);
              };
              kept([&] { haul_wait(haul_copy(to, from, sizeof to)); });
              kept([&] { haul_wait(haul_copy(big.data(), other.data(), mib)); });
              kept([&] { haul_wait(haul_copy(nullptr, from, 4)); });
              kept([&] { haul_wake(); });
              kept([&] {
                haul_space space;
                haul_space_open(0x7ffffff0, &space);
              });
              kept([&] { haul_reap_eventfd(); });
              kept([&] { haul_reap_arm(); });
              kept([&] {
                haul_request request =
                    haul_request_copy(to, big.data() + mib - 8, 64);  // into the guard page
                request.flags = HAUL_CHECKED;
                haul_ticket ticket{};
                if (haul_submit(&request, 1, &ticket) == 1) haul_wait(ticket);
              });
            }),
            0);
}

TEST(BadArguments, UnalignedEverythingIsCopiedToTheByte) {
  EXPECT_EQ(
      in_both_states([] {
        const Buffer src(300000), dst(300000);
        src.fill(3);
        for (const std::size_t length : {1ul, 2ul, 3ul, 7ul, 8ul, 9ul, 63ul, 64ul, 65ul, 127ul,
                                         4095ul, 4097ul, 65535ul, 70001ul, 262143ul}) {
          for (const std::size_t to : {0ul, 1ul, 3ul, 7ul, 63ul}) {
            for (const std::size_t from : {0ul, 1ul, 5ul, 62ul}) {
              dst.clear();
              CHILD_EQUAL(haul_wait(haul_copy(dst.data() + to, src.data() + from, length)), 0);
              CHILD_EQUAL(std::memcmp(dst.data() + to, src.data() + from, length), 0);
              CHILD_CHECK(to == 0 || dst[to - 1] == 0);
              CHILD_EQUAL(dst[to + length], 0);
            }
          }
          CHILD_EQUAL(haul_wait(haul_fill(dst.data() + 3, 0x0807060504030201u, 8, length)), 0);
          for (std::size_t at = 0; at < length; ++at) CHILD_EQUAL(dst[3 + at], at % 8 + 1);
        }
      }),
      0);
}

}  // namespace
