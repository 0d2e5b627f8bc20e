#include "atomic/window/attach.hpp"

#include <cerrno>
#include <cstdio>

#include "base/os.hpp"
#include "base/socket.hpp"

namespace haul::atomics {

void attach_socket_name(const haul_window_name& name, char (&text)[attach_name_bytes]) noexcept {
  snprintf(text, sizeof text, "haul-atomic/%s/%u", name.host, name.port);
}

namespace {

constexpr int patience_ms = 1000;

Expected<int> ask(int socket, haul_window_name* name) noexcept {
  AttachRequest request;
  request.key = name->key;
  request.window = name->window;
  if (os::send_packet(socket, &request, sizeof request) < 0 ||
      os::wait_readable(socket, patience_ms) <= 0) {
    return make_error(Code::peer_gone, 0, "the owner of %s port %u does not answer; is it stopped?",
                      name->host, name->port);
  }
  AttachReply reply;
  int fds[os::max_packet_fds];
  unsigned count = 0;
  const ssize_t bytes = os::receive_packet(socket, &reply, sizeof reply, fds, &count);
  const bool given = bytes == sizeof reply && reply.code == 0 && count == 1;
  if (!given) {
    for (unsigned i = 0; i < count; ++i) os::close_fd(fds[i]);
    if (bytes == sizeof reply && reply.code == static_cast<int>(Code::permission)) {
      return make_error(
          Code::permission, 0,
          "%s port %u gives its window to processes of its own user that know its key; "
          "check both",
          name->host, name->port);
    }
    return make_error(Code::peer_gone, 0, "the owner of %s port %u has gone; ask for a new name",
                      name->host, name->port);
  }
  name->bytes = reply.bytes;
  name->address = reply.address;
  return fds[0];
}

}  // namespace

Expected<int> fetch_window(haul_window_name* name) noexcept {
  char socket_name[attach_name_bytes];
  attach_socket_name(*name, socket_name);
  const int socket = os::connect_abstract(socket_name);
  if (socket < 0) {
    return make_error(
        Code::peer_gone, -socket,
        "no process of this host serves %s port %u; windows of other hosts are reached "
        "by haul_atomic_connect()",
        name->host, name->port);
  }
  Expected<int> fd = ask(socket, name);
  os::close_fd(socket);
  return fd;
}

}  // namespace haul::atomics
