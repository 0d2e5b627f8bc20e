#include "atomic/window/name.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace haul::atomics {

namespace {

constexpr const char* schemes[] = {"haul", "haul+fabric"};  // by kind

// A number in this base that ends before `end`, which is stepped over. False: none, or too large.
bool take_number(const char** text, int base, char end, std::uint64_t most,
                 std::uint64_t* number) noexcept {
  std::uint64_t value = 0;
  const char* at = *text;
  for (; *at != end; ++at) {
    int digit = 99;
    if (*at >= '0' && *at <= '9') digit = *at - '0';
    if (*at >= 'a' && *at <= 'f') digit = *at - 'a' + 10;
    if (digit >= base) return false;
    const auto radix = static_cast<std::uint64_t>(base), low = static_cast<std::uint64_t>(digit);
    if (value > (most - low) / radix) return false;
    value = value * radix + low;
  }
  if (at == *text) return false;
  *text = end == '\0' ? at : at + 1;
  *number = value;
  return true;
}

}  // namespace

bool is_name(const haul_atomic_window_name& name) noexcept {
  return name.kind <= by_fabric && std::memchr(name.host, '\0', sizeof name.host) != nullptr;
}

bool format_name(const haul_atomic_window_name& name, char* text, std::size_t bytes) noexcept {
  const bool six = std::strchr(name.host, ':') != nullptr;
  const int length = snprintf(text, bytes, "%s:%s%s%s:%u/%u/%" PRIx64 "+%" PRIx64 "#%016" PRIx64,
                              schemes[name.kind], six ? "[" : "", name.host, six ? "]" : "",
                              name.port, name.window, name.address, name.bytes, name.key);
  return length > 0 && static_cast<std::size_t>(length) < bytes;
}

bool parse_name(const char* text, haul_atomic_window_name* name) noexcept {
  constexpr std::uint64_t any = ~std::uint64_t{0};
  haul_atomic_window_name found{};
  const char* colon = std::strchr(text, ':');
  if (colon == nullptr) return false;
  const auto scheme = static_cast<std::size_t>(colon - text);
  while (std::strlen(schemes[found.kind]) != scheme ||
         std::strncmp(schemes[found.kind], text, scheme) != 0) {
    if (++found.kind > by_fabric) return false;
  }
  text = colon + 1;
  const bool six = *text == '[';
  const char* host = six ? text + 1 : text;
  const char* host_end = six ? std::strstr(host, "]:") : std::strchr(host, ':');
  if (host_end == nullptr || host_end == host) return false;
  const auto length = static_cast<std::size_t>(host_end - host);
  if (length >= sizeof found.host) return false;
  std::memcpy(found.host, host, length);
  text = host_end + (six ? 2 : 1);
  std::uint64_t port = 0, window = 0;
  if (!take_number(&text, 10, '/', 65535, &port) ||
      !take_number(&text, 10, '/', 0xffffffff, &window) ||
      !take_number(&text, 16, '+', any, &found.address) ||
      !take_number(&text, 16, '#', any, &found.bytes) ||
      !take_number(&text, 16, '\0', any, &found.key)) {
    return false;
  }
  found.port = static_cast<std::uint16_t>(port);
  found.window = static_cast<std::uint32_t>(window);
  *name = found;
  return true;
}

}  // namespace haul::atomics
