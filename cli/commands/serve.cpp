// haul serve: runs the node's service, in the foreground or detached, and questions a running one.
#include <fmt/format.h>
#include <sched.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/knobs.hpp"
#include "cli/kit/document.hpp"
#include "cli/kit/tree.hpp"
#include "cli/service/companion.hpp"
#include "cli/service/daemon.hpp"
#include "cli/service/listener.hpp"
#include "cli/service/notify.hpp"
#include "cli/service/service_report.hpp"
#include "service/server.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

constexpr int stop_timeout_ms = 10'000;
constexpr std::uint64_t ns_per_s = 1'000'000'000;

struct ServeChoices {
  std::string socket, map_bytes, cpu, json, metrics, log, idle_exit = "0";
  bool detach = false, status = false, stop = false, stats = false, reopen_log = false;
};

const KnobRow& row_of(Knob knob) {
  return knob_rows()[static_cast<std::size_t>(knob)];
}

// A check for an option that takes the values of a knob, and defaults to the knob; `values`
// describes them.
std::function<std::string(const std::string&)> check_as(Knob knob, const char* values) {
  return [knob, values](const std::string& text) {
    return parse_knob(row_of(knob), text.c_str()) ? ""
                                                  : fmt::format("'{}' is not {}", text, values);
  };
}
std::uint64_t value_of(Knob knob, const std::string& text) {
  return text.empty() ? knob_number(knob) : *parse_knob(row_of(knob), text.c_str());
}

int checked_cpu(std::uint64_t number) {
  if (number == knob_auto) return -1;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  if (known && (number >= CPU_SETSIZE || !CPU_ISSET(static_cast<int>(number), &allowed))) {
    throw tools::CommandFailure(
        fmt::format("this process may not use CPU {}; name one of those that `haul info` lists, by "
                    "--cpu or HAUL_MOVER_CPU, or auto",
                    number));
  }
  return static_cast<int>(number);
}

void end_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { service::request_stop(); };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGHUP, &action, nullptr);
  sigaction(SIGPIPE, &action, nullptr);
}

// log_path, page_address: as --log and --metrics have them, but with full paths.
void run_service(service::Options options, const std::string& log_path,
                 const std::string& page_address) {
  end_on_signals();
  ServiceLog log(log_path);
  std::optional<Companion> companion;
  options.say = [&](LogLevel level, const std::string& text) { log.line(level, text); };
  options.on_listening = [&](const std::string& socket_path) {
    companion.emplace(Companion::Duties{socket_path, page_address, &log, watchdog_ns()});
    log.take_standard_error();
    if (const std::string page = companion->page_name(); !page.empty())
      log.line(LogLevel::info, "figures at " + page);
    notify_manager("READY=1");
  };
  options.on_ending = [&] {
    notify_manager("STOPPING=1");
    companion->let_go();
  };
  try {
    service::run(options);
  } catch (const std::exception& failure) {
    throw tools::CommandFailure(failure.what());
  }
}

