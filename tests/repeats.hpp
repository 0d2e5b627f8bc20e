// How often a test with random or counted cases repeats itself.
#pragma once

namespace testing_haul {

// Of so many cases of a test of one thread those that run. A sanitizer takes up to ten times as
// long for each, and sees in a few what it would see in all; the builds without one run them all.
constexpr unsigned repeats(unsigned cases) noexcept {
#if defined(__SANITIZE_THREAD__)
  return cases < 10 ? 1 : cases / 10;
#elif defined(__SANITIZE_ADDRESS__)
  return cases < 3 ? 1 : cases / 3;
#else
  return cases;
#endif
}

}  // namespace testing_haul
