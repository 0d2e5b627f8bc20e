// A lock whose members die and are paused, on a network that loses, repeats and reorders.
//   atomic_lock_soak [--seconds N] [--seed S] [--responder poll|spin|block|xdp-skb] [--members K]
//     [--lease MS] [--trouble MS] [--drop D] [--duplicate D] [--reorder D] [--control]
// K processes (3 to 5), each in a host of its own, contend for one lock (D per mille of the packets
// are lost ... on the way, 50 if not said), and whoever has it adds 1 to a guarded word at the
// home. One every --trouble ms (0: none) is killed and started again, or stopped for up to three
// leases, while it waits or holds. No two may have the lock in one lease, tokens must grow, each
// value of the word be written once, nobody wait for good, and the lock be there to be had at the
// end.
// --control: nobody uses tokens, which must be found out. Exits with 77 where it cannot be run.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "tests/atomic/lock_check.hpp"
#include "tests/atomic/lock_member.hpp"
#include "tests/atomic/lock_referee.hpp"
#include "tests/atomic/soak_server.hpp"
#include "tools/failure.hpp"

namespace {

using namespace atomic_test;
using haul::bench::Inside;
using haul::tools::CommandFailure;

constexpr int skipped = 77;
constexpr char member_word[] = "--member";

struct Plan {
  std::uint64_t seconds = 10, trouble_ms = 100;
  LockFacts lock;
  std::string responder = "block";
  FaultRates rates{50, 50, 50};
  bool control = false;
};

[[noreturn]] void usage(const char* word) {
  std::fprintf(
      stderr, "atomic_lock_soak: '%s' is no option, or lacks its value; see lock_soak.cpp\n", word);
  std::exit(2);
}

Plan read_plan(int argc, char** argv) {
  Plan plan;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--control") {
      plan.control = true;
      plan.lock.guarded = false;
      continue;
    }
    if (i + 1 == argc) usage(argv[i]);
    const char* value = argv[++i];
    const auto number = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
    if (name == "--seconds")
      plan.seconds = number;
    else if (name == "--seed")
      plan.lock.seed = number;
    else if (name == "--responder")
      plan.responder = value;
    else if (name == "--members")
      plan.lock.members = number;
    else if (name == "--lease")
      plan.lock.lease_ns = number * std::uint64_t{1'000'000};
    else if (name == "--trouble")
      plan.trouble_ms = number;
    else if (name == "--drop")
      plan.rates.drop = number;
    else if (name == "--duplicate")
      plan.rates.duplicate = number;
    else if (name == "--reorder")
      plan.rates.reorder = number;
    else
      usage(argv[i - 1]);
  }
  if (plan.lock.members < 3 || plan.lock.members > Board::most_members) {
    usage("--members (3 to 5)");
  }
  return plan;
}

unsigned long long show(std::uint64_t number) {
  return number;
}

// The lock must be there to be had, whoever held it last. Stamped with the token, the word stays
// what it is.
LockEnd end_of(const Plan& plan, const Star& star) {
  const Inside inside(star.home());
  LockHandle handle(plan.lock, "block:" + Star::home_address());
  const std::uint64_t patience_ns = 50 * plan.lock.lease_ns;
  LockEnd end;
  must_do(haul_atomic_lock_acquire(handle.lock(), patience_ns, &end.token),
          "acquiring the lock at last");
  must_do(handle.run(HAUL_ATOMIC_READ, end.token, 0, &end.value), "reading the word at last");
  must_do(haul_atomic_lock_release(handle.lock()), "releasing the lock at last");
  return end;
}

std::uint64_t sum_of(const Board& board, std::atomic<std::uint64_t> LockTally::*counter) {
  std::uint64_t sum = 0;
  for (const Slot& slot : board.slots) sum += (slot.tally.*counter).load();
  return sum;
}

