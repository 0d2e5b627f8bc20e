// haul lock: holds a lock of several hosts while a command runs, or measures it.
#include <fmt/format.h>
#include <sys/wait.h>
#include <haul/atomic.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <memory>

#include "cli/kit/tree.hpp"
#include "tools/failure.hpp"
#include "tools/program.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct LockChoices {
  std::string action, home, node = "block";
  std::string offset = "0";
  double lease_s = 1, timeout_s = -1, seconds = 3;
  bool try_once = false;
  std::vector<std::string> command;
};

// One member of the lock whose directory lies in the home window.
class DirectoryMember {
 public:
  explicit DirectoryMember(const LockChoices& choices)
      : node_(choices.node, node_options(choices)),
        window_(node_, HAUL_ATOMIC_LOCK_MEMBER_BYTES),
        lock_(open_lock(choices)) {}

  haul_atomic_lock* handle() const { return lock_.raw(); }

 private:
  // A member that gives up soon does not wait 5 s for a silent home, either.
  static haul_atomic_node_options node_options(const LockChoices& choices) {
    haul_atomic_node_options options{};
    const double patience_s = choices.timeout_s + std::max(choices.lease_s, 1.0);
    if (choices.timeout_s >= 0 && patience_s < 5) {
      options.timeout_ns = static_cast<std::uint64_t>(patience_s * 1e9);
    }
    return options;
  }

  atomic::lock open_lock(const LockChoices& choices) const {
    haul_atomic_lock_place home{};
    if (haul_atomic_window_parse(choices.home.c_str(), &home.window) != 0) {
      throw UsageError(haul_last_error());
    }
    home.offset = std::stoull(choices.offset);
    // All members know the home by the same name, so they agree on how many there may be.
    const std::uint64_t bytes = home.window.bytes;
    const std::uint64_t room = bytes > home.offset ? bytes - home.offset : 0;
    if (room < HAUL_ATOMIC_LOCK_DIRECTORY_BYTES(1)) {
      throw UsageError(
          fmt::format("a window of {} bytes has no room for a lock at {}; serve one of "
                      "4K or more",
                      bytes, home.offset));
    }
    haul_atomic_lock_options options{};
    options.rank = HAUL_ATOMIC_LOCK_ANY_RANK;
    options.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        HAUL_ATOMIC_LOCK_MAX_MEMBERS, (room - HAUL_ATOMIC_LOCK_DIRECTORY_BYTES(0)) / 128));
    options.home = &home;
    options.lease_ns = static_cast<std::uint64_t>(choices.lease_s * 1e9);
    return {node_, window_, options};
  }

  atomic::node node_;
  atomic::window window_;
  atomic::lock lock_;
};

std::uint64_t timeout_of(const LockChoices& choices) {
  return choices.timeout_s < 0 ? UINT64_MAX : static_cast<std::uint64_t>(choices.timeout_s * 1e9);
}

