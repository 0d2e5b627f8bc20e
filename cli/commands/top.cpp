// haul top: shows, again and again, what the service does for whom and what running programs send.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <memory>
#include <optional>

#include "cli/kit/document.hpp"
#include "cli/kit/table.hpp"
#include "cli/kit/terminal.hpp"
#include "cli/kit/tree.hpp"
#include "cli/mpi/fabric_metrics.hpp"
#include "cli/mpi/fabric_top.hpp"
#include "cli/service/rates.hpp"
#include "cli/service/service_metrics.hpp"
#include "cli/service/service_report.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

struct TopChoices {
  std::string socket, metrics;
  double interval_s = 1;
  std::uint32_t count = 0;
};

volatile std::sig_atomic_t asked_to_end = 0;

void leave_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked_to_end = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// Sleeps for that long, or until a signal comes.
void sleep_for(double seconds) {
  timespec span{};
  span.tv_sec = static_cast<time_t>(seconds);
  span.tv_nsec = static_cast<long>((seconds - static_cast<double>(span.tv_sec)) * 1e9);
  if (asked_to_end == 0) nanosleep(&span, nullptr);
}

std::vector<std::string> head_of(const service::Snapshot& now, const Rates& rates,
                                 const std::string& version) {
  const wire::Stats& stats = now.stats;
  return {fmt::format("haul {}, process {}: {}{}, up {}, CPU {:.0f} %", version, stats.pid,
                      service_state_name(stats),
                      stats.cpu >= 0 ? fmt::format(" on CPU {}", stats.cpu) : "",
                      show_duration(stats.uptime_ns), rates.cpu * 100),
          fmt::format("clients {}, {:.2f} GB/s, {:.0f} requests/s, mapped {}", stats.clients,
                      rates.bytes / 1e9, rates.requests, show_mapped(stats))};
}

std::vector<std::string> clients_of(const Rates& rates) {
  if (rates.clients.empty()) return {"no process uses the service now"};
  TextTable table({{"pid", Align::right},
                   {"name", Align::left},
                   {"weight", Align::right},
                   {"requests/s", Align::right},
                   {"mapped MB/s", Align::right},
                   {"kernel MB/s", Align::right},
                   {"queued", Align::right},
                   {"failed", Align::right},
                   {"spared", Align::right}});
  for (const ClientRates& client : rates.clients) {
    table.add({fmt::format("{}", client.now.pid), service::printable(client.now.name),
               fmt::format("{}", client.now.weight), fmt::format("{:.0f}", client.requests),
               fmt::format("{:.1f}", client.mapped_bytes / 1e6),
               fmt::format("{:.1f}", client.kernel_bytes / 1e6),
               fmt::format("{}", client.now.queue_depth), fmt::format("{}", client.now.failed),
               fmt::format("{:.0f} %", client.spared * 100)});
  }
  return table.lines();
}

// The service, as seen now and at the look before.
class ServiceWatch {
 public:
  explicit ServiceWatch(const std::string& socket) : monitor_(socket), now_(monitor_.snapshot()) {}

  void look() {
    before_ = std::move(now_);
    now_ = monitor_.snapshot();
  }
  // *title: the index of the line that is a table's title, or the number of lines if none is.
  std::vector<std::string> lines(std::size_t* title) const {
    const Rates rates = rates_between(before_, now_);
    std::vector<std::string> lines = head_of(now_, rates, monitor_.version());
    const std::vector<std::string> clients = clients_of(rates);
    lines.emplace_back();
    *title = lines.size();
    lines.insert(lines.end(), clients.begin(), clients.end());
    if (clients.size() == 1) *title = lines.size();
    return lines;
  }

 private:
  service::Monitor monitor_;
  service::Snapshot before_, now_;
};

