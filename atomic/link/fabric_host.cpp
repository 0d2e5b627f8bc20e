#include "atomic/link/fabric_host.hpp"

#include <cstdio>
#include <cstring>

#include "atomic/link/socket_address.hpp"

namespace haul::atomics {

namespace {

constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// False: no room.
bool to_base64(const std::uint8_t* from, std::size_t bytes, char* text, std::size_t room) noexcept {
  const std::size_t length = (bytes * 8 + 5) / 6;
  if (length >= room) return false;
  for (std::size_t i = 0; i < length; ++i) {
    const std::size_t bit = i * 6, byte = bit / 8;
    const unsigned next = byte + 1 < bytes ? from[byte + 1] : 0;
    const unsigned pair = static_cast<unsigned>(from[byte]) << 8 | next;
    text[i] = digits[(pair >> (10 - bit % 8)) & 63];
  }
  text[length] = '\0';
  return true;
}

bool from_base64(const char* text, std::uint8_t* to, std::size_t room,
                 std::size_t* bytes) noexcept {
  const std::size_t length = std::strlen(text);
  *bytes = length * 6 / 8;
  if (length == 0 || length % 4 == 1 || *bytes > room) return false;
  unsigned held = 0, bits = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < length; ++i) {
    const char* digit = std::strchr(digits, text[i]);
    if (digit == nullptr) return false;
    held = (held << 6 | static_cast<unsigned>(digit - digits)) & 0x3fff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    to[at++] = static_cast<std::uint8_t>(held >> bits);
  }
  return (held & ((1u << bits) - 1)) == 0;
}

}  // namespace

bool format_fabric_host(const FabricHost& host, haul_atomic_window_name* name) noexcept {
  char address[sizeof name->host] = "=";
  name->port = 0;
  if (host.is_socket_address) {
    SocketAddress socket;
    if (host.bytes > sizeof socket.six) return false;
    std::memcpy(static_cast<void*>(&socket.six), host.address, host.bytes);
    format_host(socket, address, sizeof address);
    name->port = socket.port();
    if (address[0] == '\0') return false;
  } else if (!to_base64(host.address, host.bytes, address + 1, sizeof address - 1)) {
    return false;
  }
  const int length = snprintf(name->host, sizeof name->host, "%s@%s", host.provider, address);
  return length > 0 && static_cast<std::size_t>(length) < sizeof name->host;
}

bool parse_fabric_host(const haul_atomic_window_name& name, FabricHost* host) noexcept {
  const char* at = std::strchr(name.host, '@');
  FabricHost found;
  if (at == nullptr || at == name.host) return false;
  const auto length = static_cast<std::size_t>(at - name.host);
  std::memcpy(found.provider, name.host, length);
  ++at;
  if (*at == '=') {
    if (!from_base64(at + 1, found.address, sizeof found.address, &found.bytes)) return false;
  } else {
    SocketAddress socket;
    if (!parse_host(at, name.port, &socket)) return false;
    found.is_socket_address = true;
    found.bytes = socket.bytes();
    std::memcpy(found.address, &socket.six, found.bytes);
  }
  *host = found;
  return true;
}

bool is_atomic_with_cpu(const char* provider) noexcept {
  // libfabric's utility code, and what is layered on it. What is not known is taken for hardware.
  constexpr const char* software[] = {"ofi_rxm", "ofi_rxd", "tcp", "udp", "shm", "sockets"};
  for (const char* known : software) {
    if (std::strstr(provider, known) != nullptr) return true;
  }
  return false;
}

}  // namespace haul::atomics
