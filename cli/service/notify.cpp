#include "cli/service/notify.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/os/descriptor.hpp"
#include "base/os/os.hpp"

namespace haul::cli {

void notify_manager(const std::string& state) noexcept {
  const char* name = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (name == nullptr || (name[0] != '/' && name[0] != '@') ||
      strlen(name) >= sizeof address.sun_path)
    return;
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, name, strlen(name));
  if (name[0] == '@') address.sun_path[0] = '\0';
  const int fd = os::above_streams(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + strlen(name));
  sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
         reinterpret_cast<const sockaddr*>(&address), bytes);
  os::close_fd(fd);
}

std::uint64_t watchdog_ns() {
  const char *pid = std::getenv("WATCHDOG_PID"), *limit = std::getenv("WATCHDOG_USEC");
  if (limit == nullptr || (pid != nullptr && std::atol(pid) != getpid())) return 0;
  const long long us = std::atoll(limit);
  return us > 0 ? static_cast<std::uint64_t>(us) * 1000 : 0;
}

}  // namespace haul::cli