void watch(const TopChoices& choices) {
  leave_on_signals();
  MessageWatch messages;
  messages.look();
  std::optional<ServiceWatch> service;
  try {
    service.emplace(choices.socket);
  } catch (const service::NoService& none) {
    if (!choices.socket.empty()) throw tools::CommandFailure(none.what());
    if (messages.empty()) {
      throw tools::CommandFailure(fmt::format(
          "{}, and no program of yours sends messages by haul; start one with `haul run --mpi`",
          none.what()));
    }
  }
  // A rate needs two looks, so the first rates cover a short time.
  sleep_for(std::min(choices.interval_s, 0.25));
  Screen screen;
  for (std::uint32_t shown = 0; asked_to_end == 0;) {
    messages.look();
    std::vector<std::string> lines;
    std::size_t title = ~std::size_t{0};
    if (service) {
      service->look();
      lines = service->lines(&title);
    }
    if (!service || !messages.empty()) {
      if (service) lines.emplace_back();
      const std::vector<std::string> more = messages.lines();
      if (title >= lines.size() && more.size() > 1) title = lines.size() + 2;
      lines.insert(lines.end(), more.begin(), more.end());
    }
    screen.show(lines, title);
    if (++shown == choices.count) break;
    sleep_for(choices.interval_s);
  }
}

// The figures once, for a program that collects them.
void write_metrics(const TopChoices& choices) {
  Exposition page;
  try {
    service::Monitor monitor(choices.socket);
    const service::Snapshot all = monitor.snapshot();
    add_service_metrics(&page, monitor.version(), all);
  } catch (const service::NoService&) {
    add_absent_service(&page);
  } catch (const std::runtime_error& trouble) {
    fmt::print(stderr, "{}{}\n", line_head(LogLevel::warning), trouble.what());
    add_absent_service(&page);
  }
  add_fabric_metrics(&page);
  replace_text(choices.metrics, page.text());
}

std::string check_interval(const std::string& text) {
  double seconds = 0;
  const bool number = CLI::detail::lexical_cast(text, seconds);
  return number && seconds >= 0.1 && seconds <= 3600
             ? ""
             : fmt::format("'{}' is no number of seconds from 0.1 to 3600", text);
}

}  // namespace

void add_top(Tree& tree) {
  CLI::App& app = tree.command(
      "top", "Watch the service and running MPI programs: what is copied and sent for whom",
      "Shows the service (haul serve) and each of its clients: what it copies for them a second, "
      "through mappings of their memory and through the kernel, how many requests wait, how many "
      "have failed, and \"spared\": the share of the time for which the service moved their bytes, "
      "so that they did not.\n"
      "Shows each running program that sends messages by haul (haul run --mpi), with or without a "
      "service: what it sends a second, its copies in flight, the transfers that took a slower "
      "path "
      "than planned, and the bytes that came before they were asked for; and the traffic of all by "
      "path.\n"
      "On a terminal the table is redrawn in place until Ctrl-C; in a pipe each table follows the "
      "last.\n"
      "With --metrics it looks once and writes what it sees as Prometheus' text format: for a "
      "collector of text files, which a timer or cron calls. haul_service_up says whether a "
      "service answers.");
  auto choices = std::make_shared<TopChoices>();
  app.add_option("--interval", choices->interval_s, "Seconds between two looks (default 1)")
      ->type_name("SECONDS")
      ->check(check_interval, "");
  app.add_option("--count", choices->count, "End after so many tables (default 0: at Ctrl-C)")
      ->type_name("N");
  app.add_option("--socket", choices->socket, "Ask only the service at this path")
      ->type_name("PATH")
      ->check([](const std::string& path) { return path.empty() ? "a path is missing" : ""; }, "");
  const std::vector<const CLI::Option*> repeated = {app.get_option("--interval"),
                                                    app.get_option("--count")};
  app.add_option("--metrics", choices->metrics,
                 "Write the figures once, for Prometheus, and end ('-': to standard output)")
      ->type_name("FILE")
      ->check([](const std::string& path) { return path.empty() ? "a path is missing" : ""; }, "");
  app.callback([choices, repeated] {
    try {
      if (choices->metrics.empty()) return watch(*choices);
      for (const CLI::Option* option : repeated) {
        if (option->count() != 0)
          throw UsageError(fmt::format("--metrics excludes {}", option->get_name()));
      }
      write_metrics(*choices);
    } catch (const UsageError&) {
      throw;
    } catch (const std::runtime_error& trouble) {
      throw tools::CommandFailure(trouble.what());
    }
  });
}

}  // namespace haul::cli
