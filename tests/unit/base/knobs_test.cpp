#include "base/knobs.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "unit/base/temp_dir.hpp"

namespace haul {
namespace {

using test::ScopedEnv;

const KnobRow& row_of(Knob knob) {
  return knob_rows()[static_cast<std::size_t>(knob)];
}

// Each test reads the environment anew, and leaves nothing behind.
class Knobs : public testing::Test {
 protected:
  void SetUp() override {
    for (std::size_t i = 0; i < static_cast<std::size_t>(Knob::count_); ++i) {
      unsetenv(knob_rows()[i].variable);
    }
    reread_knobs();
  }
  void TearDown() override { SetUp(); }

  // Sets one variable and gives what reading it says on standard error.
  static std::string set(Knob knob, const char* value) {
    setenv(row_of(knob).variable, value, 1);
    reread_knobs();
    testing::internal::CaptureStderr();
    knob_number(knob);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(Knobs, EveryRowIsWhole) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(Knob::count_); ++i) {
    const KnobRow& row = knob_rows()[i];
    SCOPED_TRACE(row.variable);
    EXPECT_EQ(static_cast<std::size_t>(row.knob), i);
    EXPECT_EQ(strncmp(row.variable, "HAUL_", 5), 0);
    EXPECT_NE(strchr(row.variable + 5, '_'), nullptr) << "HAUL_<AREA>_<KNOB>";
    EXPECT_TRUE(std::all_of(row.variable, row.variable + strlen(row.variable),
                            [](char c) { return c == '_' || (c >= 'A' && c <= 'Z'); }));
    EXPECT_TRUE(parse_knob(row, row.default_text)) << "the default must be valid";
    const std::string help = row.help;
    EXPECT_EQ(help.back(), '.');
    EXPECT_EQ(help.find(". "), std::string::npos) << "one sentence";
    EXPECT_NE(help.find("default"), std::string::npos);
    if (row.kind == KnobKind::choice) {
      EXPECT_NE(std::string(row.choices).find(row.default_text), std::string::npos);
    }
  }
}

TEST_F(Knobs, DefaultsHoldWhenNothingIsSet) {
  EXPECT_EQ(knob_number(Knob::log_level), 1u);
  EXPECT_STREQ(knob_text(Knob::log_level), "warning");
  EXPECT_EQ(knob_number(Knob::copy_block_bytes), 4096u);
  EXPECT_EQ(knob_number(Knob::mover_cores), 1u);
  EXPECT_EQ(knob_number(Knob::mover_spin_us), 10000u);
  EXPECT_STREQ(knob_text(Knob::mover_cpu), "auto");
  EXPECT_EQ(knob_number(Knob::mover_cpu), knob_auto);
  EXPECT_EQ(knob_number(Knob::plan_inline_bytes), knob_auto);
  EXPECT_EQ(knob_number(Knob::mover_lease), 0u);
  EXPECT_STREQ(knob_text(Knob::engine_fault), "");
  EXPECT_STREQ(knob_text(Knob::tune_cache), "");
}

TEST_F(Knobs, TheEnvironmentIsReadOnceAndCopied) {
  EXPECT_EQ(set(Knob::tune_cache, "/some/path"), "");
  ScopedEnv change("HAUL_TUNE_CACHE", "/another/path");
  EXPECT_STREQ(knob_text(Knob::tune_cache), "/some/path");
  reread_knobs();
  EXPECT_STREQ(knob_text(Knob::tune_cache), "/another/path");
}

TEST_F(Knobs, AStringThatTheProgramReusesDoesNoHarm) {
  char text[] = "HAUL_TUNE_CACHE=/some/path";
  putenv(text);
  reread_knobs();
  EXPECT_STREQ(knob_text(Knob::tune_cache), "/some/path");
  text[sizeof "HAUL_TUNE_CACHE"] = 'X';
  EXPECT_STREQ(knob_text(Knob::tune_cache), "/some/path");
  unsetenv("HAUL_TUNE_CACHE");
}

TEST_F(Knobs, ValidValuesAreTakenInSilence) {
  EXPECT_EQ(set(Knob::copy_block_bytes, "64K"), "");
  EXPECT_EQ(knob_number(Knob::copy_block_bytes), 65536u);
  EXPECT_STREQ(knob_text(Knob::copy_block_bytes), "64K");
  EXPECT_EQ(set(Knob::mover_cores, "0"), "");
  EXPECT_EQ(knob_number(Knob::mover_cores), 0u);
  EXPECT_EQ(set(Knob::plan_engine, "fault"), "");
  EXPECT_EQ(knob_number(Knob::plan_engine), 3u);
  EXPECT_EQ(set(Knob::mover_cpu, "7"), "");
  EXPECT_EQ(knob_number(Knob::mover_cpu), 7u);
  EXPECT_EQ(set(Knob::plan_inline_bytes, "2K"), "");
  EXPECT_EQ(knob_number(Knob::plan_inline_bytes), 2048u);
}

TEST_F(Knobs, AnEmptyValueIsAnUnsetOne) {
  EXPECT_EQ(set(Knob::mover_cores, ""), "");
  EXPECT_EQ(knob_number(Knob::mover_cores), 1u);
  EXPECT_EQ(set(Knob::mover_cpu, ""), "");
  EXPECT_STREQ(knob_text(Knob::mover_cpu), "auto");
}

TEST_F(Knobs, AnUnusableValueIsReportedOnceAndTheDefaultHolds) {
  EXPECT_EQ(set(Knob::mover_cores, "abc"),
            "haul: warning: HAUL_MOVER_CORES='abc' is not a number from 0 to 16; using default "
            "'1'\n");
  EXPECT_EQ(knob_number(Knob::mover_cores), 1u);
  EXPECT_STREQ(knob_text(Knob::mover_cores), "1");
  testing::internal::CaptureStderr();
  knob_number(Knob::mover_cores);
  knob_text(Knob::plan_mover);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Knobs, AnUnusableLogLevelIsReportedToo) {
  EXPECT_EQ(set(Knob::log_level, "loud"),
            "haul: warning: HAUL_LOG_LEVEL='loud' is not one of error|warning|info|debug; using "
            "default 'warning'\n");
  EXPECT_EQ(knob_number(Knob::log_level), 1u);
}

TEST_F(Knobs, TheReportObeysTheLogLevel) {
  ScopedEnv quiet("HAUL_LOG_LEVEL", "error");
  EXPECT_EQ(set(Knob::mover_cores, "abc"), "");
}

TEST_F(Knobs, AHostileValueStaysOneLine) {
  const std::string report = set(Knob::mover_cores, "1\n\x1b[2Jhaul: error: x");
  EXPECT_EQ(std::count(report.begin(), report.end(), '\n'), 1);
  EXPECT_EQ(report.find('\x1b'), std::string::npos);
  const std::string longer = set(Knob::mover_cores, std::string(100000, '1').c_str());
  EXPECT_LT(longer.size(), 300u);
  EXPECT_NE(longer.find("using default"), std::string::npos);
}

TEST_F(Knobs, TooLongATextIsRefused) {
  EXPECT_EQ(set(Knob::tune_cache, std::string(4095, 'a').c_str()), "");
  EXPECT_EQ(strlen(knob_text(Knob::tune_cache)), 4095u);
  EXPECT_NE(set(Knob::tune_cache, std::string(4096, 'a').c_str()), "");
  EXPECT_STREQ(knob_text(Knob::tune_cache), "");
}

TEST_F(Knobs, AllTextsAtTheirLongestFit) {
  // Numbers are padded with zeros to the longest that is taken.
  for (std::size_t i = 0; i < static_cast<std::size_t>(Knob::count_); ++i) {
    const KnobRow& row = knob_rows()[i];
    std::string value = row.default_text;
    if (row.kind == KnobKind::number) value = std::string(62, '0') + "1";
    const bool is_free = row.kind == KnobKind::text && row.choices[0] == '\0';
    if (row.kind == KnobKind::bytes || (row.kind == KnobKind::text && !is_free)) {
      const std::string least = std::to_string(row.minimum < 4096 ? 4096 : row.minimum);
      value = std::string(63 - least.size(), '0') + least;
    }
    if (is_free) value = std::string(4095, 'x');
    if (row.kind == KnobKind::choice) value = std::string(row.choices).substr(0, value.size());
    setenv(row.variable, value.c_str(), 1);
  }
  setenv("HAUL_LOG_LEVEL", "debug", 1);
  reread_knobs();
  for (std::size_t i = 1; i < static_cast<std::size_t>(Knob::count_); ++i) {
    EXPECT_EQ(std::string(knob_text(static_cast<Knob>(i))), getenv(knob_rows()[i].variable));
  }
}

TEST_F(Knobs, ThreadsThatRaceForTheFirstReadAgree) {
  setenv("HAUL_MOVER_SPIN_US", "123", 1);
  for (int round = 0; round < 50; ++round) {
    reread_knobs();
    std::vector<std::thread> threads;
    std::vector<std::uint64_t> seen(4);
    std::vector<std::string> texts(4);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      threads.emplace_back([&, i] {
        texts[i] = knob_text(Knob::mover_spin_us);
        seen[i] = knob_number(Knob::mover_spin_us);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i], 123u);
      EXPECT_EQ(texts[i], "123");
    }
  }
}

TEST(ParseKnob, Numbers) {
  const KnobRow& row = row_of(Knob::mover_cores);
  EXPECT_EQ(*parse_knob(row, "16"), 16u);
  for (const char* bad : {"", " 1", "1 ", "-1", "+1", "17", "1K", "0x1", "1.0", "one",
                          "18446744073709551616", "99999999999999999999999"}) {
    EXPECT_FALSE(parse_knob(row, bad)) << bad;
  }
}

TEST(ParseKnob, BytesAndPowersOfTwo) {
  const KnobRow& row = row_of(Knob::copy_block_bytes);
  EXPECT_EQ(*parse_knob(row, "64"), 64u);
  EXPECT_EQ(*parse_knob(row, "1M"), 1048576u);
  for (const char* bad : {"32", "63", "65", "3K", "2M", "K", "4KB", "1G", "0"}) {
    EXPECT_FALSE(parse_knob(row, bad)) << bad;
  }
}

TEST(ParseKnob, Choices) {
  const KnobRow& row = row_of(Knob::plan_engine);
  EXPECT_EQ(*parse_knob(row, "auto"), 0u);
  EXPECT_EQ(*parse_knob(row, "cpu"), 1u);
  EXPECT_EQ(*parse_knob(row, "fault"), 3u);
  for (const char* bad : {"", "cp", "cpux", "CPU", "cpu|cma", "|", "auto|"}) {
    EXPECT_FALSE(parse_knob(row, bad)) << bad;
  }
}

TEST(ParseKnob, AWordOrANumber) {
  const KnobRow& cpu = row_of(Knob::mover_cpu);
  EXPECT_EQ(*parse_knob(cpu, "auto"), knob_auto);
  EXPECT_EQ(*parse_knob(cpu, "0"), 0u);
  for (const char* bad : {"any", "-1", "65536", "1,2"}) EXPECT_FALSE(parse_knob(cpu, bad)) << bad;
  const KnobRow& bytes = row_of(Knob::plan_inline_bytes);
  EXPECT_EQ(*parse_knob(bytes, "0"), 0u);
  EXPECT_EQ(*parse_knob(bytes, "1G"), std::uint64_t{1} << 30);
  EXPECT_FALSE(parse_knob(bytes, "18446744073709551615")) << "that number means auto";
}

TEST(ParseKnob, TheSentenceHasCauseAndRemedy) {
  const auto result = parse_knob(row_of(Knob::copy_block_bytes), "100");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::invalid);
  EXPECT_STREQ(result.error().sentence,
               "HAUL_COPY_BLOCK_BYTES='100' is not a power of two from 64 to 1048576 bytes "
               "(suffixes K, M, G); set it so, or unset it for '4K'");
}

TEST(ParseBytes, TakesDigitsAndOneSuffix) {
  EXPECT_EQ(*parse_bytes("0"), 0u);
  EXPECT_EQ(*parse_bytes("4096"), 4096u);
  EXPECT_EQ(*parse_bytes("64K"), 65536u);
  EXPECT_EQ(*parse_bytes("64k"), 65536u);
  EXPECT_EQ(*parse_bytes("1M"), 1048576u);
  EXPECT_EQ(*parse_bytes("2G"), std::uint64_t{2} << 30);
  EXPECT_EQ(*parse_bytes("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(*parse_bytes("17179869183G"), std::uint64_t{17179869183} << 30);
}

TEST(ParseBytes, RefusesAllElse) {
  for (const char* bad : {"", "K", "1T", "1KK", "1KiB", "1 K", "-1", "0x10", "1.5K", " 1", "1\n",
                          "18446744073709551616", "17179869184G", "18446744073709551615K"}) {
    const auto result = parse_bytes(bad);
    EXPECT_FALSE(result) << bad;
    if (result) continue;
    EXPECT_NE(std::string(result.error().sentence).find("64K"), std::string::npos);
  }
}

}  // namespace
}  // namespace haul
