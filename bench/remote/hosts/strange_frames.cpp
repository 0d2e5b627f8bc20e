#include "bench/remote/hosts/strange_frames.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <array>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

// An entry for a neighbour that does not exist: frames to it reach the home, as the cable has no
// other end, and the home finds that they are for another host.
constexpr char stranger[] = "10.88.0.99", stranger_mac[] = "02:00:00:00:00:63";
constexpr std::size_t payload_bytes = 88;  // as a packet with one operation

}  // namespace

StrangeFrames::StrangeFrames(const Pair& hosts) : hosts_(hosts) {
  hosts_.client.ip(fmt::format("neighbour replace {} lladdr {} dev {} nud permanent", stranger,
                               stranger_mac, atomic_interface));
  const Inside inside(hosts_.client);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(9);
  inet_pton(AF_INET, stranger, &at.sin_addr);
  socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0 || connect(socket_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    os::close_fd(socket_);
    throw tools::CommandFailure("no UDP socket can be opened; raise ulimit -n");
  }
}

StrangeFrames::~StrangeFrames() {
  os::close_fd(socket_);
}

void StrangeFrames::send(double rate_per_s, std::uint64_t ns) {
  const std::array<char, payload_bytes> payload{};
  const std::uint64_t begin = now_ns(), until = begin + ns;
  double next = static_cast<double>(begin);
  for (std::uint64_t now = begin; now < until; now = now_ns()) {
    if (rate_per_s <= 0 || static_cast<double>(now) < next) {
      __builtin_ia32_pause();
      continue;
    }
    if (::send(socket_, payload.data(), payload.size(), 0) < 0)
      throw tools::CommandFailure("a datagram cannot be sent; is a firewall in the way?");
    ++sent_;
    next += 1e9 / rate_per_s;
  }
}

}  // namespace haul::bench
