#include "cli/service/page/page_listener.hpp"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "base/net/inet.hpp"
#include "request/service_socket.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

constexpr const char* unix_scheme = "unix:";
constexpr std::size_t scheme_bytes = 5;
// The two addresses, as they are written.
constexpr const char* loopback_hosts[] = {"127.0.0.1", "[::1]"};

bool names_file(const std::string& address) {
  return address.rfind(unix_scheme, 0) == 0;
}

// Behind the colon; none if it is no port's number.
std::optional<std::uint16_t> port_in(const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 5 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  const int number = digits ? std::stoi(text) : 65536;
  if (number > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(number);
}

// Which of the two hosts an address names; none if neither.
std::optional<unsigned> host_in(const std::string& address) {
  for (unsigned i = 0; i < std::size(loopback_hosts); ++i) {
    if (address.rfind(fmt::format("{}:", loopback_hosts[i]), 0) == 0) return i;
  }
  return std::nullopt;
}

// What stands behind the host, which is one of the two.
std::string port_text(const std::string& address) {
  return address.substr(std::strlen(loopback_hosts[*host_in(address)]) + 1);
}

}  // namespace

std::string check_page_address(const std::string& address) {
  if (names_file(address)) {
    if (address.size() == scheme_bytes) return "a path is missing behind unix:";
    const std::size_t length = full_page_address(address).size() - scheme_bytes;
    return length < socket_path_bytes
               ? ""
               : fmt::format("the path in '{}' is too long for a socket: {} bytes, {} may be",
                             address, length, socket_path_bytes - 1);
  }
  if (!host_in(address)) {
    return fmt::format(
        "'{}' is none of unix:PATH, 127.0.0.1:PORT and [::1]:PORT: the page asks for no password, "
        "so it is served to this machine alone",
        address);
  }
  return port_in(port_text(address))
             ? ""
             : fmt::format("'{}' is no port's number from 0 to 65535", port_text(address));
}

std::string full_page_address(const std::string& address) {
  if (!names_file(address)) return address;
  return unix_scheme +
         std::filesystem::absolute(address.substr(scheme_bytes)).lexically_normal().string();
}

PageListener::PageListener(const std::string& address) {
  if (names_file(address)) {
    try {
      file_ = std::make_unique<service::Listener>(
          address.substr(scheme_bytes), os::SocketKind::stream, "name another path by --metrics");
    } catch (const std::runtime_error& trouble) {
      throw tools::CommandFailure(trouble.what());
    }
    name_ = address;
    return;
  }
  const unsigned host = *host_in(address);
  std::uint16_t port = *port_in(port_text(address));
  os::InetAddress loopback;
  loopback.six = host == 1;
  if (loopback.six) {
    loopback.bytes[15] = 1;
  } else {
    loopback.bytes[0] = 127;
    loopback.bytes[3] = 1;
  }
  const int fd = os::listen_inet_at(loopback, &port);
  if (fd < 0) {
    throw tools::CommandFailure(fmt::format(
        "cannot listen at {} ({}); name another port by --metrics, 0 for any, or unix:PATH",
        address, describe_errno(-fd)));
  }
  port_ = os::Descriptor::of(fd);
  name_ = fmt::format("http://{}:{}/metrics", loopback_hosts[host], port);
}

PageListener::~PageListener() {
  port_.close();
}

}  // namespace haul::cli
