#include "tests/atomic/lock_referee.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tools/failure.hpp"

namespace atomic_test {
namespace {

using haul::bench::Inside;
using haul::tools::CommandFailure;

constexpr std::uint64_t ms = 1'000'000;
// Nobody may be in one phase for longer, unless it is stopped: a hundred leases.
constexpr std::uint64_t patience_ns = 10'000 * ms;
constexpr int member_arguments = 10;

void sleep_ns(std::uint64_t ns) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

std::string ended_by(int status) {
  return WIFSIGNALED(status) ? " by signal " + std::to_string(WTERMSIG(status))
                             : " with status " + std::to_string(WEXITSTATUS(status));
}

std::size_t index_of(Phase phase) {
  return static_cast<std::size_t>(phase);
}

}  // namespace

Referee::Referee(const Star& star, const LockFacts& lock, std::string responder,
                 std::string member_word)
    : star_(star),
      lock_(lock),
      responder_(std::move(responder)),
      member_word_(std::move(member_word)),
      descriptor_(make_board()),
      board_(map_board(descriptor_)),
      random_(lock.seed),
      processes_(lock.members) {
  for (unsigned slot = 0; slot < lock.members; ++slot) start(slot);
}

Referee::~Referee() {
  for (const Process& process : processes_) {
    if (process.pid == 0) continue;
    kill(process.pid, SIGKILL);
    waitpid(process.pid, nullptr, 0);
  }
  close(descriptor_);
}

void Referee::start(unsigned slot) {
  Process& process = processes_[slot];
  char home[160];
  if (haul_atomic_window_format(&lock_.home, home, sizeof home) != 0)
    throw CommandFailure("no name of the home");
  const std::string words[member_arguments] = {"atomic_lock_soak",
                                               member_word_,
                                               std::to_string(slot),
                                               std::to_string(process.life++),
                                               std::to_string(descriptor_),
                                               Star::responder(responder_, Star::address(slot)),
                                               home,
                                               std::to_string(lock_.members),
                                               std::to_string(lock_.lease_ns),
                                               std::to_string(lock_.seed * 2 + lock_.guarded)};
  const char* arguments[member_arguments + 1] = {};
  for (int i = 0; i < member_arguments; ++i) arguments[i] = words[i].c_str();
  board_->slots[slot].phase.store(Phase::starting, std::memory_order_release);
  process.until_ns = 0;
  process.progress_ns = monotonic_ns();
  const Inside inside(star_.host(slot));
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execv("/proc/self/exe", const_cast<char**>(arguments));
    _exit(127);
  }
  if (pid < 0) throw CommandFailure("starting a member failed");
  process.pid = pid;
}

int Referee::member(int argc, char** argv) {
  if (argc != member_arguments) return 2;
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  MemberFacts facts;
  facts.slot = static_cast<unsigned>(number(2));
  facts.life = static_cast<unsigned>(number(3));
  facts.board = static_cast<int>(number(4));
  facts.responder = argv[5];
  if (haul_atomic_window_parse(argv[6], &facts.lock.home) != 0) return 2;
  facts.lock.members = static_cast<unsigned>(number(7));
  facts.lock.lease_ns = number(8);
  facts.lock.seed = number(9) / 2;
  facts.lock.guarded = number(9) % 2 != 0;
  return live_as_member(facts);
}

unsigned Referee::out() const {
  unsigned count = 0;
  for (const Process& process : processes_) count += process.until_ns != 0;
  return count;
}

void Referee::bring_back(std::uint64_t now_ns) {
  for (unsigned slot = 0; slot < processes_.size(); ++slot) {
    Process& process = processes_[slot];
    if (process.until_ns == 0 || now_ns < process.until_ns) continue;
    if (process.pid == 0) {
      start(slot);
    } else {
      kill(process.pid, SIGCONT);
      process.until_ns = 0;
      process.progress_ns = now_ns;
    }
  }
}

