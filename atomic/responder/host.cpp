#include "atomic/responder/host.hpp"

#include <cerrno>
#include <new>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"

namespace haul::atomics {

namespace {

// How often a sleeping responder looks whether it has to end, in case nobody wakes it.
constexpr unsigned sleep_ms = 500;
// How often a responder without a socket tries to open one.
constexpr std::uint64_t no_socket_nap_ns = 20'000'000;

}  // namespace

HostResponder* HostResponder::open(const Options& options, Error* error) noexcept {
  auto* responder = new (std::nothrow) HostResponder;
  if (responder == nullptr) {
    *error = make_error(Code::no_memory, ENOMEM, "no memory for a responder; free some");
    return nullptr;
  }
  if (responder->start(options, error)) return responder;
  responder->close();
  return nullptr;
}

bool HostResponder::start(const Options& options, Error* error) noexcept {
  options_ = options;
  if (!tables_.open(options.sessions)) {
    *error = make_error(Code::no_memory, 0,
                        "no memory for %u sessions; ask for fewer, or free some", options.sessions);
    return false;
  }
  const int result = socket_.open(options.at);
  if (result != 0) {
    *error = make_error(result == -EADDRINUSE ? Code::again : Code::io, -result,
                        "cannot serve at %s port %u (%s); choose another port", options.shown,
                        options.at.port(), describe_errno(-result));
    return false;
  }
  socket_.receive_timeout_ms(sleep_ms);
  socket_.look_before_taking();
  // A thread begins on the CPU of the thread that makes it.
  if (options.cpu >= 0 && !os::pin_thread(static_cast<unsigned>(options.cpu))) {
    *error = make_error(Code::invalid, 0,
                        "the responder's thread may not run on CPU %d; choose one that this "
                        "process may use",
                        options.cpu);
    return false;
  }
  const int failed = start_thread();
  if (options.cpu >= 0) os::unpin_thread();
  running_ = failed == 0;
  if (!running_) *error = no_thread(-failed);
  return running_;
}

int HostResponder::start_thread() noexcept {
  return os::start_thread(
      &thread_,
      [](void* self) -> void* {
        static_cast<HostResponder*>(self)->serve();
        return nullptr;
      },
      this);
}

void HostResponder::close() noexcept {
  if (running_) {
    stop_.store(true, std::memory_order_relaxed);
    socket_.shut();  // wakes a receive
    os::join_thread(thread_);
  }
  socket_.close();
  delete this;
}

bool HostResponder::add_window(const WindowMemory& memory, haul_atomic_window_name* name,
                               Error*) noexcept {
  pthread_mutex_lock(&windows_);
  tables_.add_window(name->window, entry_of(*name), memory.at);
  pthread_mutex_unlock(&windows_);
  return true;
}

void HostResponder::remove_window(unsigned index) noexcept {
  pthread_mutex_lock(&windows_);
  tables_.remove_window(index);
  pthread_mutex_unlock(&windows_);
}

void HostResponder::count(std::uint64_t* values) noexcept {
  for (unsigned event = 0; event < SERVE_EVENTS; ++event) values[event] += tables_.count_of(event);
}

bool HostResponder::serve_one(bool wait) noexcept {
  SocketAddress from;
  const ssize_t bytes = socket_.receive(&packet_, sizeof packet_, &from, wait);
  if (bytes == -EMSGSIZE) {
    tables_.count_event(DROPPED_SHORT);
    return true;
  }
  is_lost_.store(socket_.is_lost(), std::memory_order_relaxed);
  if (bytes == -EBADF) os::sleep_ns(no_socket_nap_ns);
  if (bytes < 0) return false;
  pthread_mutex_lock(&windows_);
  const bool answer = tables_.serve(&packet_, static_cast<std::size_t>(bytes), from.number(),
                                    static_cast<std::uint32_t>(now_ns() >> 30));
  pthread_mutex_unlock(&windows_);
  if (answer) socket_.send(&packet_, packet_bytes(packet_), from);
  return true;
}

void HostResponder::serve() noexcept {
  os::name_thread("haul-atomic");
  std::uint64_t last_ns = now_ns();
  while (!stop_.load(std::memory_order_relaxed)) {
    bool wait = options_.mode == HostMode::block;
    if (options_.mode == HostMode::spin) wait = now_ns() - last_ns > options_.spin_ns;
    const bool served = serve_one(wait);
    if (options_.mode == HostMode::spin && served) last_ns = now_ns();
  }
}

}  // namespace haul::atomics
