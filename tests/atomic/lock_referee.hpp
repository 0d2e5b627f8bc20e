// Starts the members of the lock soak, kills and stops some of them, and sees that none hangs. What
// it does is told by the seed, at which moment of a member's phase is not. Failures are
// tools::CommandFailure; the members end with it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/atomic/lock_board.hpp"
#include "tests/atomic/lock_member.hpp"
#include "tests/atomic/lock_star.hpp"

namespace atomic_test {

class Referee {
 public:
  // `member_word`: what this program's first argument is in a member.
  Referee(const Star& star, const LockFacts& lock, std::string responder, std::string member_word);
  ~Referee();
  Referee(const Referee&) = delete;
  Referee& operator=(const Referee&) = delete;

  // Troubles one of them every so many ms (0: none).
  void run(std::uint64_t seconds, std::uint64_t trouble_ms);
  const Board& board() const { return *board_; }
  // How many, by the phase they were in.
  using Phases = std::array<unsigned, static_cast<std::size_t>(Phase::ended) + 1>;
  const Phases& killed() const { return killed_; }
  const Phases& stopped() const { return stopped_; }

  // main() of a member.
  static int member(int argc, char** argv);

 private:
  struct Process {
    pid_t pid = 0;               // 0: none
    unsigned life = 0;           // of its slot
    std::uint64_t until_ns = 0;  // stopped, or dead, until then; 0: neither
    std::uint64_t progress = 0, progress_ns = 0;
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  unsigned out() const;
  void start(unsigned slot);
  void bring_back(std::uint64_t now_ns);
  void trouble();
  void kill_one(unsigned slot);
  void stop_one(unsigned slot);
  void watch(std::uint64_t now_ns);
  void end();
  std::string tell(unsigned slot) const;

  const Star& star_;
  const LockFacts lock_;
  const std::string responder_, member_word_;
  const int descriptor_;
  const std::shared_ptr<Board> board_;
  std::mt19937_64 random_;
  std::vector<Process> processes_;
  Phases killed_{}, stopped_{};
};

}  // namespace atomic_test