std::string full_path(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

void refuse_a_second(const std::string& asked_path) {
  try {
    const service::Monitor other(asked_path);
    throw tools::CommandFailure(fmt::format(
        "a service runs already (process {}, {}), and one is enough; `haul serve --status` tells "
        "of it, `haul serve --stop` ends it",
        other.pid(), other.socket_path()));
  } catch (const service::NoService&) {
  } catch (const tools::CommandFailure&) {
    throw;
  } catch (const std::runtime_error& trouble) {
    throw tools::CommandFailure(trouble.what());
  }
}

void serve(const ServeChoices& choices) {
  service::Options options;
  options.listener = inherited_listener();
  options.map_budget_bytes = value_of(Knob::service_map_bytes, choices.map_bytes);
  options.idle_exit_ns = std::stoull(choices.idle_exit) * ns_per_s;
  options.spin_ns = knob_number(Knob::mover_spin_us) * 1000;
  options.cpu = checked_cpu(value_of(Knob::mover_cpu, choices.cpu));
  options.lease = knob_number(Knob::mover_lease) == 0;
  const std::string log = choices.log.empty() ? "" : full_path(choices.log);
  const std::string metrics = full_page_address(choices.metrics);
  if (options.listener >= 0) {
    if (choices.detach || !choices.socket.empty()) {
      throw UsageError(
          fmt::format("systemd has passed a socket, so {} makes no sense; leave it out",
                      choices.detach ? "--daemon" : "--socket"));
    }
    options.socket_path = path_of_listener(options.listener);
    run_service(options, log, metrics);
    return;
  }
  refuse_a_second(choices.socket);
  options.socket_path = place_to_listen(choices.socket);
  if (!choices.detach) {
    run_service(options, log, metrics);
    return;
  }
  run_detached(
      [&] { run_service(options, log, metrics); },
      [&] {
        try {
          const service::Monitor started(options.socket_path);
          fmt::print("serving at {} (process {})\n", options.socket_path, started.pid());
          return true;
        } catch (const std::runtime_error&) {
          return false;  // not yet; if it never answers, its own message is better than ours
        }
      });
}

void show_stats(service::Monitor& monitor, const std::string& json) {
  const service::Snapshot all = monitor.snapshot();
  if (json != "-") {
    print_service_status(monitor, all);
    fmt::print("\n");
    print_service_clients(all);
  }
  if (!json.empty()) write_document(json, service_document(monitor, all));
}

void stop(service::Monitor& monitor) {
  if (!monitor.stop(stop_timeout_ms)) {
    throw tools::CommandFailure(
        fmt::format("the service (process {}) has not ended within 10 s; `kill -KILL {}` ends it, "
                    "and its clients go on by themselves",
                    monitor.pid(), monitor.pid()));
  }
  fmt::print("stopped (process {})\n", monitor.pid());
}

void ask(const ServeChoices& choices) {
  check_writable(choices.json);
  try {
    service::Monitor monitor(choices.socket);
    if (choices.status) print_service_status(monitor, monitor.snapshot());
    if (choices.stats) show_stats(monitor, choices.json);
    if (choices.stop) stop(monitor);
    if (choices.reopen_log) {
      monitor.reopen_log();
      fmt::print("told (process {})\n", monitor.pid());
    }
  } catch (const service::NoService& none) {
    throw tools::CommandFailure(choices.stop ? "no service runs, so there is nothing to stop"
                                             : none.what());
  } catch (const tools::CommandFailure&) {
    throw;
  } catch (const std::runtime_error& trouble) {
    throw tools::CommandFailure(trouble.what());
  }
}

std::string check_seconds(const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 9 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? "" : fmt::format("'{}' is not a number of seconds from 0 to 999999999", text);
}

// Allows one question at a time, and none together with options that start a service. (CLI11 could
// check this itself, but would repeat it at length in every line of --help.)
void check_one_task(const std::vector<const CLI::Option*>& of_a_new_one,
                    const std::vector<const CLI::Option*>& questions) {
  const CLI::Option* asked = nullptr;
  for (const CLI::Option* question : questions) {
    if (question->count() == 0) continue;
    if (asked != nullptr) {
      throw UsageError(fmt::format("{} excludes {}", asked->get_name(), question->get_name()));
    }
    asked = question;
  }
  for (const CLI::Option* option : of_a_new_one) {
    if (asked != nullptr && option->count() != 0) {
      throw UsageError(fmt::format("{} excludes {}", asked->get_name(), option->get_name()));
    }
  }
}

const char* description() {
  return "Runs the service: one core that copies for all processes of this user, so that each "
         "needs no core of its own. Programs that use libhaul find it by themselves and go on by "
         "themselves when it ends.\n"
         "It runs in the foreground until it is told to end (SIGTERM, SIGINT, haul serve --stop), "
         "or, with --idle-exit, until nobody has used it for that long. Under systemd socket "
         "activation it serves the socket that it was passed.\n"
         "With --metrics it shows its figures to Prometheus and the like, as text over HTTP at "
         "/metrics: at a Unix socket, which only this user may read, or at a port of the loopback, "
         "which every user of this machine may. `haul top --metrics` writes the same to a file.\n"
         "What it has to say goes to standard error, or with --log to a file, which SIGHUP and "
         "haul serve --reopen-log have it open again, as rotation of logs needs it. It tells "
         "systemd when it is ready and when it ends (Type=notify), answers its watchdog "
         "(WatchdogSec=), and gives its lines levels in the journal.\n"
         "The socket is HAUL_SERVICE_SOCKET, else haul/service.sock below XDG_RUNTIME_DIR or "
         "/run/user/UID, else /tmp/haul-UID/service.sock.";
}

}  // namespace

