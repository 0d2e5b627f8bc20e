// The table functions x situations: every function of haul.h and atomic.h is called in every
// situation at the process's edge, each time in a process of its own, under a watchdog.
//   edges_table [--jobs N] [FUNCTION[/SITUATION]...]
// One line for each cell that fails; exit 1 then.
#include <algorithm>
#include <deque>
#include <thread>

#include "situations.hpp"

#if defined(__SANITIZE_ADDRESS__)
// A cell leaves behind what it was given.
extern "C" __attribute__((used)) const char* __asan_default_options() {
  return "detect_leaks=0";
}
#endif

namespace edges {
namespace {

// A step that takes longer hangs.
constexpr unsigned hang_s = sanitizer ? 120 : 20;

double seconds_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Cell {
 public:
  Cell(const Function& row, const Situation& column) : function(row), situation(column) {}

  void start() {
    report_ = static_cast<Report*>(
        mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    output_ = memfd_create("cell", MFD_CLOEXEC);
    pid_ = fork();
    if (pid_ == 0) run();
    since_ = seconds_now();
  }

  // Looks after it; true when it has ended.
  bool ended() {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == 0) {
      if (report_->changes != changes_) {
        changes_ = report_->changes;
        since_ = seconds_now();
      }
      if (seconds_now() - since_ < hang_s) return false;
      hangs_ = true;
      kill(-pid_, SIGKILL);
      waitpid(pid_, &status, 0);
    }
    kill(-pid_, SIGKILL);  // its peer and its service
    judge(status);
    munmap(report_, sizeof(Report));
    close(output_);
    return true;
  }

  std::string name() const { return std::string(function.name) + "/" + situation.name; }

  const Function& function;
  const Situation& situation;
  std::string failure;  // "": none
  int outcome = 0;

 private:
  [[noreturn]] void run() {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(output_, 1);
    dup2(output_, 2);
    close_range(3, ~0u, 0);
    World world(function, *report_, function.service || (situation.service && !function.atomic));
    try {
      situation.run(world);
    } catch (const Refused& refused) {
      std::fprintf(stderr, "an argument cannot be made: %s (%s)\n", haul_strerror(refused.code),
                   haul_last_error());
      _exit(1);
    }
    world.stage("exit()");
    std::exit(good_exit);
  }

  void judge(int status) {
    outcome = report_->outcome;
    if (!hangs_ && WIFEXITED(status) && WEXITSTATUS(status) == good_exit) return;
    report_->stage[sizeof report_->stage - 1] = 0;
    if (hangs_) {
      failure = "hangs";
    } else if (WIFSIGNALED(status)) {
      failure = std::string("was ended by ") + strsignal(WTERMSIG(status));
    } else {
      failure = "failed (exit " + std::to_string(WEXITSTATUS(status)) + ")";
    }
    failure += std::string(" at: ") + report_->stage;
    char text[1500];
    const ssize_t length = pread(output_, text, sizeof text, 0);
    if (length <= 0) return;
    std::string said(text, static_cast<std::size_t>(length));
    if (!sanitizer) std::replace(said.begin(), said.end(), '\n', ' ');
    failure += ": " + said;
  }

  Report* report_ = nullptr;
  int output_ = -1;
  pid_t pid_ = -1;
  unsigned changes_ = 0;
  double since_ = 0;
  bool hangs_ = false;
};

bool wanted(const Cell& cell, const std::vector<std::string>& names) {
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return name == cell.name() || name == cell.function.name || name == cell.situation.name;
         });
}

void run_all(std::deque<Cell>& cells, std::size_t jobs) {
  std::vector<Cell*> running;
  for (std::size_t next = 0; next < cells.size() || !running.empty();) {
    while (running.size() < jobs && next < cells.size()) {
      cells[next].start();
      running.push_back(&cells[next++]);
    }
    running.erase(
        std::remove_if(running.begin(), running.end(), [](Cell* cell) { return cell->ended(); }),
        running.end());
    usleep(1000);
  }
}

// haul_tune() may find the machine too busy to be measured: in one call, and not in another.
bool same_answer(const Cell& cell, int ordinary) {
  return cell.outcome == ordinary || (std::strcmp(cell.function.name, "haul_tune") == 0 &&
                                      (cell.outcome == HAUL_EAGAIN || ordinary == HAUL_EAGAIN));
}

int run(std::size_t jobs, const std::vector<std::string>& names) {
  std::deque<Cell> cells;
  // What takes longest comes first, and all have an ordinary call to be compared with.
  for (auto situation = situations().rbegin(); situation != situations().rend(); ++situation) {
    for (const Function& function : functions()) {
      if (!situation->applies(function) || (sanitizer && situation->not_sanitized != nullptr))
        continue;
      cells.emplace_back(function, *situation);
      if (!wanted(cells.back(), names)) cells.pop_back();
    }
  }
  run_all(cells, jobs);
  std::map<std::string, int> plain;
  for (const Cell& cell : cells) {
    if (std::strcmp(cell.situation.name, "plain") == 0) plain[cell.function.name] = cell.outcome;
  }
  unsigned failed = 0;
  for (Cell& cell : cells) {
    const auto ordinary = plain.find(cell.function.name);
    if (cell.failure.empty() && cell.situation.as_plain && ordinary != plain.end() &&
        !same_answer(cell, ordinary->second)) {
      cell.failure = std::string("says \"") + haul_strerror(cell.outcome) +
                     "\" where an ordinary call says \"" + haul_strerror(ordinary->second) + "\"";
    }
    if (cell.failure.empty()) continue;
    ++failed;
    std::printf("FAILED %s: %s, %s: %s\n", cell.name().c_str(), cell.function.name,
                cell.situation.words, cell.failure.c_str());
  }
  for (const Situation& situation : situations()) {
    if (sanitizer && situation.not_sanitized != nullptr)
      std::printf("left out: %s: %s\n", situation.words, situation.not_sanitized);
  }
  std::printf("%zu functions, %zu situations, %zu calls: %u failed\n", functions().size(),
              situations().size(), cells.size(), failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace edges

int main(int argc, char** argv) {
  std::size_t jobs = 4 * std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--jobs") == 0 && i + 1 < argc)
      jobs = static_cast<std::size_t>(std::max(1, std::atoi(argv[++i])));
    else
      names.push_back(argv[i]);
  }
  return edges::run(jobs, names);
}
