#include "bench/remote/hosts/peers_redis.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "tools/failure.hpp"
#include "tools/program.hpp"

namespace haul::bench {
namespace {

constexpr char server_program[] = "redis-server";
constexpr std::uint16_t redis_port = 6379;
constexpr std::uint64_t redis_patience_ns = 10'000'000'000, redis_step_ns = 10'000'000;

// Polls for replies as haul's client does: a client that sleeps pays for being woken.
int try_connect() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(redis_port);
  inet_pton(AF_INET, Pair::home_address, &at.sin_addr);
  if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) {
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
  }
  os::close_fd(fd);
  return -1;
}

}  // namespace

std::string Redis::missing() {
  if (!tools::find_program(server_program).empty()) return "";
  return "there is no redis-server to compare with; install redis-server";
}

Redis::Redis(const Pair& hosts, int home_cpu)
    : server_(hosts.home, home_cpu,
              {server_program, "--bind", Pair::home_address, "--port", std::to_string(redis_port),
               "--save", "", "--appendonly", "no", "--protected-mode", "no"}) {
  const Inside inside(hosts.client);
  const std::uint64_t deadline = now_ns() + redis_patience_ns;
  while ((socket_ = try_connect()) < 0) {
    if (!server_.running() || now_ns() > deadline)
      throw tools::CommandFailure(
          "redis-server does not answer; does it run when started by hand?");
    os::sleep_ns(redis_step_ns);
  }
}

Redis::~Redis() {
  os::close_fd(socket_);
}

void Redis::increment() {
  constexpr std::string_view request = "*2\r\n$4\r\nINCR\r\n$4\r\nhaul\r\n";
  if (send(socket_, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    throw tools::CommandFailure("redis-server has closed the connection; is memory short?");
  std::array<char, 64> reply{};
  std::size_t length = 0;
  const std::uint64_t deadline = now_ns() + redis_patience_ns;
  while (length < 2 || reply[length - 1] != '\n') {
    const ssize_t got =
        recv(socket_, reply.data() + length, reply.size() - length - 1, MSG_DONTWAIT);
    if (got > 0) length += static_cast<std::size_t>(got);
    if (got == 0 || length + 1 >= reply.size() || (got < 0 && now_ns() > deadline))
      throw tools::CommandFailure("redis-server does not answer INCR; is it Redis?");
  }
  std::uint64_t value = 0;
  std::from_chars(reply.data() + 1, reply.data() + length, value);
  if (reply[0] != ':' || value != current_ + 1)
    throw tools::CommandFailure(
        fmt::format("INCR returned '{}' instead of {}; does somebody else use that Redis?",
                    std::string_view(reply.data(), length - 2), current_ + 1));
  current_ = value;
}

}  // namespace haul::bench
