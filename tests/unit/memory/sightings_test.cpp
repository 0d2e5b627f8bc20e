// Memory that comes again is told from memory that comes once, and from another part of the same
// request.
#include "memory/sightings.hpp"

#include <gtest/gtest.h>

namespace haul {
namespace {

TEST(Sightings, WhatAnotherRequestHadComesAgain) {
  Sightings seen;
  EXPECT_FALSE(seen.again(1000, 2000, 1));
  EXPECT_FALSE(seen.again(1000, 2000, 1)) << "the same request's next chunk";
  EXPECT_TRUE(seen.again(1000, 2000, 2));
  EXPECT_TRUE(seen.again(1200, 1300, 3)) << "a part of it";
  EXPECT_FALSE(seen.again(1999, 2001, 4)) << "more than was seen";
  EXPECT_FALSE(seen.again(0, 10, 5));
}

TEST(Sightings, WhatIsRefusedDoesNotComeAgain) {
  Sightings seen;
  seen.again(1000, 2000, 1);
  seen.refuse(1000, 2000);
  EXPECT_FALSE(seen.again(1000, 2000, 2));
  seen.refuse(5000, 6000);  // was never seen
  EXPECT_FALSE(seen.again(5000, 6000, 3));
  EXPECT_TRUE(seen.again(5000, 6000, 4));
}

TEST(Sightings, TheOldestAreForgotten) {
  Sightings seen;
  for (std::uintptr_t number = 0; number < 40; ++number)
    EXPECT_FALSE(seen.again(number * 100, number * 100 + 50, 1));
  EXPECT_FALSE(seen.again(0, 50, 2));
  EXPECT_TRUE(seen.again(3900, 3950, 2));
}

}  // namespace
}  // namespace haul
