#include "atomic/node/attendant.hpp"

#include <poll.h>

#include <cerrno>
#include <iterator>

#include "atomic/node/node.hpp"
#include "atomic/node/signals.hpp"
#include "base/log.hpp"
#include "base/net/socket.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"

namespace haul::atomics {

namespace {

constexpr int backlog = 16;
// poll() looks its numbers up again only when something happens, and nothing does any more at a
// number where the program has put a file. Well below the second for which others wait for an
// answer.
constexpr int look_ms = 250;

}  // namespace

int Attendant::open(Node* node, const haul_atomic_window_name& name,
                    Responder* responder) noexcept {
  node_ = node;
  responder_ = responder;
  attach_socket_name(name, socket_name_);
  const int listener = os::listen_abstract(socket_name_, backlog);
  listener_ = os::Descriptor::of(listener);
  if (listener < 0) {
    log(LogLevel::warning,
        "no process of this host can attach to windows of %s port %u, because another process has "
        "the name @%s (%s); choose another port",
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

void Attendant::listen_again() noexcept {
  // The program has closed the listener. While another process has the name, nobody can attach.
  listener_ = os::Descriptor::of(os::listen_abstract(socket_name_, backlog));
}

void Attendant::run() noexcept {
  os::name_thread("haul-attendant");
  const bool listens = listener_.valid();
  while (!stop_.load(std::memory_order_relaxed)) {
    int listener = listener_.get();
    if (listens && listener < 0) {
      listen_again();
      listener = listener_.number();
    }
    // A descriptor of -1 is passed over.
    static_assert(Responder::most_sockets == 2);
    pollfd events[] = {{end_.get(), POLLIN, 0},
                       {listener, POLLIN, 0},
                       {responder_->socket_fd(0), POLLIN, 0},
                       {responder_->socket_fd(1), POLLIN, 0}};
    const KeepErrno keep;
    const int ready = poll(events, std::size(events), look_ms);
    if (ready < 0 && errno != EINTR) os::sleep_ns(10'000'000);
    for (unsigned i = 0; i < Responder::most_sockets; ++i) {
      // Packets may have come for a socket that is not ours any more; this look opens it again.
      if (ready <= 0 || events[2 + i].revents != 0) responder_->serve_socket(i);
    }
    if (ready <= 0) {
      take_signals_of_nobody();
      continue;
    }
    if (events[1].revents != 0) admit();
  }
}

void Attendant::admit() noexcept {
  const int accepted = os::accept_from(listener_.get());
  os::Descriptor from = os::Descriptor::of(accepted);
  if (accepted < 0) {
    // Without descriptors (EMFILE) the caller waits until there is one again, and this thread must
    // not spin. (EBADF: the program has closed the listener.)
    if (accepted != -EAGAIN && accepted != -EBADF) os::sleep_ns(10'000'000);
    return;
  }
  // A client says what it wants at once; nobody waits for a stranger.
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

}  // namespace haul::atomics
