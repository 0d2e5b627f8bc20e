// The service's life: awake it serves in turns, idle it sleeps, asked it ends. The protocol of
// falling asleep is that of src/mover/thread.cpp, with a barrier that reaches the clients.
#include "service/server.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>

#include "base/machine/clock.hpp"
#include "base/machine/cpu.hpp"
#include "base/machine/topology.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/os.hpp"
#include "mover/cores/lease.hpp"
#include "service/copying/work.hpp"
#include "service/talk/connections.hpp"
#include "service/talk/listener.hpp"

namespace haul::service {
namespace {

constexpr std::uint64_t attend_every_ns = 50'000;
constexpr std::uint64_t yield_every_ns = 10'000;
constexpr std::uint64_t nap_ns = 1'000'000;  // in place of a membarrier
constexpr int held_back_ms = 1;    // asleep before a closed fence; nobody rings when it opens
constexpr int newcomer_ms = 1000;  // asleep while somebody has yet to say hello
constexpr std::uint32_t awake_state = 1, asleep_state = 2, unleased_state = 3;

// Made once and never closed: a signal handler may write to it at any time.
constinit os::SharedDescriptor stop_event{};
constinit std::atomic<bool> stop_asked{false};

class Server {
 public:
  Server(const Options& options, int listener, int stop)
      : options_(options), hub_(options), connections_(hub_, listener, stop) {
    choose_cpu();
    attend_every_ticks_ =
        static_cast<std::uint64_t>(static_cast<double>(attend_every_ns) * ticks_per_ns());
    yield_every_ticks_ = attend_every_ticks_ / (attend_every_ns / yield_every_ns);
    os::membarrier_register_global();
    hub_.started_ns = hub_.no_client_since_ns = now_ns();
  }
  ~Server() {
    // The clients' flights and mappings first, their sockets last.
    connections_.close_all();
    rest();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void serve_until_stopped() {
    while (!ending()) {
      be_awake();
      if (!ending()) sleep();
    }
  }

 private:
  void choose_cpu();
  bool ending();
  bool round();
  void set_asleep(std::uint32_t value);
  void be_awake();
  void sleep();
  void rest();
  int longest_sleep_ms() const;

  const Options& options_;
  Hub hub_;
  Connections connections_;
  int cpu_ = -1;
  bool may_spin_ = true;
  std::uint64_t attend_every_ticks_ = 0, yield_every_ticks_ = 0;
};

void Server::choose_cpu() {
  cpu_ = options_.cpu;
  const auto topology = std::make_unique<Expected<Topology>>(read_topology(""));
  if (!*topology) return;
  const Topology& here = **topology;
  // Where there is no CPU to spare, spinning would come off the clients' time.
  may_spin_ = here.allowed_count >= 2 && (here.cpu_quota <= 0 || here.cpu_quota >= 2);
  if (cpu_ < 0 && may_spin_) cpu_ = here.allowed[here.allowed_count - 1].cpu;
}

bool Server::ending() {
  if (connections_.stop_wanted()) return true;
  return options_.idle_exit_ns != 0 && hub_.clients.empty() && !connections_.newcomers_wait() &&
         now_ns() - hub_.no_client_since_ns >= options_.idle_exit_ns;
}

// One turn of every client. True if anything was to do.
bool Server::round() {
  hub_.held_back = false;
  bool any = false;
  for (const auto& client : hub_.clients) any |= serve(hub_, *client);
  return any;
}

void Server::set_asleep(std::uint32_t value) {
  for (const auto& client : hub_.clients)
    client->board().asleep.store(value, std::memory_order_seq_cst);
}

void Server::be_awake() {
  set_asleep(0);
  const bool leased = !options_.lease || take_lease(0) == Code::ok;
  hub_.state = leased ? awake_state : unleased_state;
  if (leased && cpu_ >= 0 && os::pin_thread(static_cast<unsigned>(cpu_))) hub_.cpu = cpu_;
  // Without the lease another process spins already: do what there is to do, and sleep again.
  const std::uint64_t spin_ticks =
      leased && may_spin_
          ? static_cast<std::uint64_t>(static_cast<double>(options_.spin_ns) * ticks_per_ns())
          : 0;
  std::uint64_t attended = ticks(), idle_since = 0, yielded = attended;
  for (;;) {
    const bool any = round();
    std::uint64_t now = ticks();
    if (now - attended >= attend_every_ticks_ || hub_.alarm || hub_.attend_now) {
      if (connections_.attend(0)) idle_since = 0;
      if (ending()) return;
      attended = now = ticks();
    }
    if (any) {
      idle_since = 0;
    } else if (idle_since == 0) {
      idle_since = now;
    } else if (now - idle_since >= spin_ticks) {
      return;
    } else if (now - yielded >= yield_every_ticks_) {
      // Lets other threads run on this core now (it may be the only one left to a woken client),
      // not milliseconds later, when the scheduler takes the core from a spinning thread.
      os::yield();
      yielded = ticks();
    } else {
      cpu_relax();
    }
  }
}

// Says that the service sleeps, and looks once more: either that look sees a submit, or its
// submitter sees the word and rings.
void Server::sleep() {
  set_asleep(1);
  // The clients are registered for this barrier: afterwards their earlier stores are visible here,
  // and their later loads see the word.
  if (!os::membarrier_global()) os::sleep_ns(nap_ns);
  if (round() || hub_.alarm) return;  // a condemned client is dropped while awake
  rest();
  while (!ending()) {
    if (connections_.attend(longest_sleep_ms())) return;
    if (hub_.held_back && (round() || hub_.alarm)) return;
  }
}

void Server::rest() {
  hub_.state = asleep_state;
  hub_.cpu = -1;
  drop_lease(0);
  os::unpin_thread();
}

int Server::longest_sleep_ms() const {
  if (hub_.held_back) return held_back_ms;
  if (connections_.newcomers_wait()) return newcomer_ms;
  if (options_.idle_exit_ns == 0 || !hub_.clients.empty()) return -1;
  const std::uint64_t idle_ns = now_ns() - hub_.no_client_since_ns;
  const std::uint64_t left_ns = options_.idle_exit_ns - std::min(idle_ns, options_.idle_exit_ns);
  return static_cast<int>(std::min<std::uint64_t>(left_ns / 1'000'000 + 1, 60'000));
}

// Each client takes a few descriptors.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int make_stop_fd() {
  int fd = stop_event.now().get();
  if (fd < 0) {
    fd = os::event_fd();
    if (fd < 0) {
      throw std::runtime_error(std::string("the service gets no descriptor (") +
                               describe_errno(-fd) + "); raise ulimit -n");
    }
    stop_event.set(os::Descriptor::of(fd));
  }
  os::event_clear(fd);
  if (stop_asked.load()) os::event_signal(fd);
  return fd;
}

}  // namespace

void run(const Options& options) {
  raise_descriptor_limit();
  const int stop = make_stop_fd();
  std::optional<Listener> own;
  int listener = options.listener;
  if (listener >= 0) {
    // A blocking accept would stop everybody.
    fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK);
  } else {
    own.emplace(options.socket_path);
    listener = own->fd();
  }
  {
    Server server(options, listener, stop);
    const std::string path = own ? own->path() : options.socket_path;
    if (options.on_listening) options.on_listening(path);
    if (options.say) options.say(LogLevel::info, "listening at " + path);
    server.serve_until_stopped();
    if (options.on_ending) options.on_ending();
  }
  stop_asked.store(false);
}

void request_stop() noexcept {
  stop_asked.store(true);
  if (const int fd = stop_event.now().get(); fd >= 0) os::event_signal(fd);
}

}  // namespace haul::service
