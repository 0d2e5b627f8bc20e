// Reading and printing names of endpoints.
#include "fabric/endpoint/offer/names.hpp"

#include <cstdio>
#include <cstring>

#include "base/net/resolve.hpp"
#include "fabric/transport/identity.hpp"

namespace haul::fabric {

namespace {

constexpr std::size_t scheme_length = sizeof address_scheme - 1;

// -1: it is no hexadecimal digit.
int value_of(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

void print_address(const Address& address, char (&text)[address_text_bytes]) noexcept {
  unsigned char bytes[sizeof address];
  std::memcpy(bytes, &address, sizeof bytes);
  std::memcpy(text, address_scheme, sizeof address_scheme);
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    std::snprintf(text + scheme_length + 2 * i, 3, "%02x", bytes[i]);
  }
}

bool read_address(const char* text, Address* address) noexcept {
  if (std::strncmp(text, address_scheme, scheme_length) != 0) return false;
  const char* digits = text + scheme_length;
  if (std::strlen(digits) != 2 * sizeof *address) return false;
  unsigned char bytes[sizeof *address];
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    const int high = value_of(digits[2 * i]), low = value_of(digits[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return copy_address(bytes, sizeof bytes, address);
}

bool copy_address(const void* from, std::size_t bytes, Address* address) noexcept {
  if (bytes < sizeof *address) return false;
  std::memcpy(static_cast<void*>(address), from, sizeof *address);
  return address->valid();
}

bool resolve(const char* node, const char* service, bool local, bool numeric,
             Address* address) noexcept {
  if (node != nullptr && std::strncmp(node, address_scheme, scheme_length) == 0) {
    return read_address(node, address) && (!local || address->host == host_identity());
  }
  const std::uint16_t port = os::port_of(service);
  if (port == 0 && (service != nullptr || !local)) return false;
  if (!os::is_this_host(node, numeric)) return false;
  *address = address_of_port(port);
  return true;
}

}  // namespace haul::fabric