// Kills or stops one, in the phase that was chosen if it comes to that soon.
void Referee::trouble() {
  static constexpr Phase wanted[] = {Phase::waiting, Phase::waiting, Phase::holding,
                                     Phase::holding, Phase::holding, Phase::releasing};
  const auto slot = static_cast<unsigned>(below(processes_.size()));
  const Phase phase = wanted[below(std::size(wanted))];
  const bool dies = below(5) < 2;
  const std::uint64_t later_ns = below(5 * ms);  // in its phase
  const bool can = processes_[slot].until_ns == 0 && out() + 2 < processes_.size();
  if (!can) return;
  const std::uint64_t until_ns = monotonic_ns() + 100 * ms;
  const auto& now = board_->slots[slot].phase;
  while (now.load(std::memory_order_acquire) != phase && monotonic_ns() < until_ns) {
    sleep_ns(20'000);
  }
  if (phase == Phase::waiting) sleep_ns(later_ns);
  dies ? kill_one(slot) : stop_one(slot);
}

void Referee::kill_one(unsigned slot) {
  Process& process = processes_[slot];
  kill(process.pid, SIGKILL);
  waitpid(process.pid, nullptr, 0);
  process.pid = 0;
  process.until_ns = monotonic_ns() + 1 + below(2 * lock_.lease_ns);
  ++killed_[index_of(board_->slots[slot].phase.load(std::memory_order_acquire))];
}

void Referee::stop_one(unsigned slot) {
  Process& process = processes_[slot];
  kill(process.pid, SIGSTOP);
  process.until_ns = monotonic_ns() + lock_.lease_ns / 4 + below(3 * lock_.lease_ns);
  int status = 0;
  waitpid(process.pid, &status, WUNTRACED);
  if (!WIFSTOPPED(status)) {
    process.pid = 0;
    throw CommandFailure(tell(slot) + "; it ended" + ended_by(status));
  }
  ++stopped_[index_of(board_->slots[slot].phase.load(std::memory_order_acquire))];
}

std::string Referee::tell(unsigned slot) const {
  const Slot& its = board_->slots[slot];
  const std::string complaint = its.complaint;
  return "member " + std::to_string(slot) + ", " + phase_names[index_of(its.phase.load())] +
         (complaint.empty() ? "" : ": " + complaint);
}

// All go on, and none has ended by itself.
void Referee::watch(std::uint64_t now_ns) {
  for (unsigned slot = 0; slot < processes_.size(); ++slot) {
    Process& process = processes_[slot];
    if (process.pid == 0 || process.until_ns != 0) continue;
    int status = 0;
    if (waitpid(process.pid, &status, WNOHANG) != 0) {
      process.pid = 0;
      throw CommandFailure(tell(slot) + "; it ended" + ended_by(status));
    }
    const std::uint64_t progress = board_->slots[slot].progress.load(std::memory_order_relaxed);
    if (progress != process.progress) {
      process.progress = progress;
      process.progress_ns = now_ns;
    } else if (now_ns - process.progress_ns > patience_ns) {
      throw CommandFailure(tell(slot) + ", hangs");
    }
  }
}

void Referee::run(std::uint64_t seconds, std::uint64_t trouble_ms) {
  const std::uint64_t until_ns = monotonic_ns() + seconds * 1000 * ms;
  std::uint64_t trouble_ns = trouble_ms == 0 ? until_ns : 0;
  for (std::uint64_t now_ns = monotonic_ns(); now_ns < until_ns; now_ns = monotonic_ns()) {
    watch(now_ns);
    bring_back(now_ns);
    if (now_ns >= trouble_ns) {
      trouble();
      trouble_ns = monotonic_ns() + below(2 * trouble_ms * ms);
    }
    sleep_ns(ms);
  }
  end();
}

void Referee::end() {
  board_->stop.store(1, std::memory_order_release);
  const std::uint64_t until_ns = monotonic_ns() + patience_ns;
  for (unsigned slot = 0; slot < processes_.size(); ++slot) {
    Process& process = processes_[slot];
    if (process.pid == 0) continue;  // dead: so it stays
    if (process.until_ns != 0) kill(process.pid, SIGCONT);
    int status = 0;
    while (waitpid(process.pid, &status, WNOHANG) == 0) {
      if (monotonic_ns() > until_ns) throw CommandFailure(tell(slot) + ", does not end");
      sleep_ns(ms);
    }
    process.pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      throw CommandFailure(tell(slot) + "; it ended" + ended_by(status));
  }
}

}  // namespace atomic_test
