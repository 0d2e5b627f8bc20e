#include "atomic/responder/host.hpp"

#include <cerrno>

#include "base/clock.hpp"
#include "base/os.hpp"

namespace haul::atomics {

namespace {

// A sleeping responder looks so often whether it is to end, should nobody wake it.
constexpr unsigned sleep_ms = 500;
// Without a socket it looks so often whether it can have one again.
constexpr std::uint64_t no_socket_nap_ns = 20'000'000;

}  // namespace

Code HostResponder::open(const Options& options, int* sys_errno) noexcept {
  options_ = options;
  if (!tables_.open(options.sessions)) return Code::no_memory;
  int error = socket_.open(options.at);
  // The thread begins where its maker is.
  if (error == 0 && options.cpu >= 0 && !os::pin_thread(static_cast<unsigned>(options.cpu))) {
    socket_.close();
    return Code::invalid;
  }
  bool no_thread = false;
  if (error == 0) {
    socket_.receive_timeout_ms(sleep_ms);
    socket_.look_before_taking();
    error = os::start_thread(
        &thread_,
        [](void* self) -> void* {
          static_cast<HostResponder*>(self)->serve();
          return nullptr;
        },
        this);
    no_thread = error != 0;
  }
  if (options.cpu >= 0) os::unpin_thread();
  if (error != 0) {
    socket_.close();
    *sys_errno = -error;
    if (no_thread) return Code::no_memory;
    return error == -EADDRINUSE ? Code::again : Code::io;
  }
  running_ = true;
  return Code::ok;
}

void HostResponder::close() noexcept {
  if (running_) {
    stop_.store(true, std::memory_order_relaxed);
    socket_.shut();  // wakes a receive
    os::join_thread(thread_);
    running_ = false;
  }
  socket_.close();
}

void HostResponder::add_window(unsigned index, const window_entry& window, char* memory) noexcept {
  pthread_mutex_lock(&windows_);
  tables_.add_window(index, window, memory);
  pthread_mutex_unlock(&windows_);
}

void HostResponder::remove_window(unsigned index) noexcept {
  pthread_mutex_lock(&windows_);
  tables_.remove_window(index);
  pthread_mutex_unlock(&windows_);
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
