// Each page of a TCP stream, and each datagram, begins with a serial number.
#include "bench/remote/hosts/stream.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "bench/remote/hosts/counter.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr std::uint16_t stream_port = 9475;
constexpr std::size_t page_bytes = 4096, chunk_bytes = 64 * page_bytes;
constexpr std::size_t datagram_bytes = 1472;  // a frame of 1500 bytes
constexpr int buffer_bytes = 4 << 20, quiet_ms = 200;
constexpr std::uint64_t stream_patience_ns = 10'000'000'000, stream_step_ns = 10'000'000;

struct StreamBlock {
  int source_cpu, sink_cpu;
  Protocol protocol;
  char sink_address[INET_ADDRSTRLEN];
  std::atomic<bool> listening, stop;
  alignas(128) std::atomic<std::uint64_t> sent_bytes;
  alignas(128) std::atomic<std::uint64_t> received_bytes;
};

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {
    if (fd_ < 0) throw tools::CommandFailure("a worker has no socket; raise ulimit -n");
  }
  explicit Socket(Protocol protocol)
      : Socket(socket(AF_INET,
                      (protocol == Protocol::tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0)) {}
  ~Socket() { os::close_fd(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

sockaddr_in place_of(const StreamBlock& block) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(stream_port);
  inet_pton(AF_INET, block.sink_address, &at.sin_addr);
  return at;
}

void number(char* at, std::uint64_t value) {
  std::memcpy(at, &value, sizeof value);
}

std::uint64_t number_at(const char* at) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

bool wait_readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, quiet_ms) > 0;
}

void send_pages(int fd, StreamBlock& block) {
  std::vector<char> chunk(chunk_bytes);
  for (std::uint64_t page = 0; !block.stop.load(std::memory_order_relaxed);) {
    for (std::size_t at = 0; at < chunk_bytes; at += page_bytes) number(&chunk[at], page++);
    for (std::size_t done = 0; done < chunk_bytes;) {
      const ssize_t sent = send(fd, &chunk[done], chunk_bytes - done, MSG_NOSIGNAL);
      if (sent <= 0) throw tools::CommandFailure("a stream was cut off; did its sink fail?");
      done += static_cast<std::size_t>(sent);
      block.sent_bytes.fetch_add(static_cast<std::uint64_t>(sent), std::memory_order_relaxed);
    }
  }
}

void receive_pages(int fd, StreamBlock& block) {
  std::vector<char> chunk(chunk_bytes);
  std::uint64_t received = 0;
  for (std::size_t filled = 0;;) {
    const ssize_t got = recv(fd, &chunk[filled], chunk_bytes - filled, 0);
    if (got < 0) throw tools::CommandFailure("a stream was cut off; did its source fail?");
    if (got == 0) return;
    filled += static_cast<std::size_t>(got);
    received += static_cast<std::uint64_t>(got);
    block.received_bytes.store(received, std::memory_order_relaxed);
    if (filled < chunk_bytes) continue;
    const std::uint64_t first = received / page_bytes - chunk_bytes / page_bytes;
    for (std::size_t at = 0; at < chunk_bytes; at += page_bytes) {
      if (number_at(&chunk[at]) != first + at / page_bytes)
        throw tools::CommandFailure("a stream carried other bytes than were sent");
    }
    filled = 0;
  }
}

void send_datagrams(int fd, StreamBlock& block) {
  std::vector<char> datagram(datagram_bytes);
  for (std::uint64_t i = 1; !block.stop.load(std::memory_order_relaxed); ++i) {
    number(datagram.data(), i);
    if (send(fd, datagram.data(), datagram_bytes, 0) > 0)
      block.sent_bytes.fetch_add(datagram_bytes, std::memory_order_relaxed);
  }
}

