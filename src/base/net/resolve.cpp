#include "base/net/resolve.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "base/net/inet.hpp"
#include "base/os/keep_errno.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {
namespace {

// For one host: more than any real one has.
constexpr unsigned most_addresses = 64;

// What getaddrinfo() finds for stream sockets. nullptr if it finds nothing.
class Found {
 public:
  Found(const char* node, const char* service, int flags) noexcept {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    if (getaddrinfo(node, service, &hints, &list_) != 0) list_ = nullptr;
  }
  ~Found() {
    if (list_ != nullptr) freeaddrinfo(list_);
  }
  Found(const Found&) = delete;
  Found& operator=(const Found&) = delete;
  const addrinfo* first() const noexcept { return list_; }

 private:
  addrinfo* list_ = nullptr;
};

bool means_here(const InetAddress& address, const InetAddress* own, unsigned count) noexcept {
  constexpr std::uint8_t loopback_net = 127;
  if (!address.six && address.bytes[0] == loopback_net) return true;
  if (InetAddress none{{}, address.six}; address == none) return true;  // any of this host's
  for (unsigned i = 0; i < count; ++i) {
    if (own[i] == address) return true;
  }
  return false;
}

}  // namespace

bool is_this_host(const char* node, bool numeric) noexcept {
  if (node == nullptr) return true;
  const KeepErrno keep;
  const Uncancelled uncancelled;
  char own_name[256] = {};
  if (!numeric && gethostname(own_name, sizeof own_name - 1) == 0 && own_name[0] != '\0' &&
      std::strcmp(node, own_name) == 0) {
    return true;
  }
  const Found found(node, nullptr, numeric ? AI_NUMERICHOST : 0);
  if (found.first() == nullptr) return false;
  InetAddress own[most_addresses];
  unsigned count = 0;
  for (const bool loopback : {true, false}) {
    const int more = local_addresses(own + count, most_addresses - count, loopback);
    if (more > 0) count += static_cast<unsigned>(more);
  }
  for (const addrinfo* at = found.first(); at != nullptr; at = at->ai_next) {
    InetAddress address;
    if (inet_address_of(at->ai_addr, &address) && means_here(address, own, count)) return true;
  }
  return false;
}

std::uint16_t port_of(const char* service) noexcept {
  if (service == nullptr) return 0;
  const KeepErrno keep;
  const Uncancelled uncancelled;
  char* end = nullptr;
  const unsigned long number = std::strtoul(service, &end, 10);
  if (service[0] >= '0' && service[0] <= '9' && *end == '\0') {
    return number <= UINT16_MAX ? static_cast<std::uint16_t>(number) : 0;
  }
  const Found found(nullptr, service, AI_PASSIVE);
  if (found.first() == nullptr) return 0;
  // The port lies at the same place in both kinds of address.
  sockaddr_in four;
  std::memcpy(&four, found.first()->ai_addr, sizeof four);
  return ntohs(four.sin_port);
}

}  // namespace haul::os
