// The monitor's side of the service's protocol.
#include "service/monitor.hpp"

#include <haul/haul.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/error.hpp"
#include "base/knobs.hpp"
#include "base/net/socket.hpp"
#include "base/os/os.hpp"
#include "request/service_socket.hpp"

namespace haul::service {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int answer_timeout_ms = 2000;
// More clients than any service has.
constexpr std::uint32_t most_clients = 1u << 16;

// The service reads this word to learn whether the kernel lets it.
const std::uint64_t probe_word = 0x6861756c'70726f62;

int left_ms(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<long long>(left, 0));
}

// Whether fd becomes readable (or closed) before the deadline.
bool readable_until(int fd, Clock::time_point deadline) {
  for (;;) {
    const int ready = os::wait_readable(fd, left_ms(deadline));
    if (ready != -EINTR) return ready == 1;
  }
}

void close_all(const int* fds, unsigned count) {
  for (unsigned i = 0; i < count; ++i) close(fds[i]);
}

// Whether a process of this pid is there and is the command haul.
bool is_haul(pid_t pid) {
  char comm[32];
  const std::string path = "/proc/" + std::to_string(pid) + "/comm";
  return pid > 0 && os::read_file(path.c_str(), comm, sizeof comm) > 0 &&
         strncmp(comm, "haul", 4) == 0;
}

// Connects to `path`: fd, or -errno; -ENOENT also where the directory is missing.
int connect_at(const std::string& path) {
  const int fd = os::connect_to(path.c_str());
  return fd == -ENOTDIR ? -ENOENT : fd;
}

}  // namespace

Monitor::Monitor(const std::string& path) {
  const bool usual = path.empty() && knob_text(Knob::service_socket)[0] == '\0';
  std::string refused;
  auto try_place = [&](const std::string& place) {
    const int fd = connect_at(place);
    if (fd >= 0) {
      socket_ = os::Descriptor::of(fd);
      path_ = place;
    } else if (fd == -EACCES && usual) {
      // Another user's directory (XDG_RUNTIME_DIR survives su): not where ours listens.
    } else if (fd != -ENOENT && fd != -ECONNREFUSED && refused.empty()) {
      refused = fd == -EAGAIN
                    ? "the service at " + place +
                          " does not answer, and its queue of callers is full; see whether it is "
                          "stopped (kill -CONT), or end it and start another"
                    : "cannot connect to " + place + " (" + describe_errno(-fd) +
                          "); check the path and who may use it, or name another by --socket or "
                          "HAUL_SERVICE_SOCKET";
    }
    return fd >= 0;
  };
  if (!path.empty()) {
    try_place(path);
  } else {
    char place[socket_path_bytes];
    for (unsigned i = 0; service_socket_path(i, place); ++i) {
      if (try_place(place)) break;
    }
  }
  if (!socket_.valid() && !refused.empty()) throw std::runtime_error(refused);
  if (!socket_.valid()) {
    throw NoService(path.empty() ? "no service runs; start one with `haul serve`"
                                 : "no service runs at " + path +
                                       "; start one with `haul serve --socket " + path + "`");
  }
  try {
    greet();
  } catch (...) {
    process_.close();
    socket_.close();
    throw;
  }
}

Monitor::~Monitor() {
  process_.close();
  socket_.close();
}

void Monitor::greet() {
  os::SocketPeer peer;
  if (os::peer_of(socket_.get(), &peer)) {
    // The listener may also be systemd, which hands the socket to the service.
    if (is_haul(peer.pid)) seen_pid_ = peer.pid;
    // In /tmp any user may listen at our place. Root's service is trusted, and root may ask
    // anybody's.
    if (peer.uid != geteuid() && peer.uid != 0 && geteuid() != 0) {
      throw std::runtime_error("user " + std::to_string(peer.uid) + " listens at " + path_ +
                               ", not you; name your own service's socket by --socket or "
                               "HAUL_SERVICE_SOCKET");
    }
  }
  wire::Hello hello;
  hello.role = wire::Role::monitor;
  strncpy(hello.version, haul_version(), sizeof hello.version - 1);
  strncpy(hello.name, "haul", sizeof hello.name - 1);
  hello.probe_address = reinterpret_cast<std::uintptr_t>(&probe_word);
  hello.probe_value = probe_word;
  send(&hello, sizeof hello);
  wire::Welcome welcome;
  if (!receive(&welcome, sizeof welcome, wire::MessageKind::welcome)) {
    throw std::runtime_error("the service at " + path_ +
                             " closed the connection without an answer; try again, and if that "
                             "persists start it again: " +
                             kill_remedy() + ", then `haul serve`");
  }
  pid_ = welcome.pid;
  version_ = printable(welcome.version);
  why_not_ = printable(welcome.why);
  if (seen_pid_ == 0 && peer.pid != 0 && is_haul(pid_)) seen_pid_ = pid_;
  if (pid_ > 0 && pid_ == seen_pid_) process_ = os::Descriptor::of(os::pidfd_open(pid_));
}