void tell(const Plan& plan, const Star& star, const Referee& referee, const LockVerdict& verdict) {
  const Board& board = referee.board();
  std::printf("%s: %u members, lease %llu ms, %llu s (--seed %llu)\n", plan.responder.c_str(),
              plan.lock.members, show(plan.lock.lease_ns / 1'000'000), show(plan.seconds),
              show(plan.lock.seed));
  std::printf("  killed");
  for (std::size_t i = 0; i < referee.killed().size(); ++i) {
    std::printf(" %u %s%s", referee.killed()[i], phase_names[i],
                i + 1 == referee.killed().size() ? "; stopped" : ",");
  }
  for (std::size_t i = 0; i < referee.stopped().size(); ++i) {
    std::printf(" %u %s%s", referee.stopped()[i], phase_names[i],
                i + 1 == referee.stopped().size() ? "\n" : ",");
  }
  const auto sum = [&](std::atomic<std::uint64_t> LockTally::*counter) {
    return show(sum_of(board, counter));
  };
  std::printf(
      "  held %llu times: handed on %llu, taken over %llu; requeued %llu, forced %llu, skipped "
      "%llu, gave up %llu, renewed %llu, lost %llu (%llu unnoticed), reopened %llu\n",
      show(verdict.holds), sum(&LockTally::handed), sum(&LockTally::taken_over),
      sum(&LockTally::requeued), sum(&LockTally::forced), sum(&LockTally::skipped),
      sum(&LockTally::gave_up), sum(&LockTally::renewed), sum(&LockTally::lost),
      sum(&LockTally::unnoticed), sum(&LockTally::reopened));
  std::printf("  longest wait %.0f ms; increments: %llu done, %llu unknown, %llu stale\n",
              static_cast<double>(verdict.longest_wait_ns) / 1e6, show(verdict.done),
              show(verdict.unknown), show(verdict.stale));
  const BadCable::Counts counts = star.counts();
  std::printf(
      "  packets: %llu, lost %llu, sent twice %llu at once and %llu later, overtaken %llu\n",
      show(counts[FAULTS_SEEN]), show(counts[FAULTS_DROPPED]), show(counts[FAULTS_DUPLICATED]),
      show(counts[FAULTS_DUPLICATED_LATE]), show(counts[FAULTS_KEPT]));
}

bool run(Plan plan, const Star& star) {
  const auto server = serve(star.home(), star.responder(plan.responder, Star::home_address()),
                            plan.lock.home_bytes());
  plan.lock.home = server->name();
  Referee referee(star, plan.lock, plan.responder, member_word);
  referee.run(plan.seconds, plan.trouble_ms);
  const LockEnd end = end_of(plan, star);
  LockVerdict verdict = check_lock(referee.board(), end);
  const bool is_xdp = plan.responder.rfind("xdp-", 0) == 0;
  if (verdict.wrong.empty() && is_xdp && sum_of(referee.board(), &LockTally::by_program) == 0) {
    verdict.wrong = "no reply was heard by an XDP program";
  }
  tell(plan, star, referee, verdict);
  const bool right = verdict.wrong.empty();
  if (plan.control) {
    std::printf("  the control was %s%s\n",
                right ? "NOT found out" : "found out: ", verdict.wrong.c_str());
    return !right;
  }
  std::printf("  %s%s\n", right ? "one holder at a time" : "WRONG: ", verdict.wrong.c_str());
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], member_word) == 0) return Referee::member(argc, argv);
  const Plan plan = read_plan(argc, argv);
  std::unique_ptr<Star> star;
  try {
    star = std::make_unique<Star>(plan.lock.members, plan.rates);
  } catch (const CommandFailure& failure) {
    std::printf("skipped: %s\n", failure.what());
    return skipped;
  }
  try {
    return run(plan, *star) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const CommandFailure& failure) {
    std::fprintf(stderr, "atomic_lock_soak: --seed %llu: %s\n", show(plan.lock.seed),
                 failure.what());
    return EXIT_FAILURE;
  }
}
