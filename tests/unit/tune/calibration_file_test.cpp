#include "tune/calibration_file.hpp"

#include <gtest/gtest.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "base/knobs.hpp"
#include "base/thread/unforked.hpp"
#include "tune/machine_key.hpp"
#include "unit/base/temp_dir.hpp"

namespace haul::tune {
namespace {

using plan::Calibration;
using test::ScopedEnv;
using test::TempDir;

Measured measured_figures() {
  Measured measured;
  measured.quality = Quality{1795452138, 0.985, 0.003, 0.125};
  Calibration& figures = measured.figures;
  figures.measured = true;
  figures.round_trip_ns = 151.25;
  figures.submit_ns = 31.5;
  figures.wake_ns = 4321;
  figures.start_ns = 54321.125;
  figures.hot_line_ns = 0.375;
  figures.l3_line_ns = 0.875;
  figures.cold_line_ns = 2.125;
  figures.remote_line_ns = 0;
  figures.kernel_call_ns = 1234.5;
  figures.kernel_line_ns = 4.25;
  HaulPrivateRing& near = measured.near;
  near.measured_at_s = 1795452139;
  near.part_bytes = 4096;
  near.cell_from_bytes = 0;
  near.copies_out = HaulPrivateCopy::prefetching;
  near.owns_ahead = false;
  near.message_ns[0] = 531.5;
  near.message_ns[4] = 66000.25;
  return measured;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A whole file's text with these lines and the right checksum.
std::string sealed(const std::string& lines) {
  char checksum[64];
  snprintf(checksum, sizeof checksum, "checksum=%016" PRIx64 "\n",
           hash(hash_seed, lines.data(), lines.size()));
  return lines + checksum;
}

std::string hex(std::uint64_t number) {
  char text[32];
  snprintf(text, sizeof text, "%016" PRIx64, number);
  return text;
}

class CalibrationFile : public testing::Test {
 protected:
  CalibrationFile()
      : cache_("HAUL_TUNE_CACHE", nullptr),
        level_("HAUL_LOG_LEVEL", nullptr),
        xdg_("XDG_CACHE_HOME", nullptr),
        home_("HOME", nullptr) {
    reread_knobs();
  }
  ~CalibrationFile() override { reread_knobs(); }

  std::string path() const { return dir_ / "calibration"; }
  // The file's text once `figures` are stored.
  std::string stored(const Measured& figures = measured_figures()) const {
    EXPECT_EQ(store_calibration(path().c_str(), figures).code, Code::ok);
    return text_of(path());
  }
  void write(const std::string& text) const { dir_.write("calibration", text); }
  // The error that reading `text` gives.
  Error refused(const std::string& text) const {
    write(text);
    const auto result = load_calibration(path().c_str());
    EXPECT_FALSE(result) << text;
    return result ? Error{} : result.error();
  }

  TempDir dir_;
  // Gone from the environment during each test, and back after it.
  ScopedEnv cache_, level_, xdg_, home_;
};

bool mentions(const Error& error, const char* text) {
  return std::string(error.sentence).find(text) != std::string::npos;
}

TEST_F(CalibrationFile, ComesBackAsItWasStored) {
  stored();
  const auto loaded = load_calibration(path().c_str());
  ASSERT_TRUE(loaded);
  const Measured whole = measured_figures();
  EXPECT_EQ(loaded->quality.measured_at_s, whole.quality.measured_at_s);
  EXPECT_EQ(loaded->quality.ran_share, whole.quality.ran_share);
  EXPECT_EQ(loaded->quality.stolen_share, whole.quality.stolen_share);
  EXPECT_EQ(loaded->quality.spread, whole.quality.spread);
  const Calibration& expected = whole.figures;
  EXPECT_TRUE(loaded->figures.measured);
  EXPECT_EQ(loaded->figures.round_trip_ns, expected.round_trip_ns);
  EXPECT_EQ(loaded->figures.submit_ns, expected.submit_ns);
  EXPECT_EQ(loaded->figures.wake_ns, expected.wake_ns);
  EXPECT_EQ(loaded->figures.start_ns, expected.start_ns);
  EXPECT_EQ(loaded->figures.hot_line_ns, expected.hot_line_ns);
  EXPECT_EQ(loaded->figures.l3_line_ns, expected.l3_line_ns);
  EXPECT_EQ(loaded->figures.cold_line_ns, expected.cold_line_ns);
  EXPECT_EQ(loaded->figures.remote_line_ns, expected.remote_line_ns);
  EXPECT_EQ(loaded->figures.kernel_call_ns, expected.kernel_call_ns);
  EXPECT_EQ(loaded->figures.kernel_line_ns, expected.kernel_line_ns);
  EXPECT_EQ(loaded->near.measured_at_s, 1795452139u);
  EXPECT_EQ(loaded->near.eager_bytes, 65536u);
  EXPECT_EQ(loaded->near.part_bytes, 4096u);
  EXPECT_EQ(loaded->near.cell_from_bytes, 0u);
  EXPECT_EQ(loaded->near.piece_bytes, 32768u);
  EXPECT_FALSE(loaded->near.owns_ahead);
  EXPECT_EQ(loaded->near.copies_in, HaulPrivateCopy::strings);
  EXPECT_EQ(loaded->near.copies_out, HaulPrivateCopy::prefetching);
  EXPECT_TRUE(loaded->near.demotes);
  EXPECT_EQ(loaded->near.message_ns[0], 531.5);
  EXPECT_EQ(loaded->near.message_ns[4], 66000.25);
  EXPECT_EQ(loaded->far.measured_at_s, 0u);
  EXPECT_TRUE(loaded->far.owns_ahead);
}

TEST_F(CalibrationFile, IsTextForPeople) {
  EXPECT_EQ(stored(),
            sealed("haul calibration\nversion=5\nmachine=" + hex(machine_key()) +
                   "\nmeasured_at=1795452138\nran_share=0.985\n"
                   "stolen_share=0.003\nspread=0.125\n"
                   "round_trip_ns=151.250\nsubmit_ns=31.500\nwake_ns=4321.000\n"
                   "start_ns=54321.125\nhot_line_ns=0.375\nl3_line_ns=0.875\n"
                   "cold_line_ns=2.125\nremote_line_ns=0.000\n"
                   "kernel_call_ns=1234.500\nkernel_line_ns=4.250\n"
                   "near_measured_at=1795452139\nnear_eager_bytes=65536\n"
                   "near_part_bytes=4096\nnear_cell_from_bytes=0\nnear_piece_bytes=32768\n"
                   "near_owns_ahead=0\nnear_demotes=1\n"
                   "near_copies_in=0\nnear_copies_out=2\n"
                   "near_message_4k_ns=531.500\nnear_message_16k_ns=0.000\n"
                   "near_message_64k_ns=0.000\nnear_message_256k_ns=0.000\n"
                   "near_message_1024k_ns=66000.250\n"
                   "far_measured_at=0\nfar_eager_bytes=65536\n"
                   "far_part_bytes=8192\nfar_cell_from_bytes=2048\nfar_piece_bytes=32768\n"
                   "far_owns_ahead=1\nfar_demotes=1\n"
                   "far_copies_in=0\nfar_copies_out=0\n"
                   "far_message_4k_ns=0.000\nfar_message_16k_ns=0.000\n"
                   "far_message_64k_ns=0.000\nfar_message_256k_ns=0.000\n"
                   "far_message_1024k_ns=0.000\n"));
}

TEST_F(CalibrationFile, IsTheSameWhereDecimalsHaveAComma) {
  const std::string plain = stored();
  // A locale of that one property, made here: a small system has none to lend.
  dir_.write("comma.src",
             "comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point \"<U002C>\"\n"
             "thousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n");
  const std::string command = "localedef -c -f POSIX -i " + dir_.path() + "/comma.src " +
                              dir_.path() + "/comma >/dev/null 2>&1";
  [[maybe_unused]] const int warned = system(command.c_str());
  ScopedEnv locales("LOCPATH", dir_.path().c_str());
  if (setlocale(LC_NUMERIC, "comma") == nullptr) GTEST_SKIP() << "localedef makes no locale here";
  char number[16];
  snprintf(number, sizeof number, "%.1f", 1.5);
  EXPECT_STREQ(number, "1,5");
  EXPECT_EQ(stored(), plain);
  EXPECT_TRUE(load_calibration(path().c_str()));
  setlocale(LC_NUMERIC, "C");
}

TEST_F(CalibrationFile, TheLargestAndSmallestFiguresPass) {
  Measured measured = measured_figures();
  measured.figures.wake_ns = 1e9;
  measured.figures.hot_line_ns = 0.001;
  stored(measured);
  const auto loaded = load_calibration(path().c_str());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->figures.wake_ns, 1e9);
  EXPECT_EQ(loaded->figures.hot_line_ns, 0.001);
}

// What is not a time is stored as none.
TEST_F(CalibrationFile, RingsAreStoredWhateverTheirTimesAre) {
  for (const double odd : {-1.0, 1e10, HUGE_VAL, std::numeric_limits<double>::quiet_NaN()}) {
    Measured measured = measured_figures();
    measured.far.message_ns[2] = odd;
    stored(measured);
    const auto loaded = load_calibration(path().c_str());
    ASSERT_TRUE(loaded) << odd;
    EXPECT_EQ(loaded->far.message_ns[2], 0);
  }
}

TEST_F(CalibrationFile, WhatNobodyCanHaveMeasuredIsNotStored) {
  const std::string before = stored();
  for (const double bad : {-1.0, 0.0, 1e10, HUGE_VAL, std::numeric_limits<double>::quiet_NaN()}) {
    Measured measured = measured_figures();
    measured.figures.kernel_call_ns = bad;
    const Error error = store_calibration(path().c_str(), measured);
    EXPECT_EQ(error.code, Code::invalid) << bad;
    EXPECT_TRUE(mentions(error, "kernel_call_ns")) << error.sentence;
  }
  const Measured unmeasured;
  EXPECT_EQ(store_calibration(path().c_str(), unmeasured).code, Code::invalid);
  EXPECT_EQ(text_of(path()), before) << "the former file stays";
}

// The figures that a busy machine once gave, and that were believed for good.
TEST_F(CalibrationFile, WhatABusyMachineGaveIsNeitherStoredNorLoaded) {
  const std::string before = stored();
  Measured busy = measured_figures();
  busy.figures.hot_line_ns = busy.figures.l3_line_ns = busy.figures.cold_line_ns = 4.79;
  const Error error = store_calibration(path().c_str(), busy);
  EXPECT_EQ(error.code, Code::again);
  EXPECT_TRUE(mentions(error, "haul tune")) << error.sentence;
  EXPECT_EQ(text_of(path()), before) << "the former file stays";
  std::string lines = before.substr(0, before.find("checksum="));
  lines.replace(lines.find("ran_share=0.985"), 15, "ran_share=0.100");
  EXPECT_TRUE(mentions(refused(sealed(lines)), "busy machine"));
}

TEST_F(CalibrationFile, MissingIsAnErrorThatNobodyHearsOf) {
  ScopedEnv talkative("HAUL_LOG_LEVEL", "debug");
  reread_knobs();
  testing::internal::CaptureStderr();
  const auto result = load_calibration(path().c_str());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::io);
  EXPECT_EQ(result.error().sys_errno, ENOENT);
  EXPECT_TRUE(mentions(result.error(), "haul tune"));
}

TEST_F(CalibrationFile, CutShortAnywhereIsRefused) {
  const std::string whole = stored();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Error error = refused(whole.substr(0, size));
    EXPECT_EQ(error.code, Code::invalid);
    // Cut within "version=5" nothing else can be said; "version=" of fewer digits is no number.
    EXPECT_TRUE(mentions(error, "damaged")) << size << error.sentence;
    EXPECT_TRUE(mentions(error, "haul tune"));
  }
}