std::string Monitor::kill_remedy() const {
  return seen_pid_ > 0 ? "`kill " + std::to_string(seen_pid_) + "`" : "end its process";
}

std::runtime_error Monitor::silent() const {
  const std::string who = seen_pid_ > 0 ? " (process " + std::to_string(seen_pid_) + ")" : "";
  const std::string wake = seen_pid_ > 0 ? " (`kill -CONT " + std::to_string(seen_pid_) + "`)" : "";
  return std::runtime_error("the service at " + path_ + who +
                            " does not answer within 2 s; if it is stopped, let it go on" + wake +
                            ", else end it and start another");
}

void Monitor::send(const void* message, std::size_t bytes) {
  const ssize_t sent = os::send_packet(socket_.get(), message, bytes);
  if (sent == static_cast<ssize_t>(bytes)) return;
  // What it said before it closed (why it refused) is still there to be received.
  if (sent == -EPIPE || sent == -ECONNRESET) return;
  if (sent == -EAGAIN) throw silent();
  throw std::runtime_error("cannot send to the service at " + path_ + " (" +
                           describe_errno(static_cast<int>(-sent)) + "); try again");
}

bool Monitor::receive(void* message, std::size_t bytes, wire::MessageKind wanted) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(answer_timeout_ms);
  for (;;) {
    if (!readable_until(socket_.get(), deadline)) throw silent();
    alignas(8) char packet[wire::max_message_bytes];
    int fds[os::max_packet_fds];
    unsigned fd_count = 0;
    const ssize_t received =
        os::receive_packet(socket_.get(), packet, sizeof packet, fds, &fd_count);
    close_all(fds, fd_count);
    if (received == -EAGAIN || received == -EINTR) continue;
    if (received <= 0) return false;
    wire::MessageKind kind{};
    memcpy(&kind, packet, std::min(sizeof kind, static_cast<std::size_t>(received)));
    if (kind == wire::MessageKind::refused && received == sizeof(wire::Refused)) {
      wire::Refused refused;
      memcpy(&refused, packet, sizeof refused);
      throw std::runtime_error(printable(refused.sentence));
    }
    if (kind != wanted || received != static_cast<ssize_t>(bytes)) {
      throw std::runtime_error("the process that listens at " + path_ +
                               " does not speak the protocol of haul " + haul_version() +
                               "; end it (" + kill_remedy() + ") and start `haul serve`");
    }
    memcpy(message, packet, bytes);
    return true;
  }
}

Snapshot Monitor::snapshot() {
  const auto gone = [this] {
    return NoService("the service at " + path_ + " has ended; start one with `haul serve`");
  };
  const wire::Query query;
  send(&query, sizeof query);
  Snapshot all;
  if (!receive(&all.stats, sizeof all.stats, wire::MessageKind::stats)) throw gone();
  const std::uint32_t count = std::min(all.stats.clients, most_clients);
  for (std::uint32_t i = 0; i < count; ++i) {
    wire::ClientStats client;
    if (!receive(&client, sizeof client, wire::MessageKind::client_stats)) throw gone();
    all.clients.push_back(client);
  }
  return all;
}

bool Monitor::stop(int timeout_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  const wire::Stop message;
  send(&message, sizeof message);
  for (bool open = true; open;) {
    if (!readable_until(socket_.get(), deadline)) return false;
    char packet[wire::max_message_bytes];
    int fds[os::max_packet_fds];
    unsigned fd_count = 0;
    const ssize_t received =
        os::receive_packet(socket_.get(), packet, sizeof packet, fds, &fd_count);
    close_all(fds, fd_count);
    open = received > 0 || received == -EAGAIN || received == -EINTR;
  }
  // A pidfd can be read once its process has ended.
  return !process_.valid() || readable_until(process_.get(), deadline);
}

void Monitor::reopen_log() {
  const int failed = pid_is_ours() ? os::pidfd_signal(process_.get(), SIGHUP) : -ESRCH;
  if (failed == 0) return;
  throw std::runtime_error("cannot send SIGHUP to the service at " + path_ + " (" +
                           describe_errno(-failed) +
                           "); send it where its process can be seen, in its pid namespace");
}

}  // namespace haul::service
