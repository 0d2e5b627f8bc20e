// The text of a fault schedule, and the fates it deals out.
#include "engine/fault/schedule.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace haul::fault {
namespace {

Schedule parsed(const char* text) {
  Expected<Schedule> schedule = parse_schedule(text);
  EXPECT_TRUE(static_cast<bool>(schedule)) << text;
  return schedule ? *schedule : Schedule{};
}

TEST(FaultSchedule, EmptyTextChangesNothing) {
  for (const char* text : {static_cast<const char*>(nullptr), ""}) {
    const Schedule schedule = parsed(text);
    EXPECT_TRUE(schedule.empty());
    const Fate fate = fate_of(schedule, 1);
    EXPECT_EQ(fate.code, Code::ok);
    EXPECT_EQ(fate.good_percent, 100u);
    EXPECT_EQ(fate.delay_polls, 0u);
    EXPECT_FALSE(fate.dies);
  }
}

TEST(FaultSchedule, RulesMeetTheirPiecesOnly) {
  const Schedule schedule =
      parsed("delay=3,delay=50us,delay=9@2,partial=50%@3,fail=peer_gone@7,die@12");
  EXPECT_EQ(fate_of(schedule, 1).delay_polls, 3u);
  EXPECT_EQ(fate_of(schedule, 1).delay_us, 50u);
  EXPECT_EQ(fate_of(schedule, 2).delay_polls, 9u);
  EXPECT_EQ(fate_of(schedule, 3).good_percent, 50u);
  EXPECT_EQ(fate_of(schedule, 3).code, Code::io) << "a part is a failure";
  EXPECT_EQ(fate_of(schedule, 4).code, Code::ok);
  EXPECT_EQ(fate_of(schedule, 7).code, Code::peer_gone);
  EXPECT_EQ(fate_of(schedule, 7).good_percent, 0u);
  EXPECT_TRUE(fate_of(schedule, 12).dies);
  EXPECT_FALSE(fate_of(schedule, 13).dies);
}

TEST(FaultSchedule, EnginesThatLieAndStall) {
  const Schedule schedule = parsed("stall@2,stray@3,excess");
  EXPECT_FALSE(fate_of(schedule, 1).stalls);
  EXPECT_TRUE(fate_of(schedule, 2).stalls);
  EXPECT_TRUE(fate_of(schedule, 3).strays);
  EXPECT_FALSE(fate_of(schedule, 4).strays);
  EXPECT_TRUE(fate_of(schedule, 4).exceeds);
  EXPECT_EQ(fate_of(schedule, 4).code, Code::ok);
  EXPECT_FALSE(static_cast<bool>(parse_schedule("stall=3")));
}

TEST(FaultSchedule, ChancesComeTrueAboutAsOftenAsAsked) {
  const Schedule schedule = parsed("seed=9,p_fail=10,p_partial=20,p_die=5,delay=4");
  unsigned failed = 0, partial = 0, died = 0, delays[6] = {};
  constexpr unsigned pieces = 10'000;
  for (unsigned piece = 1; piece <= pieces; ++piece) {
    const Fate fate = fate_of(schedule, piece);
    ASSERT_LE(fate.delay_polls, 4u);
    ++delays[fate.delay_polls];
    died += fate.dies;
    if (fate.code != Code::ok) ++(fate.good_percent == 0 ? failed : partial);
  }
  // A part of 0 % counts as failed: one in a hundred of them.
  EXPECT_NEAR(failed, pieces * 0.10, 150);
  EXPECT_NEAR(partial, pieces * 0.20, 150);
  EXPECT_NEAR(died, pieces * 0.05, 150);
  for (unsigned polls = 0; polls <= 4; ++polls) EXPECT_NEAR(delays[polls], pieces / 5, 200);
}

TEST(FaultSchedule, OtherSeedsOtherFates) {
  const Schedule one = parsed("seed=1,p_fail=50"), two = parsed("seed=2,p_fail=50");
  unsigned differ = 0;
  for (unsigned piece = 1; piece <= 200; ++piece) {
    differ += fate_of(one, piece).code != fate_of(two, piece).code;
    EXPECT_EQ(fate_of(one, piece).code, fate_of(one, piece).code);
  }
  EXPECT_GT(differ, 50u);
}

TEST(FaultSchedule, BadTextIsNamed) {
  const char* bad[] = {"delay",
                       "delay=",
                       "delay=x",
                       "delay=3@",
                       "delay=3@0",
                       "delay=-1",
                       "delay=1000001",
                       "delay=5ms",
                       "partial=50",
                       "partial=101%",
                       "fail=ok@1",
                       "fail=strange",
                       "die",
                       "die@x",
                       "seed=",
                       "p_fail=101,seed=1",
                       "explode",
                       ",",
                       "delay=1,",
                       " delay=1",
                       "delay=1 ",
                       "fail=io@7x",
                       "seed=18446744073709551616",
                       "delay=99999999999999999999",
                       "die@18446744073709551616"};
  for (const char* text : bad) {
    Expected<Schedule> schedule = parse_schedule(text);
    ASSERT_FALSE(static_cast<bool>(schedule)) << text;
    EXPECT_EQ(schedule.error().code, Code::invalid);
    EXPECT_NE(std::strstr(schedule.error().sentence, "rules look like"), nullptr)
        << text << ": " << schedule.error().sentence;
  }
}

TEST(FaultSchedule, ChancesThatCannotBeAreRefused) {
  Expected<Schedule> too_many = parse_schedule("seed=1,p_fail=60,p_die=41");
  ASSERT_FALSE(static_cast<bool>(too_many));
  EXPECT_NE(std::strstr(too_many.error().sentence, "101 %"), nullptr);
  Expected<Schedule> no_seed = parse_schedule("p_fail=60");
  ASSERT_FALSE(static_cast<bool>(no_seed));
  EXPECT_NE(std::strstr(no_seed.error().sentence, "seed=1"), nullptr);
}

TEST(FaultSchedule, TooManyRulesAreRefusedNotOverrun) {
  std::string text = "delay=1";
  for (int rule = 1; rule < 16; ++rule) text += ",delay=1";
  EXPECT_TRUE(static_cast<bool>(parse_schedule(text.c_str())));
  text += ",delay=1";
  EXPECT_FALSE(static_cast<bool>(parse_schedule(text.c_str())));
  text += std::string(100'000, 'x');
  EXPECT_FALSE(static_cast<bool>(parse_schedule(text.c_str())));
}

}  // namespace
}  // namespace haul::fault