TEST_F(CalibrationFile, AnyFlippedBitIsRefused) {
  const std::string whole = stored();
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    std::string text = whole;
    text[byte] = static_cast<char>(text[byte] ^ (1 << byte % 8));
    refused(text);
  }
}

TEST_F(CalibrationFile, GarbageIsRefused) {
  const std::string whole = stored();
  refused("");
  refused(std::string(100, '\0'));
  refused("\xff\xfe\x00\x01");
  refused(whole + whole);
  refused(whole + "\n");
  refused(whole + std::string(1, '\0'));
  refused(whole + std::string(1 << 20, 'x'));
  refused(std::string(1 << 20, '\n'));
}

TEST_F(CalibrationFile, ALineThatIsWrongUnderARightChecksumIsRefused) {
  const std::string whole = stored();
  const std::string lines = whole.substr(0, whole.find("checksum="));
  ASSERT_EQ(sealed(lines), whole);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = lines;
    text.replace(text.find(from), from.size(), to);
    return sealed(text);
  };
  write(changed("0.375", "0.376"));
  EXPECT_TRUE(load_calibration(path().c_str())) << "the way of changing works";
  for (const char* bad :
       {"0.000", "-1.000", "0.37", "0.3750", "0,375", ".375", "0.", "nan", "inf", "1e3",
        "1000000000.001", "99999999999.000", " 0.375", "0.375 ", "0x1.000"}) {
    refused(changed("0.375", bad));
  }
  for (const char* bad : {"nan", "1000.001", "0.98", "-0.985", "99999999999.000"})
    refused(changed("0.985", bad));
  for (const char* bad : {"", "-1", "1.0", "1795452138123456", " 1795452138"})
    refused(changed("1795452138", bad));
  for (const char* bad : {"near_part_bytes=0", "near_part_bytes=1023", "near_part_bytes=32769",
                          "near_part_bytes=-1", "near_part_bytes=", "far_part_bytes=4096"})
    refused(changed("near_part_bytes=4096", bad));
  for (const char* bad : {"near_cell_from_bytes=8193", "near_cell_from_bytes=-1", ""})
    refused(changed("near_cell_from_bytes=0", bad));
  for (const char* bad : {"near_copies_out=3", "near_copies_out=vectors", ""})
    refused(changed("near_copies_out=2", bad));
  for (const char* bad : {"near_owns_ahead=2", "near_owns_ahead=true", ""})
    refused(changed("near_owns_ahead=0", bad));
  refused(changed("far_message_4k_ns=0.000", "far_message_4k_ns=1000000000.000"));
  refused(changed("hot_line_ns", "hot_line"));
  refused(changed("submit_ns=31.500\n", ""));
  refused(changed("submit_ns=31.500\n", "submit_ns=31.500\nsubmit_ns=31.500\n"));
  refused(changed("remote_line_ns=0.000\n", "remote_line_ns=0.000\nextra=1.000\n"));
  refused(changed("haul calibration\n", "haul calibration\r\n"));
}

