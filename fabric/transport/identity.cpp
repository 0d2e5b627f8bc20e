#include "fabric/transport/identity.hpp"

#include <sys/stat.h>

#include <cstdio>

#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "fabric/transport/monitor.hpp"

namespace haul::fabric {
namespace {

std::uint64_t mix(std::uint64_t hash, const void* data, std::size_t bytes) noexcept {
  // FNV-1a.
  for (std::size_t i = 0; i < bytes; ++i) {
    hash ^= static_cast<const unsigned char*>(data)[i];
    hash *= 0x100000001b3u;
  }
  return hash;
}

}  // namespace

std::uint64_t host_identity() noexcept {
  const KeepErrno keep;
  char boot[64];
  std::uint64_t hash = 0xcbf29ce484222325u;
  const ssize_t length = os::read_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
  if (length > 0) hash = mix(hash, boot, static_cast<std::size_t>(length));
  struct stat status {};
  if (stat("/proc/self/ns/net", &status) == 0) {
    hash = mix(hash, &status.st_dev, sizeof status.st_dev);
    hash = mix(hash, &status.st_ino, sizeof status.st_ino);
  }
  return hash;
}

bool make_address(Address* address) noexcept {
  *address = Address{};
  address->host = host_identity();
  return os::random_bytes(address->id, sizeof address->id);
}

Address address_of_port(std::uint16_t port) noexcept {
  constexpr std::uint64_t of_a_port = 0x54524f50;  // "PORT"
  Address address;
  address.host = host_identity();
  if (port != 0) {
    address.id[0] = of_a_port;
    address.id[1] = port;
  }
  return address;
}

bool names_an_endpoint(const Address& address) noexcept {
  return address.id[0] != 0 || address.id[1] != 0;
}

void socket_name(const Address& address, char (&name)[name_bytes]) noexcept {
  std::snprintf(name, sizeof name, "%s%016llx%016llx", socket_prefix,
                static_cast<unsigned long long>(address.id[0]),
                static_cast<unsigned long long>(address.id[1]));
}

}  // namespace haul::fabric
