#include "bench/transparent/programs/redis_connection.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr std::uint64_t answer_patience_ns = 10'000'000'000, connect_step_ns = 10'000'000;

int connect_stream(const std::string& path) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (path.size() >= sizeof at.sun_path)
    throw tools::CommandFailure(
        fmt::format("{} is too long for a socket; set TMPDIR to a shorter path", path));
  path.copy(at.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    os::close_fd(fd);
    return -1;
  }
  const timeval limit{answer_patience_ns / 1'000'000'000, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  return fd;
}

}  // namespace

RedisConnection::RedisConnection(const std::string& path) : fd_(connect_stream(path)) {
  for (const std::uint64_t deadline = now_ns() + answer_patience_ns; fd_ < 0;
       fd_ = connect_stream(path)) {
    if (now_ns() > deadline)
      throw tools::CommandFailure(
          "redis-server does not answer; does it run when started by hand?");
    os::sleep_ns(connect_step_ns);
  }
}

RedisConnection::~RedisConnection() {
  os::close_fd(fd_);
}

void RedisConnection::send_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0)
      throw tools::CommandFailure("redis-server has closed the connection; is memory short?");
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::size_t RedisConnection::receive(std::size_t at) {
  for (;;) {
    const ssize_t got = recv(fd_, reply_.data() + at, reply_.size() - at, 0);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got < 0 && errno == EINTR) continue;
    throw tools::CommandFailure("redis-server does not answer; is the machine overloaded?");
  }
}

void RedisConnection::set(std::string_view key, std::string_view value) {
  send_all(fmt::format("*3\r\n$3\r\nSET\r\n${}\r\n{}\r\n${}\r\n", key.size(), key, value.size()));
  send_all(value);
  send_all("\r\n");
  constexpr std::string_view good = "+OK\r\n";
  reply_.resize(64);
  std::size_t length = 0;
  while (length == 0 || reply_[length - 1] != '\n') length += receive(length);
  const std::string_view reply(reply_.data(), length);
  if (reply != good)
    throw tools::CommandFailure(fmt::format("redis-server refuses a SET: {}", reply));
}

std::string RedisConnection::ask(std::string_view command) {
  send_all(fmt::format("{}\r\n", command));
  constexpr std::string_view line_end = "\r\n";
  reply_.resize(64 * 1024);
  std::size_t length = 0;
  const auto reply = [&] { return std::string_view(reply_.data(), length); };
  // The first line is the answer, or says how long the text is that follows: "$4711".
  for (std::size_t head = std::string_view::npos, whole = 0; length < whole || whole == 0;) {
    length += receive(length);
    head = reply().find(line_end);
    if (head == std::string_view::npos) continue;
    const bool is_text = reply().front() == '$';
    whole = head + line_end.size();
    if (is_text) whole += std::strtoull(reply_.data() + 1, nullptr, 10) + line_end.size();
    if (whole > reply_.size()) reply_.resize(whole);
  }
  if (reply().front() == '-')
    throw tools::CommandFailure(fmt::format("redis-server refuses {}: {}", command, reply()));
  return std::string(reply());
}

std::string_view RedisConnection::get(std::string_view key, std::size_t bytes) {
  send_all(fmt::format("*2\r\n$3\r\nGET\r\n${}\r\n{}\r\n", key.size(), key));
  const std::string head = fmt::format("${}\r\n", bytes);
  const std::size_t whole = head.size() + bytes + 2;
  if (reply_.size() < whole) reply_.resize(whole);
  std::size_t length = 0;
  while (length < whole) {
    length += receive(length);
    const std::size_t known = std::min(length, head.size());
    if (std::string_view(reply_.data(), known) != std::string_view(head).substr(0, known))
      throw tools::CommandFailure(fmt::format("redis-server answers a GET with something else: {}",
                                              std::string_view(reply_.data(), known)));
  }
  return {reply_.data() + head.size(), bytes};
}

}  // namespace haul::bench
