#include "atomic/node/attendant.hpp"

#include <poll.h>

#include <cerrno>
#include <iterator>

#include "atomic/node/node.hpp"
#include "atomic/node/signals.hpp"
#include "base/keep_errno.hpp"
#include "base/log.hpp"
#include "base/os.hpp"
#include "base/socket.hpp"

namespace haul::atomics {

namespace {

constexpr int backlog = 16;
// poll() looks its numbers up anew whenever something happens: where the program has put a file at
// one, nothing does any more. Well below the second for which others wait for an answer.
constexpr int look_ms = 250;

}  // namespace

int Attendant::open(Node* node, const haul_atomic_window_name& name, XdpProgram* xdp,
                    UdpSocket* passed, UdpSocket* passed_six) noexcept {
  node_ = node;
  xdp_ = xdp;
  passed_[0] = passed;
  passed_[1] = passed_six;
  attach_socket_name(name, socket_name_);
  const int listener = os::listen_abstract(socket_name_, backlog);
  listener_ = os::Descriptor::of(listener);
  if (listener < 0) {
    log(LogLevel::warning,
        "no process of this host can attach to windows of %s port %u: another one has the name "
        "@%s (%s); choose another port to change that",
        name.host, name.port, socket_name_, describe_errno(-listener));
  }
  const int end = os::event_fd();
  if (end < 0) return end;
  end_ = os::Descriptor::of(end);
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
    stop_.store(true, std::memory_order_relaxed);
    os::event_signal(end_.get());
    os::join_thread(thread_);
    running_ = false;
  }
  end_.close();
  os::shut_socket(listener_.get());  // a child of fork may have it, too
  listener_.close();
}

void Attendant::listen_anew() noexcept {
  // The program has closed it. While another one has the name nobody can attach.
  listener_ = os::Descriptor::of(os::listen_abstract(socket_name_, backlog));
}

void Attendant::run() noexcept {
  os::name_thread("haul-attendant");
  const bool listens = listener_.valid();
  while (!stop_.load(std::memory_order_relaxed)) {
    int listener = listener_.get();
    if (listens && listener < 0) {
      listen_anew();
      listener = listener_.number();
    }
    // A descriptor of -1 is passed over.
    pollfd events[] = {{end_.get(), POLLIN, 0},
                       {listener, POLLIN, 0},
                       {passed_[0]->fd(), POLLIN, 0},
                       {passed_[1]->fd(), POLLIN, 0}};
    const KeepErrno keep;
    const int ready = poll(events, std::size(events), look_ms);
    if (ready < 0 && errno != EINTR) os::sleep_ns(10'000'000);
    if (ready <= 0) {
      // Packets may have come for a socket that is not ours any more: looking makes it anew.
      serve_passed(*passed_[0]);
      serve_passed(*passed_[1]);
      take_signals_of_nobody();
      continue;
    }
    if (events[2].revents != 0) serve_passed(*passed_[0]);
    if (events[3].revents != 0) serve_passed(*passed_[1]);
    if (events[1].revents != 0) admit();
  }
}

void Attendant::admit() noexcept {
  const int accepted = os::accept_from(listener_.get());
  os::Descriptor from = os::Descriptor::of(accepted);
  if (accepted < 0) {
    // Without descriptors (EMFILE) who waits is waited for, but not by spinning. (EBADF: the
    // program has closed the listener.)
    if (accepted != -EAGAIN && accepted != -EBADF) os::sleep_ns(10'000'000);
    return;
  }
  // Nobody waits for a stranger; the others say what they want at once.
  constexpr int patience_ms = 100;
  AttachRequest request;
  AttachReply reply;
  unsigned fd_count = 0;
  int fds[os::max_packet_fds];
  if (!is_trusted_peer(from.get())) {
    reply.code = static_cast<std::int32_t>(Code::permission);
    os::send_packet(from.get(), &reply, sizeof reply);
  } else if (os::wait_readable(from.get(), patience_ms) > 0) {
    const ssize_t bytes = os::receive_packet(from.get(), &request, sizeof request, fds, &fd_count);
    for (unsigned i = 0; i < fd_count; ++i) os::close_fd(fds[i]);
    int memory = -1;
    if (bytes != sizeof request || request.magic != AttachRequest::magic_value ||
        !node_->answer(request, &reply, &memory)) {
      reply.code = static_cast<std::int32_t>(Code::permission);
    }
    os::send_packet(from.get(), &reply, sizeof reply, &memory, memory >= 0 ? 1 : 0);
    if (memory >= 0) os::close_fd(memory);
  }
  from.close();
}

void Attendant::serve_passed(UdpSocket& socket) noexcept {
  constexpr unsigned most_at_once = 64;
  for (unsigned i = 0; i < most_at_once; ++i) {
    WirePacket packet;
    SocketAddress from;
    const ssize_t bytes = socket.receive(&packet, sizeof packet, &from);
    if (bytes == -EAGAIN || bytes == -EBADF) return;
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
