// Where the service listens.
#include "cli/service/listener.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/knobs.hpp"
#include "request/service_socket.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

namespace fs = std::filesystem;

constexpr int first_passed_fd = 3;  // SD_LISTEN_FDS_START

int socket_option(int fd, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

// "" or why a socket cannot be made in the directory of `path`.
std::string trouble_with(const std::string& path) {
  const int made = make_socket_directory(path.c_str());
  if (made == 0) return "";
  if (made == -EPERM) return "its directory belongs to others, or others may write to it";
  return std::strerror(-made);
}

std::string explicit_place(const std::string& asked) {
  std::string path = fs::absolute(asked).lexically_normal().string();
  if (path.size() >= socket_path_bytes) {
    throw tools::CommandFailure(
        fmt::format("the path {} is too long for a socket: {} bytes, {} may be; "
                    "name a shorter one with --socket or HAUL_SERVICE_SOCKET",
                    path, path.size(), socket_path_bytes - 1));
  }
  // An existing directory is used as it is: the user who named it knows it.
  const fs::path directory = fs::path(path).parent_path();
  std::error_code ignored;
  if (fs::is_directory(directory, ignored)) return path;
  const std::string trouble = trouble_with(path);
  if (trouble.empty()) return path;
  throw tools::CommandFailure(fmt::format(
      "cannot make the directory {} ({}); make it yourself, or name another path with --socket or "
      "HAUL_SERVICE_SOCKET",
      directory.string(), trouble));
}

}  // namespace

int inherited_listener() {
  const char* pid = std::getenv("LISTEN_PID");
  const char* fds = std::getenv("LISTEN_FDS");
  if (pid == nullptr || fds == nullptr || std::atol(pid) != getpid()) return -1;
  const std::string count = fds;
  unsetenv("LISTEN_PID");
  unsetenv("LISTEN_FDS");
  unsetenv("LISTEN_FDNAMES");
  if (count != "1") {
    throw tools::CommandFailure(
        fmt::format("systemd passed {} sockets, but the service takes one; give its .socket unit "
                    "a single ListenSequentialPacket=",
                    count));
  }
  const int fd = first_passed_fd;
  if (socket_option(fd, SO_DOMAIN) != AF_UNIX || socket_option(fd, SO_TYPE) != SOCK_SEQPACKET) {
    throw tools::CommandFailure(
        "descriptor 3, which systemd passed, is not a Unix socket of packets; its .socket unit "
        "needs "
        "ListenSequentialPacket= (systemd-socket-activate: --seqpacket)");
  }
  if (socket_option(fd, SO_ACCEPTCONN) != 1) {
    throw tools::CommandFailure(
        "descriptor 3, which systemd passed, is a connection, not a listening socket; its .socket "
        "unit "
        "needs Accept=no");
  }
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return fd;
}

std::string path_of_listener(int fd) {
  sockaddr_un address{};
  socklen_t length = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  return std::string(address.sun_path, strnlen(address.sun_path, sizeof address.sun_path));
}

std::string place_to_listen(const std::string& asked) {
  if (!asked.empty()) return explicit_place(asked);
  const std::string set = knob_text(Knob::service_socket);
  if (!set.empty()) return explicit_place(set);
  char path[socket_path_bytes];
  std::string reasons;
  for (unsigned i = 0; service_socket_path(i, path); ++i) {
    const std::string trouble = trouble_with(path);
    if (trouble.empty()) return path;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", path, trouble);
  }
  throw tools::CommandFailure(fmt::format(
      "finds no place for its socket ({}); name one with --socket or HAUL_SERVICE_SOCKET",
      reasons.empty() ? "there is none" : reasons));
}

}  // namespace haul::cli