TEST_F(CalibrationFile, OtherVersionsAndMachinesAreNamed) {
  const std::string whole = stored();
  std::string text = whole.substr(0, whole.find("checksum="));
  text.replace(text.find(hex(machine_key())), 16, hex(machine_key() ^ 1));
  EXPECT_TRUE(mentions(refused(sealed(text)), "another machine"));
  // Of another version only the first two lines are known.
  EXPECT_TRUE(mentions(refused("haul calibration\nversion=1\nwhatever\n"), "another version"));
  EXPECT_TRUE(mentions(refused("haul calibration\nversion=2\n"), "another version"));
  EXPECT_TRUE(mentions(refused("haul calibration\nversion=0\n"), "another version"));
  EXPECT_TRUE(mentions(refused("haul calibration\nversion=-1\n"), "damaged"));
}

TEST_F(CalibrationFile, ADirectoryInItsPlaceIsRefusedBothWays) {
  std::filesystem::create_directory(path());
  const auto loaded = load_calibration(path().c_str());
  ASSERT_FALSE(loaded);
  EXPECT_TRUE(mentions(loaded.error(), "remove the directory")) << loaded.error().sentence;
  const Error error = store_calibration(path().c_str(), measured_figures());
  EXPECT_EQ(error.code, Code::io);
  EXPECT_EQ(error.sys_errno, EISDIR);
  EXPECT_TRUE(mentions(error, "remove the directory")) << error.sentence;
}

