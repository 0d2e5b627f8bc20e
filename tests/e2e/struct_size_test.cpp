// The `size` of the structs lets them grow: programs built for a newer haul.h with larger structs,
// and what cannot be understood is refused.
#include <gtest/gtest.h>

#include "support.hpp"

namespace {

using namespace e2e;

// haul_request as a later haul.h might have it.
struct LaterRequest {
  haul_request known;
  unsigned char tail[16];
};
static_assert(sizeof(LaterRequest) == sizeof(haul_request) + 16);

LaterRequest later(const haul_request& known) {
  LaterRequest request;
  std::memset(&request, 0, sizeof request);
  request.known = known;
  request.known.size = sizeof request;
  return request;
}

constexpr std::size_t part = 100'003;  // odd, so that a wrong stride shows in the bytes

struct Parts {
  Parts() : src(2 * part), dst(2 * part) {
    src.fill(9);
    dst.clear();
  }
  haul_request copy(std::size_t index, unsigned flags) const {
    haul_request request =
        haul_request_copy(dst.data() + index * part, src.data() + index * part, part);
    request.flags = flags;
    return request;
  }
  bool copied(std::size_t index) const {
    return std::memcmp(dst.data() + index * part, src.data() + index * part, part) == 0;
  }
  bool untouched(std::size_t index) const {
    for (std::size_t at = 0; at < part; ++at) {
      if (dst[index * part + at] != 0) return false;
    }
    return true;
  }
  const Buffer src, dst;
};

TEST(StructSize, LargerRequestsWithAZeroTailWork) {
  for (const unsigned flags : {0u, unsigned{HAUL_INLINE}, unsigned{HAUL_DEDICATED},
                               unsigned{HAUL_CHECKED}, unsigned{HAUL_FENCE}}) {
    EXPECT_EQ(
        run_child([&] {
          always_mover();
          const Parts parts;
          const LaterRequest both[2] = {later(parts.copy(0, flags)), later(parts.copy(1, flags))};
          haul_ticket tickets[2] = {{1, 1}, {1, 1}};
          CHILD_EQUAL(haul_submit(&both[0].known, 2, tickets), 2);
          CHILD_EQUAL(haul_wait(tickets[0]), 0);
          CHILD_EQUAL(haul_wait(tickets[1]), 0);
          CHILD_CHECK(parts.copied(0) && parts.copied(1));
          return 0;
        }),
        0)
        << "flags " << flags;
  }
}

TEST(StructSize, WhatIsNotKnownIsRefused) {
  EXPECT_EQ(run_child([] {
              quiet_environment();
              for (std::size_t at = 0; at < sizeof(LaterRequest::tail); ++at) {
                const Parts parts;
                LaterRequest both[2] = {later(parts.copy(0, 0)), later(parts.copy(1, 0))};
                both[0].tail[at] = 1;
                CHILD_EQUAL(haul_submit(&both[0].known, 2, nullptr), HAUL_EINVAL);
                CHILD_CHECK(std::strstr(haul_last_error(), "152 bytes") != nullptr);
                CHILD_CHECK(parts.untouched(0) && parts.untouched(1));
                haul_plan plan{};
                plan.size = sizeof plan;
                CHILD_EQUAL(haul_explain(&both[0].known, &plan), HAUL_EINVAL);
                // In the second one: the first is taken.
                both[0].tail[at] = 0;
                both[1].tail[at] = 0x80;
                haul_ticket tickets[2] = {};
                CHILD_EQUAL(haul_submit(&both[0].known, 2, tickets), 1);
                CHILD_EQUAL(haul_wait(tickets[0]), 0);
                CHILD_CHECK(parts.copied(0) && parts.untouched(1));
              }
              return 0;
            }),
            0);
}

TEST(StructSize, SmallerOrMixedRequestsAreRefused) {
  EXPECT_EQ(run_child([] {
              quiet_environment();
              const Parts parts;
              haul_request one = parts.copy(0, 0);
              one.size = sizeof one - 8;
              CHILD_EQUAL(haul_submit(&one, 1, nullptr), HAUL_EINVAL);
              haul_plan plan{};
              plan.size = sizeof plan;
              CHILD_EQUAL(haul_explain(&one, &plan), HAUL_EINVAL);
              CHILD_CHECK(parts.untouched(0));

              // The second of another size than the first: smaller and larger.
              for (const std::uint32_t size : {0u, 136u, 144u, 168u}) {
                LaterRequest both[2] = {later(parts.copy(0, 0)), later(parts.copy(1, 0))};
                both[1].known.size = size;
                haul_ticket tickets[2] = {};
                CHILD_EQUAL(haul_submit(&both[0].known, 2, tickets), 1);
                CHILD_EQUAL(haul_wait(tickets[0]), 0);
                CHILD_CHECK(std::strstr(haul_last_error(), "Request 1") != nullptr);
                CHILD_CHECK(parts.copied(0) && parts.untouched(1));
              }
              haul_request two[2] = {parts.copy(0, 0), parts.copy(1, 0)};
              two[1].size += 16;
              CHILD_EQUAL(haul_submit(two, 2, nullptr), 1);
              CHILD_CHECK(parts.untouched(1));
              return 0;
            }),
            0);
}

// A struct that haul fills in, with room behind it for what a later haul.h might add.
template <class T>
struct Later {
  T known;
  unsigned char tail[16];
};

template <class T, class Call>
void check_out(Call call) {
  Later<T> out;
  for (const std::uint32_t more : {0u, 8u, 16u}) {
    std::memset(&out, 0x5A, sizeof out);
    out.known.size = static_cast<std::uint32_t>(sizeof(T)) + more;
    CHILD_EQUAL(call(&out.known), 0);
    CHILD_EQUAL(out.known.size, sizeof(T) + more);
    for (const unsigned char byte : out.tail) CHILD_EQUAL(byte, 0x5A);
    Later<T> exact;
    std::memset(&exact, 0, sizeof exact);
    exact.known.size = sizeof(T);
    CHILD_EQUAL(call(&exact.known), 0);
    // Something was delivered: its last bytes are not what they were before.
    const auto* bytes = reinterpret_cast<const unsigned char*>(&out.known);
    CHILD_CHECK(bytes[4] != 0x5A || bytes[5] != 0x5A || bytes[6] != 0x5A || bytes[7] != 0x5A);
    CHILD_CHECK(std::memcmp(bytes + sizeof(T) - 4, "ZZZZ", 4) != 0);
  }
  for (const std::uint32_t size : {0u, 4u, static_cast<std::uint32_t>(sizeof(T)) - 8}) {
    std::memset(&out, 0x5A, sizeof out);
    out.known.size = size;
    CHILD_EQUAL(call(&out.known), HAUL_EINVAL);
    CHILD_EQUAL(out.known.size, size);
    const auto* bytes = reinterpret_cast<const unsigned char*>(&out);
    for (std::size_t at = 4; at < sizeof out; ++at) CHILD_EQUAL(bytes[at], 0x5A);
  }
}

TEST(StructSize, WhatHaulFillsInKeepsTheCallersSize) {
  EXPECT_EQ(
      run_child([] {
        quiet_environment();
        copy_works(mib, 1);
        check_out<haul_state>([](haul_state* out) { return haul_query(out); });
        check_out<haul_engine_info>([](haul_engine_info* out) { return haul_engine(0, out); });
        const Parts parts;
        const haul_request request = parts.copy(0, 0);
        const LaterRequest larger = later(request);
        check_out<haul_plan>([&](haul_plan* out) { return haul_explain(&request, out); });
        check_out<haul_plan>([&](haul_plan* out) { return haul_explain(&larger.known, out); });
        return 0;
      }),
      0);
}

}  // namespace
