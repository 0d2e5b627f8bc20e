// What the background makes of a stored calibration, each time in a process of its own. (That it
// measures, and what it makes of a busy machine, is tests/edges/busy_machine_test.cpp's.)
#include "tune/background.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/knobs.hpp"
#include "base/os/os.hpp"
#include "base/thread/aide.hpp"
#include "gate/gate.hpp"
#include "tune/calibration_file.hpp"
#include "unit/base/temp_dir.hpp"

namespace haul::tune {
namespace {

constexpr double mark_ns = 4321;  // as the price of a wake it tells these figures from others

class Background : public testing::Test {
 protected:
  // Figures that were stored so long ago.
  static Measured stored_before(std::uint64_t age_s) {
    Measured measured;
    measured.figures.measured = true;
    measured.figures.wake_ns = mark_ns;
    measured.quality = Quality{os::unix_time_s() - age_s, 1, 0, 0};
    return measured;
  }

  // Stores them, has them loaded and taken into use; what was said on the way.
  std::string said_of(const Measured& measured) {
    const std::string file = dir_ / "figures", said = dir_ / "said";
    EXPECT_EQ(store_calibration(file.c_str(), measured).code, Code::ok);
    const pid_t child = fork();
    if (child == 0) {
      setenv("HAUL_TUNE_CACHE", file.c_str(), 1);
      setenv("HAUL_LOG_LEVEL", "debug", 1);
      reread_knobs();
      dup2(open(said.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), STDERR_FILENO);
      os::make_aide(os::Aide::tune);
      load_stored();
      plan::Inputs inputs;
      for (int turn = 0; turn < 400 && inputs.calibration.wake_ns != mark_ns; ++turn) {
        usleep(50'000);
        fill_inputs(&inputs);
      }
      usleep(300'000);  // and thinks about them
      _exit(inputs.calibration.wake_ns == mark_ns ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    std::ifstream text(said);
    return "said: " + std::string(std::istreambuf_iterator<char>(text), {});
  }

 private:
  test::TempDir dir_;
};

TEST_F(Background, StoredFiguresAreTakenIntoUse) {
  EXPECT_EQ(said_of(stored_before(60)), "said: ");
}

TEST_F(Background, OldOnesAreTakenIntoUseAndMeasuredAnew) {
  EXPECT_NE(said_of(stored_before(31u * 24 * 3600)).find("more than 30 days old"),
            std::string::npos);
}

TEST_F(Background, ThoseOfAnotherSpeedLikewise) {
  Measured measured = stored_before(3600);
  measured.figures.hot_line_ns = 1000;
  measured.figures.l3_line_ns = 2000;
  measured.figures.cold_line_ns = 4000;
  EXPECT_NE(said_of(measured).find("does not copy as fast"), std::string::npos);
}

}  // namespace
}  // namespace haul::tune
