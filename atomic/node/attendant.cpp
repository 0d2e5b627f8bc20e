#include "atomic/node/attendant.hpp"

#include <poll.h>

#include <cerrno>
#include <iterator>

#include "atomic/node/node.hpp"
#include "base/log.hpp"
#include "base/os.hpp"
#include "base/socket.hpp"

namespace haul::atomics {

int Attendant::open(Node* node, const haul_window_name& name, Xdp* xdp, UdpSocket* passed,
                    UdpSocket* passed_six) noexcept {
  node_ = node;
  xdp_ = xdp;
  passed_[0] = passed;
  passed_[1] = passed_six;
  char socket_name[attach_name_bytes];
  attach_socket_name(name, socket_name);
  constexpr int backlog = 16;
  listener_ = os::listen_abstract(socket_name, backlog);
  if (listener_ < 0) {
    log(LogLevel::warning,
        "no process of this host can attach to windows of %s port %u: another one has the name "
        "@%s (%s); choose another port to change that",
        name.host, name.port, socket_name, describe_errno(-listener_));
  }
  end_ = os::event_fd();
  if (end_ < 0) return end_;
  const int error = os::start_thread(
      &thread_,
      [](void* self) -> void* {
        static_cast<Attendant*>(self)->run();
        return nullptr;
      },
      this);
  running_ = error == 0;
  return error;
}

void Attendant::close() noexcept {
  if (running_) {
    os::event_signal(end_);
    pthread_join(thread_, nullptr);
    running_ = false;
  }
  if (end_ >= 0) os::close_fd(end_);
  if (listener_ >= 0) {
    os::shut_socket(listener_);  // a child of fork may have it, too
    os::close_fd(listener_);
  }
  end_ = listener_ = -1;
}

void Attendant::run() noexcept {
  os::name_thread("haul-attendant");
  // A descriptor of -1 is passed over.
  pollfd events[] = {{end_, POLLIN, 0},
                     {listener_, POLLIN, 0},
                     {passed_[0]->fd(), POLLIN, 0},
                     {passed_[1]->fd(), POLLIN, 0}};
  for (;;) {
    if (poll(events, std::size(events), -1) < 0 && errno != EINTR) return;
    if (events[0].revents != 0) return;
    if (events[2].revents != 0) serve_passed(*passed_[0]);
    if (events[3].revents != 0) serve_passed(*passed_[1]);
    if (events[1].revents != 0) admit();
  }
}

void Attendant::admit() noexcept {
  const int socket = os::accept_from(listener_);
  if (socket < 0) {
    // Without descriptors (EMFILE) who waits is waited for, but not by spinning.
    if (socket != -EAGAIN) os::sleep_ns(10'000'000);
    return;
  }
  // Nobody waits for a stranger; the others say what they want at once.
  constexpr int patience_ms = 100;
  AttachRequest request;
  AttachReply reply;
  unsigned fd_count = 0;
  int fds[os::max_packet_fds];
  if (!is_trusted_peer(socket)) {
    reply.code = static_cast<std::int32_t>(Code::permission);
    os::send_packet(socket, &reply, sizeof reply);
  } else if (os::wait_readable(socket, patience_ms) > 0) {
    const ssize_t bytes = os::receive_packet(socket, &request, sizeof request, fds, &fd_count);
    for (unsigned i = 0; i < fd_count; ++i) os::close_fd(fds[i]);
    int memory = -1;
    if (bytes != sizeof request || request.magic != AttachRequest::magic_value ||
        !node_->answer(request, &reply, &memory)) {
      reply.code = static_cast<std::int32_t>(Code::permission);
    }
    os::send_packet(socket, &reply, sizeof reply, &memory, memory >= 0 ? 1 : 0);
    if (memory >= 0) os::close_fd(memory);
  }
  os::close_fd(socket);
}

void Attendant::serve_passed(UdpSocket& socket) noexcept {
  constexpr unsigned most_at_once = 64;
  for (unsigned i = 0; i < most_at_once; ++i) {
    Packet packet;
    Address from;
    const ssize_t bytes = socket.receive(&packet, sizeof packet, &from);
    if (bytes == -EAGAIN) return;
    if (bytes < 0) continue;
    // An IPv6 client is known by a number that stands for its address.
    const std::uint64_t source = from.number();
    const auto address = static_cast<std::uint32_t>(source >> 16);
    const std::uint16_t port = from.is_six() ? from.six.sin6_port : from.four.sin_port;
    const std::size_t answer = xdp_->serve(&packet, static_cast<std::size_t>(bytes), address, port);
    if (answer != 0) socket.send(&packet, answer, from);
  }
}

}  // namespace haul::atomics
