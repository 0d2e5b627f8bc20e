// Calls that have returned while mprotect() keeps the program from their memory (plan protected).
#pragma once

#include <string>

#include "transparent/support.hpp"

namespace transparent {

inline constexpr std::size_t size = 32 * mib;

inline std::uint64_t protected_calls() {
  return counted(&own_table(), static_cast<int>(Way::protected_)).calls;
}

// A copy that is, under the plan, under way when the constructor returns: into new memory, or into
// memory whose pages are there.
class UnderProtection {
 public:
  explicit UnderProtection(std::uint64_t seed, bool there = false, std::size_t to_shift = 0,
                           std::size_t from_shift = 0)
      : from_(size + 4096), to_(size + 4096), seed_(seed), shift_(to_shift), skip_(from_shift) {
    from_.fill(seed);
    if (there) std::memset(to_.data(), 0x5a, size + 4096);
    const std::uint64_t before = protected_calls() + refused(NotShared::no_mover);
    CHILD_CHECK(call_memcpy(to(), from(), size) == to());
    if (plan_is("protected"))
      CHILD_CHECK(protected_calls() + refused(NotShared::no_mover) == before + 1);
  }
  unsigned char* from() const { return from_.data() + skip_; }
  unsigned char* to() const { return to_.data() + shift_; }
  bool right(std::size_t begin = 0, std::size_t end = size) const {
    for (std::size_t at = begin / 8; at < end / 8; ++at) {
      std::uint64_t found;
      __builtin_memcpy(&found, to() + at * 8, 8);
      if (found != Memory::word(seed_, at + skip_ / 8)) return false;
    }
    return true;
  }

 private:
  Memory from_, to_;
  std::uint64_t seed_;
  std::size_t shift_, skip_;
};

// How a child ended (support.hpp). Under the other plans it is not asked: deferred_test.cpp is for
// those.
template <class Body>
int end_of_child(Body body, int expected = 0) {
  const bool asked = plan_is("protected") || plan_is("libc");
  return asked ? run_child(body) : expected;
}

#define IN_CHILD(...) EXPECT_EQ(end_of_child([] { __VA_ARGS__ }), 0)

// What the kernel says that this process may do there: "rw-p" or less.
inline std::string rights_of(const void* at) {
  std::FILE* file = std::fopen("/proc/self/maps", "r");
  char line[512];
  std::string rights;
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    unsigned long begin = 0, end = 0;
    char found[8] = {};
    if (std::sscanf(line, "%lx-%lx %7s", &begin, &end, found) == 3 &&
        begin <= reinterpret_cast<unsigned long>(at) && reinterpret_cast<unsigned long>(at) < end)
      rights = found;
  }
  if (file != nullptr) std::fclose(file);
  return rights;
}

}  // namespace transparent
