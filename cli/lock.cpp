// haul lock: holds a lock of several hosts while a command runs, or measures it.
#include <fmt/format.h>
#include <haul/atomic.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <memory>

#include "bench/failure.hpp"
#include "bench/units.hpp"
#include "cli/atomic_handles.hpp"
#include "cli/run_program.hpp"
#include "cli/tree.hpp"

namespace haul::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Choices {
  std::string action, home, node = "block";
  std::string offset = "0";
  double lease_s = 1, timeout_s = -1, seconds = 3;
  bool try_once = false;
  std::vector<std::string> command;
};

// One member of the lock whose directory lies in the home window.
class Member {
 public:
  explicit Member(const Choices& choices)
      : node_(choices.node, {}), window_(node_, HAUL_LOCK_MEMBER_BYTES) {
    haul_lock_place home{};
    if (haul_window_parse(choices.home.c_str(), &home.window) != 0) {
      throw UsageError(haul_atomic_last_error());
    }
    home.offset = std::stoull(choices.offset);
    // All members know the home by the same name, so they agree on how many there may be.
    const std::uint64_t bytes = home.window.bytes;
    const std::uint64_t room = bytes > home.offset ? bytes - home.offset : 0;
    if (room < HAUL_LOCK_DIRECTORY_BYTES(1)) {
      throw UsageError(
          fmt::format("a window of {} bytes has no room for a lock at {}; serve one of "
                      "4K or more",
                      bytes, home.offset));
    }
    haul_lock_options options{};
    options.size = sizeof options;
    options.rank = HAUL_LOCK_ANY_RANK;
    options.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        HAUL_LOCK_MAX_MEMBERS, (room - HAUL_LOCK_DIRECTORY_BYTES(0)) / 128));
    options.home = &home;
    options.lease_ns = static_cast<std::uint64_t>(choices.lease_s * 1e9);
    require_atomic(haul_lock_open(node_.handle(), window_.handle(), &options, &lock_));
  }
  ~Member() { haul_lock_close(lock_); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  haul_lock* handle() const { return lock_; }

 private:
  AtomicNode node_;
  AtomicWindow window_;
  haul_lock* lock_ = nullptr;
};

std::uint64_t timeout_of(const Choices& choices) {
  return choices.timeout_s < 0 ? UINT64_MAX : static_cast<std::uint64_t>(choices.timeout_s * 1e9);
}

// Waits for the program's end, renewing the lease meanwhile. False: the lock was lost on the way.
bool hold_until_end(const Member& member, pid_t pid, double lease_s, int* status) {
  const auto part_ns = static_cast<long>(std::min(lease_s / 4, 1.0) * 1e9);
  const timespec part{part_ns / 1'000'000'000, part_ns % 1'000'000'000};
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGCHLD, SIGTERM, SIGHUP}) sigaddset(&wanted, signal);
  bool held = true;
  for (;;) {
    if (waitpid(pid, status, WNOHANG) == pid) return held;
    const int signal = sigtimedwait(&wanted, nullptr, &part);
    if (signal == SIGTERM || signal == SIGHUP) kill(pid, signal);
    if (held && haul_lock_renew(member.handle()) != 0) {
      held = false;
      fmt::print(stderr, "haul: {}\n", haul_atomic_last_error());
    }
  }
}

void hold(const Choices& choices) {
  if (choices.command.empty()) {
    throw UsageError("name a command behind --, as in `haul lock hold NAME -- make install`");
  }
  // Before the node's threads. Ctrl-C is the command's business.
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : {SIGCHLD, SIGTERM, SIGHUP}) sigaddset(&blocked, signal);
  sigset_t before;
  sigprocmask(SIG_BLOCK, &blocked, &before);
  const Member member(choices);
  std::uint64_t token = 0;
  require_atomic(choices.try_once
                     ? haul_lock_try(member.handle(), &token)
                     : haul_lock_acquire(member.handle(), timeout_of(choices), &token));
  sigprocmask(SIG_SETMASK, &before, nullptr);
  const pid_t pid = start_program(choices.command, {{"HAUL_LOCK_TOKEN", fmt::format("{}", token)}});
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  std::signal(SIGINT, SIG_IGN);
  int status = 0;
  const bool held = hold_until_end(member, pid, choices.lease_s, &status);
  const int released = haul_lock_release(member.handle());
  if (!held || released == HAUL_ESTALE) {
    throw bench::Failure(
        "the lock was lost while the command ran, so another may have held it, too; give a longer "
        "--lease");
  }
  require_atomic(released);
  throw ExitStatus{shell_status(status)};
}

