#include "atomic/window/attach.hpp"

#include <cerrno>
#include <cstdio>

#include "base/machine/clock.hpp"
#include "base/net/socket.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/os.hpp"

namespace haul::atomics {

void attach_socket_name(const haul_atomic_window_name& name,
                        char (&text)[attach_name_bytes]) noexcept {
  snprintf(text, sizeof text, "haul-atomic/%s/%u", name.host, name.port);
}

bool is_trusted_peer(int socket) noexcept {
  os::SocketPeer peer;
  return os::peer_of(socket, &peer) && (peer.uid == os::user_id() || peer.uid == 0);
}

namespace {

constexpr std::uint64_t patience_ns = 1'000'000'000;

// Waits for an answer, however many signals interrupt it.
bool is_answered(int socket) noexcept {
  const std::uint64_t until = now_ns() + patience_ns;
  for (;;) {
    const std::uint64_t now = now_ns();
    const std::uint64_t left_ms = now < until ? (until - now) / 1'000'000 : 0;
    const int ready = os::wait_readable(socket, static_cast<int>(left_ms));
    if (ready != -EINTR || left_ms == 0) return ready > 0;
  }
}

// The reply, and what came with it; a descriptor only if memory was asked for.
Expected<AttachReply> ask(int socket, const haul_atomic_window_name& name, AttachRequest::What what,
                          int* fd) noexcept {
  AttachRequest request;
  request.key = name.key;
  request.window = name.window;
  request.what = what;
  const bool sent = os::send_packet(socket, &request, sizeof request) >= 0;
  if (sent && !is_answered(socket)) {
    return make_error(Code::peer_gone, 0, "the owner of %s port %u does not answer; is it stopped?",
                      name.host, name.port);
  }
  AttachReply reply;
  int fds[os::max_packet_fds];
  unsigned count = 0;
  const ssize_t bytes = sent ? os::receive_packet(socket, &reply, sizeof reply, fds, &count) : 0;
  const unsigned expected = what == AttachRequest::What::memory ? 1 : 0;
  if (bytes == sizeof reply && reply.code == 0 && count == expected) {
    if (count == 1) *fd = fds[0];
    return reply;
  }
  for (unsigned i = 0; i < count; ++i) os::close_fd(fds[i]);
  if (bytes == sizeof reply && reply.code == static_cast<int>(Code::permission)) {
    return make_error(
        Code::permission, 0,
        "%s port %u answers processes of its own user that know a window's key; check "
        "both",
        name.host, name.port);
  }
  if (bytes == sizeof reply && reply.code == static_cast<int>(Code::io)) {
    return make_error(Code::io, 0,
                      "the owner of %s port %u has closed this window's descriptor (closefrom()?), "
                      "so nobody can attach to it any more; have it make another window",
                      name.host, name.port);
  }
  return make_error(Code::peer_gone, ECONNRESET,
                    "the owner of %s port %u has gone; ask for a new name", name.host, name.port);
}

Expected<AttachReply> ask_once(const haul_atomic_window_name& name, AttachRequest::What what,
                               int* fd) noexcept {
  char socket_name[attach_name_bytes];
  attach_socket_name(name, socket_name);
  const int socket = os::connect_abstract(socket_name);
  os::Descriptor owner = os::Descriptor::of(socket);
  if (socket == -EAGAIN) {
    return make_error(Code::again, EAGAIN,
                      "too many processes ask the owner of %s port %u at once; try again",
                      name.host, name.port);
  }
  if (socket < 0) {
    return make_error(
        Code::peer_gone, -socket,
        "no process of this host serves %s port %u; windows of other hosts are reached "
        "by haul_atomic_connect()",
        name.host, name.port);
  }
  // Anybody may have taken that name: only its own user and root learn the key.
  Expected<AttachReply> reply =
      is_trusted_peer(socket)
          ? ask(socket, name, what, fd)
          : make_error(Code::permission, 0,
                       "the process that answers for %s port %u on this host is another user's; "
                       "attach as the window's owner",
                       name.host, name.port);
  owner.close();
  return reply;
}

// An owner that has closed its descriptors listens again a moment later; a process that had
// connected to the old socket is cut off, and asks again.
Expected<AttachReply> connect_and_ask(const haul_atomic_window_name& name, AttachRequest::What what,
                                      int* fd) noexcept {
  constexpr std::uint64_t nap_ns = 20'000'000;
  for (unsigned tries = 0;; ++tries) {
    Expected<AttachReply> reply = ask_once(name, what, fd);
    if (reply || tries == 3) return reply;
    const int why = reply.error().sys_errno;
    if (why != ECONNRESET && why != ECONNREFUSED) return reply;
    os::sleep_ns(nap_ns);
  }
}

}  // namespace

Expected<AttachReply> fetch_counters(const haul_atomic_window_name& name) noexcept {
  int none = -1;
  return connect_and_ask(name, AttachRequest::What::counters, &none);
}

Expected<int> fetch_window(haul_atomic_window_name* name) noexcept {
  int fd = -1;
  Expected<AttachReply> reply = connect_and_ask(*name, AttachRequest::What::memory, &fd);
  if (!reply) return reply.error();
  name->bytes = reply->bytes;
  name->address = reply->address;
  return fd;
}

}  // namespace haul::atomics
