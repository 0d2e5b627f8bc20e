#include "cli/service/companion.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/os/os.hpp"
#include "cli/service/notify.hpp"
#include "cli/service/page/page_server.hpp"
#include "cli/service/service_metrics.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;
// However many ask, the service is asked this often at most.
constexpr auto page_life = std::chrono::milliseconds(250);

int open_hangup() {
  sigset_t hangup;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &hangup, nullptr);
  return os::above_streams(signalfd(-1, &hangup, SFD_CLOEXEC | SFD_NONBLOCK));
}

int sooner(int ms, int other_ms) {
  if (ms < 0 || other_ms < 0) return std::max(ms, other_ms);
  return std::min(ms, other_ms);
}

}  // namespace

Companion::Companion(Duties duties) : duties_(std::move(duties)) {
  const bool has_log = duties_.log != nullptr && duties_.log->has_file();
  if (duties_.page_address.empty() && !has_log && duties_.watchdog_ns == 0) return;
  if (!duties_.page_address.empty())
    listener_ = std::make_unique<PageListener>(duties_.page_address);
  if (has_log) hangup_ = os::Descriptor::of(open_hangup());
  stop_ = os::Descriptor::of(os::event_fd());
  running_ =
      stop_.valid() && (!has_log || hangup_.valid()) && os::start_thread(&thread_, body, this) == 0;
  if (!running_) {
    stop_.close();
    hangup_.close();
    throw tools::CommandFailure(
        "the service gets no thread or descriptor for --metrics, --log or systemd's watchdog; "
        "raise ulimit -u and -n, or go without");
  }
}

Companion::~Companion() {
  let_go();
  if (running_) {
    os::event_signal(stop_.get());
    os::join_thread(thread_);
  }
  stop_.close();
  hangup_.close();
}

void Companion::let_go() {
  leaving_.store(true);
}

void* Companion::body(void* self) {
  os::name_thread("haul-companion");
  os::lowest_priority();
  static_cast<Companion*>(self)->work();
  return nullptr;
}

void Companion::work() {
  std::unique_ptr<PageServer> server;
  if (listener_) {
    server = std::make_unique<PageServer>(listener_->fd(), listener_->at_port(),
                                          Exposition::content_type, [this] { return page(); });
  }
  for (;;) {
    std::vector<pollfd> entries{{stop_.get(), POLLIN, 0}};
    if (hangup_.valid()) entries.push_back({hangup_.get(), POLLIN, 0});
    if (server) server->watch(&entries);
    int timeout_ms = server ? server->patience_ms() : -1;
    if (duties_.watchdog_ns != 0) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(watchdog_next_ - SteadyClock::now());
      timeout_ms = sooner(timeout_ms, static_cast<int>(std::max<long long>(left.count(), 0)));
    }
    poll(entries.data(), entries.size(), timeout_ms);
    if (entries[0].revents != 0) return;
    signalfd_siginfo told;
    if (hangup_.valid() && read(hangup_.get(), &told, sizeof told) > 0) duties_.log->reopen();
    if (duties_.watchdog_ns != 0 && SteadyClock::now() >= watchdog_next_) answer_watchdog();
    if (server) server->attend();
  }
}

std::string Companion::page() {
  if (SteadyClock::now() >= page_until_) {
    page_trouble_.clear();
    try {
      page_ = fresh_page();
    } catch (const std::runtime_error& trouble) {
      page_trouble_ = trouble.what();
    }
    page_until_ = SteadyClock::now() + page_life;
  }
  if (!page_trouble_.empty()) throw std::runtime_error(page_trouble_);
  return page_;
}

std::string Companion::fresh_page() const {
  if (leaving_.load()) throw std::runtime_error("the service ends");
  service::Monitor monitor(duties_.socket_path);
  Exposition page;
  add_service_metrics(&page, monitor.version(), monitor.snapshot());
  return page.text();
}

void Companion::answer_watchdog() {
  watchdog_next_ = SteadyClock::now() + std::chrono::nanoseconds(duties_.watchdog_ns / 2);
  if (leaving_.load()) return;
  try {
    service::Monitor(duties_.socket_path).snapshot();
    notify_manager("WATCHDOG=1");
  } catch (const std::runtime_error&) {
    // It does not answer; what follows from that is systemd's to decide.
  }
}

}  // namespace haul::cli