void measure(const Choices& choices) {
  if (!choices.command.empty()) throw UsageError("`haul lock bench` runs no command");
  const Member member(choices);
  std::vector<double> acquires_ns, releases_ns;
  const auto ns_since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  };
  const Clock::time_point begin = Clock::now();
  while (ns_since(begin) < choices.seconds * 1e9) {
    const Clock::time_point one = Clock::now();
    require_atomic(haul_lock_acquire(member.handle(), timeout_of(choices), nullptr));
    acquires_ns.push_back(ns_since(one));
    const Clock::time_point two = Clock::now();
    require_atomic(haul_lock_release(member.handle()));
    releases_ns.push_back(ns_since(two));
  }
  const double all_s = ns_since(begin) / 1e9;
  const auto quantile = [](std::vector<double>& all, double share) {
    std::sort(all.begin(), all.end());
    return bench::show_ns(
        all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))]);
  };
  haul_lock_counts counts{};
  require_atomic(haul_lock_stats(member.handle(), &counts));
  fmt::print("{} acquisitions in {:.1f} s, {:.0f} a second; {} of them granted by another member\n",
             acquires_ns.size(), all_s, static_cast<double>(acquires_ns.size()) / all_s,
             counts.handed);
  fmt::print("acquire: median {}, 99 % within {}\n", quantile(acquires_ns, 0.5),
             quantile(acquires_ns, 0.99));
  fmt::print("release: median {}, 99 % within {}\n", quantile(releases_ns, 0.5),
             quantile(releases_ns, 0.99));
}

std::string check_offset(const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 15 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  return digits && std::stoull(text) % 8 == 0 ? "" : fmt::format("'{}' is no multiple of 8", text);
}

}  // namespace

void add_lock(Tree& tree) {
  CLI::App& app = tree.command(
      "lock", "Hold a lock of several hosts while a command runs, or measure it",
      "haul lock hold NAME -- make install waits for the lock at home in the window NAME (a zeroed "
      "one, as `haul atomic serve` makes it), holds it while the command runs, and ends as that "
      "does. First come, first served. Each member serves a window of its own meanwhile; the home "
      "keeps their names. A member that is killed or stopped loses the lock after --lease seconds; "
      "HAUL_LOCK_TOKEN in the command's environment is the fencing token.\n"
      "haul lock bench NAME acquires and releases it for a while, and tells how long that takes; "
      "several at once contend.");
  auto choices = std::make_shared<Choices>();
  tree.choice(app, "action", choices->action, {"hold", "bench"}, "What to do")->required();
  app.add_option("home", choices->home, "The name of the lock's window")->type_name("")->required();
  app.add_option("--offset", choices->offset, "Where the lock lies in the window (default 0)")
      ->type_name("BYTES")
      ->check(check_offset, "");
  app.add_option("--node", choices->node,
                 "Who serves this member's window: block (default), block:ADDRESS, spin, poll or "
                 "xdp:IFACE")
      ->type_name("NODE");
  app.add_option("--lease", choices->lease_s,
                 "How long a silent holder keeps the lock; the same for all members (default 1)")
      ->type_name("SECONDS")
      ->check(check_between(0.01, 3600.0), "");
  app.add_option("--timeout", choices->timeout_s, "Give up after so long (default: never)")
      ->type_name("SECONDS")
      ->check(check_between(0.0, 1e9), "");
  app.add_flag("--try", choices->try_once, "hold: fail at once if the lock is held");
  app.add_option("--seconds", choices->seconds, "bench: for how long (default 3)")
      ->type_name("SECONDS")
      ->check(check_between(0.01, 3600.0), "");
  tree.program(app, choices->command, "hold: the command to run, behind --", false);
  app.callback([choices] { choices->action == "hold" ? hold(*choices) : measure(*choices); });
}

}  // namespace haul::cli