void receive_datagrams(int fd, StreamBlock& block) {
  std::vector<char> datagram(datagram_bytes + 1);
  for (std::uint64_t last = 0;;) {
    ssize_t got = recv(fd, datagram.data(), datagram.size(), MSG_DONTWAIT);
    if (got < 0) {
      if (!wait_readable(fd) && block.stop.load(std::memory_order_relaxed)) return;
      continue;
    }
    const std::uint64_t found = number_at(datagram.data());
    if (got != datagram_bytes || found <= last)
      throw tools::CommandFailure("a stream carried other datagrams than were sent");
    last = found;
    block.received_bytes.fetch_add(datagram_bytes, std::memory_order_relaxed);
  }
}

}  // namespace

const char* protocol_name(Protocol protocol) {
  return protocol == Protocol::tcp ? "TCP" : "UDP";
}

void work_as_stream_source(unsigned, int block_fd) {
  die_with_parent();
  const SharedBlock shared(block_fd, sizeof(StreamBlock));
  auto& block = shared.as<StreamBlock>();
  os::pin_thread(static_cast<unsigned>(block.source_cpu));
  const std::uint64_t deadline = now_ns() + stream_patience_ns;
  while (!block.listening.load()) {
    if (now_ns() > deadline)
      throw tools::CommandFailure("a stream's sink does not start; is memory short?");
    os::sleep_ns(stream_step_ns);
  }
  const Socket socket(block.protocol);
  const sockaddr_in at = place_of(block);
  if (connect(socket.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    throw tools::CommandFailure("a stream cannot be connected; is a firewall in the way?");
  block.protocol == Protocol::tcp ? send_pages(socket.fd(), block)
                                  : send_datagrams(socket.fd(), block);
}

void work_as_stream_sink(unsigned, int block_fd) {
  die_with_parent();
  const SharedBlock shared(block_fd, sizeof(StreamBlock));
  auto& block = shared.as<StreamBlock>();
  os::pin_thread(static_cast<unsigned>(block.sink_cpu));
  const Socket socket(block.protocol);
  const sockaddr_in at = place_of(block);
  setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof buffer_bytes);
  if (bind(socket.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    throw tools::CommandFailure("a stream's sink cannot use its address; is its interface up?");
  if (block.protocol == Protocol::tcp && listen(socket.fd(), 1) != 0)
    throw tools::CommandFailure("a stream's sink cannot listen");
  block.listening.store(true);
  if (block.protocol == Protocol::udp) return receive_datagrams(socket.fd(), block);
  const Socket accepted(accept(socket.fd(), nullptr, nullptr));
  receive_pages(accepted.fd(), block);
}

Stream::Stream(const StreamEnd& source, const StreamEnd& sink, const std::string& sink_address,
               Protocol protocol, int own_cpu)
    : block_(sizeof(StreamBlock)) {
  auto& block = block_.as<StreamBlock>();
  block.source_cpu = source.cpu;
  block.sink_cpu = sink.cpu;
  block.protocol = protocol;
  sink_address.copy(block.sink_address, sizeof block.sink_address - 1);
  const auto start = [&](const StreamEnd& end, const char* role) {
    const Inside inside(end.space);  // which a child inherits
    children_.push_back(start_worker(role, 0, block_, {}));
  };
  start(sink, "stream-sink");
  start(source, "stream-source");
  await("a stream", children_, [&] { return block.received_bytes.load() > 0; });
  os::pin_thread(static_cast<unsigned>(own_cpu));
}

std::uint64_t Stream::sent_bytes() const {
  return block_.as<StreamBlock>().sent_bytes.load(std::memory_order_relaxed);
}

double Stream::finish() {
  auto& block = block_.as<StreamBlock>();
  block.stop.store(true);
  for (Child& child : children_) child.finish("a stream's end");
  const std::uint64_t sent = block.sent_bytes.load(), received = block.received_bytes.load();
  if (received > sent || (block.protocol == Protocol::tcp && received != sent))
    throw tools::CommandFailure("a stream has lost bytes or gained some");
  return static_cast<double>(sent - received) / static_cast<double>(sent);
}

}  // namespace haul::bench