TEST_F(CalibrationFile, AFifoOrADeviceInItsPlaceIsRefused) {
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_FALSE(load_calibration(path().c_str()));
  EXPECT_FALSE(load_calibration("/dev/zero"));
}

TEST_F(CalibrationFile, AStoreReplacesADamagedFile) {
  write("garbage");
  stored();
  EXPECT_TRUE(load_calibration(path().c_str()));
}

TEST_F(CalibrationFile, AStoreMakesItsDirectoryForThisUserAlone) {
  const std::string deep = dir_ / "cache/haul/file";
  ASSERT_EQ(store_calibration(deep.c_str(), measured_figures()).code, Code::ok);
  EXPECT_TRUE(load_calibration(deep.c_str()));
  struct stat info = {};
  ASSERT_EQ(stat((dir_ / "cache/haul").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(CalibrationFile, NoPermissionIsAnErrorWithARemedy) {
  if (geteuid() == 0) GTEST_SKIP() << "root may do everything";
  stored();
  ASSERT_EQ(chmod(path().c_str(), 0), 0);
  const auto loaded = load_calibration(path().c_str());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::permission);
  EXPECT_TRUE(mentions(loaded.error(), "HAUL_TUNE_CACHE")) << loaded.error().sentence;
  ASSERT_EQ(chmod(dir_.path().c_str(), 0500), 0);
  const Error error = store_calibration(path().c_str(), measured_figures());
  chmod(dir_.path().c_str(), 0700);
  EXPECT_EQ(error.code, Code::permission);
  EXPECT_TRUE(mentions(error, "HAUL_TUNE_CACHE")) << error.sentence;
}

TEST_F(CalibrationFile, AUselessFileIsForOthersToSpeakOf) {
  write("garbage");
  ScopedEnv talkative("HAUL_LOG_LEVEL", "debug");
  reread_knobs();
  testing::internal::CaptureStderr();
  const auto result = load_calibration(path().c_str());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_FALSE(result);
  EXPECT_TRUE(mentions(result.error(), "damaged")) << result.error().sentence;
}

// ---- where it lies ----

TEST_F(CalibrationFile, TheKnobNamesTheFile) {
  ScopedEnv knob("HAUL_TUNE_CACHE", "/some/file");
  ScopedEnv home("HOME", "/home/x");
  reread_knobs();
  char path[path_bytes];
  EXPECT_EQ(default_calibration_path(path, sizeof path).code, Code::ok);
  EXPECT_STREQ(path, "/some/file");
}

TEST_F(CalibrationFile, ElseXdgElseHome) {
  char path[path_bytes];
  const std::string name = "/haul/calibration-" + hex(machine_key());
  ScopedEnv home("HOME", "/home/x");
  EXPECT_EQ(default_calibration_path(path, sizeof path).code, Code::ok);
  EXPECT_EQ(path, "/home/x/.cache" + name);
  ScopedEnv xdg("XDG_CACHE_HOME", "/var/cache/x");
  EXPECT_EQ(default_calibration_path(path, sizeof path).code, Code::ok);
  EXPECT_EQ(path, "/var/cache/x" + name);
  for (const char* void_one : {"", "relative/path"}) {
    ScopedEnv bad("XDG_CACHE_HOME", void_one);
    EXPECT_EQ(default_calibration_path(path, sizeof path).code, Code::ok);
    EXPECT_EQ(path, "/home/x/.cache" + name);
  }
}

TEST_F(CalibrationFile, WithoutAHomeThereIsNoPlace) {
  char path[path_bytes] = "stale";
  for (const char* home : {static_cast<const char*>(nullptr), "", "relative"}) {
    ScopedEnv bad("HOME", home);
    const Error error = default_calibration_path(path, sizeof path);
    EXPECT_EQ(error.code, Code::not_supported);
    EXPECT_TRUE(mentions(error, "HAUL_TUNE_CACHE"));
    EXPECT_STREQ(path, "");
  }
}

TEST_F(CalibrationFile, TooLongAPathIsAnError) {
  char path[path_bytes];
  ScopedEnv home("HOME", ("/" + std::string(600, 'x')).c_str());
  const Error error = default_calibration_path(path, sizeof path);
  EXPECT_EQ(error.code, Code::invalid);
  EXPECT_TRUE(mentions(error, "HAUL_TUNE_CACHE"));
  EXPECT_STREQ(path, "");
  EXPECT_NE(default_calibration_path(nullptr, 0).code, Code::ok);
}

// ---- who may measure ----

TEST(CalibrationLockTest, OneHolderAtATime) {
  {
    const CalibrationLock first;
    if (!first.held()) GTEST_SKIP() << "another process of this user measures right now";
    const CalibrationLock second;
    EXPECT_FALSE(second.held());
  }
  const CalibrationLock third;
  EXPECT_TRUE(third.held());
}

// The child would inherit a lock of which it does not know.
TEST(CalibrationLockTest, IsNotTakenWhileAForkIsUnderWay) {
  begin_fork(60'000'000'000);
  {
    const CalibrationLock amid;
    EXPECT_FALSE(amid.held());
  }
  end_fork();
}

TEST(CalibrationLockTest, AKilledHolderLetsGo) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const CalibrationLock lock;
    [[maybe_unused]] const ssize_t put = write(ready[1], lock.held() ? "y" : "n", 1);
    for (;;) pause();
  }
  char answer = '?';
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  if (answer == 'y') {
    const CalibrationLock lock;
    EXPECT_FALSE(lock.held());
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  if (answer != 'y') GTEST_SKIP() << "another process of this user measures right now";
  const CalibrationLock lock;
  EXPECT_TRUE(lock.held());
}

}  // namespace
}  // namespace haul::tune