// Blocks signals for as long as it lives, because they are waited for. A signal that the caller
// ignores (nohup) stays ignored.
class Signals {
 public:
  Signals() {
    sigemptyset(&all_);
    sigaddset(&all_, SIGCHLD);
    for (const int signal : {SIGTERM, SIGHUP, SIGINT}) {
      struct sigaction now {};
      sigaction(signal, nullptr, &now);
      if (now.sa_handler != SIG_IGN) sigaddset(&all_, signal);
    }
    sigprocmask(SIG_BLOCK, &all_, &before_);
  }
  ~Signals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The signal that came meanwhile; -1 if none came.
  int wait(long nanoseconds) const {
    const timespec time{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    return sigtimedwait(&all_, nullptr, &time);
  }
  // The signals that were blocked before.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t all_, before_;
};

// Acquires the lock. A signal ends the wait and the command, with the status that a shell gives.
std::uint64_t acquire(const DirectoryMember& member, const LockChoices& choices,
                      const Signals& signals) {
  constexpr long first_nap_ns = 20'000, longest_nap_ns = 500'000;
  check(haul_atomic_lock_start(member.handle(),
                               choices.try_once ? HAUL_ATOMIC_LOCK_TRY : HAUL_ATOMIC_LOCK_ACQUIRE,
                               timeout_of(choices)));
  for (long nap_ns = first_nap_ns;; nap_ns = std::min(longest_nap_ns, nap_ns + nap_ns / 4)) {
    std::uint64_t token = 0;
    const int result = haul_atomic_lock_test(member.handle(), &token);
    check(result);
    // Looks for a signal even once the lock is held: the command must not start after a signal has
    // come.
    const int signal = signals.wait(result != 0 ? 0 : nap_ns);
    if (signal > 0 && signal != SIGCHLD) throw ExitStatus{128 + signal};
    if (result != 0) return token;
  }
}

// Waits for the program's end and renews the lease meanwhile. Returns false if the lock was lost on
// the way.
bool hold_until_end(const DirectoryMember& member, pid_t pid, double lease_s,
                    const Signals& signals, int* status) {
  const auto part_ns = static_cast<long>(std::min(lease_s / 4, 1.0) * 1e9);
  bool held = true;
  for (;;) {
    if (waitpid(pid, status, WNOHANG) == pid) return held;
    const int signal = signals.wait(part_ns);
    if (signal == SIGTERM || signal == SIGHUP) kill(pid, signal);
    if (held && haul_atomic_lock_renew(member.handle()) != 0) {
      held = false;
      fmt::print(stderr, "haul: {}\n", haul_last_error());
    }
  }
}

void hold(const LockChoices& choices) {
  const Signals signals;
  const DirectoryMember member(choices);
  const std::uint64_t token = acquire(member, choices, signals);
  const pid_t pid = tools::start_program(
      choices.command, {{"HAUL_LOCK_TOKEN", fmt::format("{}", token)}}, &signals.before());
  std::signal(SIGINT, SIG_IGN);  // Ctrl-C is the command's business
  int status = 0;
  const bool held = hold_until_end(member, pid, choices.lease_s, signals, &status);
  const int released = haul_atomic_lock_release(member.handle());
  if (!held || released == HAUL_ESTALE) {
    throw tools::CommandFailure(
        "the lock was lost while the command ran, so another may have held it, too; give a longer "
        "--lease");
  }
  check(released);
  throw ExitStatus{tools::shell_status(status)};
}

void measure(const LockChoices& choices) {
  const DirectoryMember member(choices);
  std::vector<double> acquires_ns, releases_ns;
  const auto ns_since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  };
  const Clock::time_point begin = Clock::now();
  while (ns_since(begin) < choices.seconds * 1e9) {
    const Clock::time_point one = Clock::now();
    check(haul_atomic_lock_acquire(member.handle(), timeout_of(choices), nullptr));
    acquires_ns.push_back(ns_since(one));
    const Clock::time_point two = Clock::now();
    check(haul_atomic_lock_release(member.handle()));
    releases_ns.push_back(ns_since(two));
  }
  const double all_s = ns_since(begin) / 1e9;
  const auto quantile = [](std::vector<double>& all, double share) {
    std::sort(all.begin(), all.end());
    return tools::show_ns(
        all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))]);
  };
  haul_atomic_lock_counts counts{};
  check(haul_atomic_lock_stats(member.handle(), &counts));
  fmt::print("{} acquisitions in {:.1f} s, {:.0f} a second; {} of them granted by another member\n",
             acquires_ns.size(), all_s, static_cast<double>(acquires_ns.size()) / all_s,
             counts.handed);
  fmt::print("acquire: median {}, 99 % within {}\n", quantile(acquires_ns, 0.5),
             quantile(acquires_ns, 0.99));
  fmt::print("release: median {}, 99 % within {}\n", quantile(releases_ns, 0.5),
             quantile(releases_ns, 0.99));
}

// Refuses what would otherwise be ignored silently.
void refuse_others(const CLI::App& app, const LockChoices& choices) {
  const auto given = [&](const char* name) { return app.get_option(name)->count() != 0; };
  const bool holds = choices.action == "hold";
  const char* other = holds ? "--seconds" : "--try";
  if (given(other))
    throw UsageError(fmt::format("`haul lock {}` takes no {}", choices.action, other));
  if (choices.try_once && given("--timeout")) {
    throw UsageError("--try does not wait, so it takes no --timeout");
  }
  if (holds && choices.command.empty()) {
    throw UsageError("name a command behind --, as in `haul lock hold NAME -- make install`");
  }
  if (!holds && !choices.command.empty()) throw UsageError("`haul lock bench` runs no command");
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
  auto choices = std::make_shared<LockChoices>();
  tree.choice(app, "action", choices->action, {"hold", "bench"}, "What to do")->required();
  app.add_option("home", choices->home, "The name of the lock's window")->type_name("")->required();
  app.add_option("--offset", choices->offset, "Where the lock lies in the window (default 0)")
      ->type_name("BYTES")
      ->check(check_offset, "");
  app.add_option("--node", choices->node,
                 "Who serves this member's window: block (default), block:ADDRESS, spin, poll, "
                 "xdp:IFACE or fabric:PROVIDER")
      ->type_name("NODE");
  app.add_option(
         "--lease", choices->lease_s,
         "How long a silent holder keeps the lock; must be the same for all members (default 1)")
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
  app.callback([choices, &app] {
    refuse_others(app, *choices);
    choices->action == "hold" ? hold(*choices) : measure(*choices);
  });
}

}  // namespace haul::cli