void add_serve(Tree& tree) {
  CLI::App& app = tree.command(
      "serve", "Run the service: one core that copies for all your processes", description());
  auto choices = std::make_shared<ServeChoices>();
  app.add_option("--socket", choices->socket, "Listen, or ask, at this path only")
      ->type_name("PATH")
      ->check([](const std::string& path) { return path.empty() ? "a path is missing" : ""; }, "");
  std::vector<const CLI::Option*> of_a_new_one, questions;
  of_a_new_one.push_back(app.add_flag("--daemon", choices->detach,
                                      "Run in the background; return once the service answers"));
  of_a_new_one.push_back(
      app.add_option("--idle-exit", choices->idle_exit,
                     "End after so many seconds without clients (default 0: never)")
          ->type_name("SECONDS")
          ->check(check_seconds, ""));
  of_a_new_one.push_back(
      app.add_option("--map-bytes", choices->map_bytes,
                     "How much of its clients' memory the service keeps mapped (default "
                     "HAUL_SERVICE_MAP_BYTES, 64G)")
          ->type_name("BYTES")
          ->check(check_as(Knob::service_map_bytes, "a number of bytes from 0 to 1024G"), ""));
  of_a_new_one.push_back(
      app.add_option(
             "--cpu", choices->cpu,
             "The CPU to which the service is pinned, or auto (default HAUL_MOVER_CPU, auto)")
          ->type_name("N")
          ->check(check_as(Knob::mover_cpu, "auto or a CPU's number from 0 to 65535"), ""));
  of_a_new_one.push_back(
      app.add_option("--metrics", choices->metrics,
                     "Show figures at unix:PATH, 127.0.0.1:PORT or [::1]:PORT (default: nowhere)")
          ->type_name("ADDRESS")
          ->check(check_page_address, ""));
  of_a_new_one.push_back(
      app.add_option("--log", choices->log, "Write lines to this file, not to standard error")
          ->type_name("FILE")
          ->check([](const std::string& path) { return path.empty() ? "a path is missing" : ""; },
                  ""));
  questions.push_back(
      app.add_flag("--status", choices->status,
                   "Say in a few lines whether a service runs; exit status 1 if none does"));
  questions.push_back(
      app.add_flag("--stop", choices->stop, "End the running service and wait until it is gone"));
  questions.push_back(app.add_flag("--stats", choices->stats,
                                   "Show what the service has done for each of its clients"));
  questions.push_back(app.add_flag("--reopen-log", choices->reopen_log,
                                   "Have the running service open its log again"));
  app.add_option("--json", choices->json,
                 "With --stats: also write one JSON document ('-': only that, to stdout)")
      ->type_name("FILE")
      ->needs(app.get_option("--stats"));
  app.callback([choices, of_a_new_one, questions] {
    check_one_task(of_a_new_one, questions);
    if (choices->status || choices->stop || choices->stats || choices->reopen_log) {
      ask(*choices);
    } else {
      serve(*choices);
    }
  });
}

}  // namespace haul::cli
