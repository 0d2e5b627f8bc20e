// Memory that comes again is told from memory that comes once, and from another part of the same
// request.
#include "memory/sightings.hpp"

#include <gtest/gtest.h>

namespace haul {
namespace {

using Seen = Sightings::Seen;

TEST(Sightings, WhatAnotherRequestHadComesAgain) {
  Sightings seen;
  EXPECT_NE(seen.look(1000, 2000, 1), Seen::again);
  EXPECT_NE(seen.look(1000, 2000, 1), Seen::again) << "the same request's next chunk";
  EXPECT_EQ(seen.look(1000, 2000, 2), Seen::again);
  EXPECT_EQ(seen.look(1200, 1300, 3), Seen::again) << "a part of it";
  EXPECT_NE(seen.look(1999, 2001, 4), Seen::again) << "more than was seen";
  EXPECT_NE(seen.look(0, 10, 5), Seen::again);
}

TEST(Sightings, WhatIsRefusedDoesNotComeAgain) {
  Sightings seen;
  seen.look(1000, 2000, 1);
  seen.judge(1000, 2000, Seen::refused);
  EXPECT_NE(seen.look(1000, 2000, 2), Seen::again);
  seen.judge(5000, 6000, Seen::refused);  // was never seen
  EXPECT_NE(seen.look(5000, 6000, 3), Seen::again);
  EXPECT_EQ(seen.look(5000, 6000, 4), Seen::again);
}

TEST(Sightings, APartOfWhatCannotStayCannotEither) {
  Sightings seen;
  seen.look(1000, 2000, 1);
  seen.judge(1000, 2000, Seen::passing);
  EXPECT_EQ(seen.look(1200, 1300, 2), Seen::passing);
  seen.forget(1999, 3000);  // other memory lies there
  EXPECT_EQ(seen.look(1000, 2000, 3), Seen::first);
}

TEST(Sightings, TheOldestAreForgotten) {
  Sightings seen;
  for (std::uintptr_t number = 0; number < 40; ++number)
    EXPECT_NE(seen.look(number * 100, number * 100 + 50, 1), Seen::again);
  EXPECT_NE(seen.look(0, 50, 2), Seen::again);
  EXPECT_EQ(seen.look(3900, 3950, 2), Seen::again);
}

}  // namespace
}  // namespace haul
