#include "atomic/node/opening.hpp"

#include <arpa/inet.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "atomic/client/udp_carrier.hpp"
#include "atomic/responder/fabric.hpp"
#include "atomic/responder/xdp.hpp"
#include "base/log.hpp"

namespace haul::atomics {

namespace {

using Kind = Specification::Kind;

// Opens a node by UDP: the carrier first, because an XDP program has to know its port.
class UdpOpening {
 public:
  UdpOpening(const Specification& specification, const haul_atomic_node_options& options,
             NodeParts* parts) noexcept
      : asked_(specification), options_(options), parts_(*parts) {}

  bool open(Error* error) noexcept;

 private:
  bool find_place(Error* error) noexcept;
  bool start_xdp(UdpCarrier* carrier, Error* error) noexcept;
  bool start_host(HostMode mode, const char* interface, const char* why, Error* error) noexcept;
  void describe(const char* how, const char* interface, const char* why) noexcept;

  const Specification& asked_;
  const haul_atomic_node_options& options_;
  NodeParts& parts_;
  SocketAddress at_;
};

Carrier::Options carrier_options(const haul_atomic_node_options& options) noexcept {
  Carrier::Options carrier;
  carrier.connections = options.connections;
  carrier.timeout_ns = options.timeout_ns;
  carrier.spin_ns = std::uint64_t{options.spin_us} * 1000;
  return carrier;
}

bool UdpOpening::find_place(Error* error) noexcept {
  const char* where = asked_.where;
  if (asked_.kind != Kind::host && where[0] != '\0') {
    const int result = address_of_interface(where, &at_);
    if (result != 0) {
      *error = make_error(Code::not_supported, -result,
                          result == -ENODEV
                              ? "there is no interface '%s'; `ip link` lists them"
                              : "the interface '%s' has no address; give it one (ip addr add)",
                          where);
      return false;
    }
  } else if (where[0] != '\0') {
    if (!parse_host(where, 0, &at_)) {
      *error = make_error(Code::invalid, 0, "'%s' is not a numeric address of this host", where);
      return false;
    }
  }
  at_.set_port(options_.port);
  char(&host)[sizeof parts_.name.host] = parts_.name.host;
  if (options_.host != nullptr) {
    SocketAddress ignored;
    if (std::strlen(options_.host) >= sizeof host || !parse_host(options_.host, 0, &ignored)) {
      *error = make_error(Code::invalid, 0, "host '%.60s' is not a numeric address", options_.host);
      return false;
    }
    std::strcpy(host, options_.host);
  } else {
    SocketAddress shown = at_;
    if (at_.is_wildcard()) any_own_address(&shown);
    format_host(shown, host, sizeof host);
  }
  return true;
}

bool UdpOpening::open(Error* error) noexcept {
  const bool wants_xdp =
      asked_.kind == Kind::xdp || (asked_.kind == Kind::none && asked_.where[0] != '\0');
  const bool must_hear_by_xdp = options_.hearing == HAUL_ATOMIC_HEAR_COMPLETION;
  if (must_hear_by_xdp && !wants_xdp) {
    *error = make_error(Code::invalid, 0,
                        "a completion map needs an XDP program; open the node with xdp:IFACE or "
                        "none:IFACE, or leave hearing 0");
    return false;
  }
  if (asked_.kind == Kind::none && options_.port != 0) {
    *error = make_error(Code::invalid, 0, "a node without a responder has no port; leave it 0");
    return false;
  }
  if (!find_place(error)) return false;
  SocketAddress client_at = at_;
  client_at.set_port(0);
  UdpCarrier* carrier = UdpCarrier::open(carrier_options(options_), client_at, error);
  if (carrier == nullptr) return false;
  parts_.carrier = carrier;
  if (wants_xdp) {
    if (start_xdp(carrier, error)) return true;
    if (!asked_.has_fallback || must_hear_by_xdp) return false;
    log(LogLevel::warning, "no XDP: %s; the responder is block instead", error->sentence);
    const Error why = *error;
    return start_host(HostMode::block, asked_.where, why.sentence, error);
  }
  if (asked_.kind == Kind::host) return start_host(asked_.host_mode, "", "", error);
  describe("none", "", "");
  return true;
}

bool UdpOpening::start_xdp(UdpCarrier* carrier, Error* error) noexcept {
  const bool hears = options_.hearing != HAUL_ATOMIC_HEAR_SOCKET;
  XdpResponder::Options xdp;
  xdp.interface = asked_.where;
  xdp.at = at_;
  xdp.mode = asked_.xdp_mode;
  xdp.serves = asked_.kind == Kind::xdp;
  xdp.sessions = options_.sessions;
  if (hears) {
    xdp.client_port = htons(carrier->port());
    xdp.connections = options_.connections;
  }
  XdpResponder* responder = XdpResponder::open(xdp, error);
  if (responder == nullptr) return false;
  parts_.responder = responder;
  if (hears) carrier->hear_by(responder->program(), asked_.where);
  parts_.name.port = responder->port();
  describe(responder->how(), asked_.where, "");
  return true;
}

bool UdpOpening::start_host(HostMode mode, const char* interface, const char* why,
                            Error* error) noexcept {
  HostResponder::Options host;
  host.mode = mode;
  host.at = at_;
  host.shown = parts_.name.host;
  host.sessions = options_.sessions;
  host.cpu = options_.cpu_plus_1 - 1;
  host.spin_ns = std::uint64_t{options_.spin_us} * 1000;
  HostResponder* responder = HostResponder::open(host, error);
  if (responder == nullptr) return false;
  parts_.responder = responder;
  parts_.name.port = responder->local().port();
  constexpr const char* names[] = {"poll", "spin", "block"};
  describe(names[static_cast<unsigned>(mode)], interface, why);
  return true;
}

void UdpOpening::describe(const char* how, const char* interface, const char* why) noexcept {
  char(&text)[sizeof parts_.description] = parts_.description;
  int length =
      snprintf(text, sizeof text, "%s%s%s", how, interface[0] != '\0' ? " on " : "", interface);
  const auto add = [&](const char* format, auto... values) {
    const auto at = static_cast<std::size_t>(length);
    if (at < sizeof text) length += snprintf(text + at, sizeof text - at, format, values...);
  };
  const haul_atomic_window_name& name = parts_.name;
  if (name.port != 0) add(", %s port %u", name.host, static_cast<unsigned>(name.port));
  if (why[0] != '\0') add("; no XDP: %s", why);
}

bool open_by_fabric(const Specification& specification, const haul_atomic_node_options& options,
                    NodeParts* parts, Error* error) noexcept {
  if (options.host != nullptr) {
    *error = make_error(Code::invalid, 0, "a fabric names its endpoint itself; leave host NULL");
    return false;
  }
  FabricOptions fabric;
  std::strcpy(fabric.provider, specification.provider);
  std::strcpy(fabric.place, specification.where);
  fabric.port = options.port;
  fabric.client = carrier_options(options);
  FabricSides sides;
  if (!open_fabric(fabric, &sides, error)) return false;
  parts->responder = sides.responder;
  parts->carrier = sides.carrier;
  parts->name = sides.name;
  snprintf(parts->description, sizeof parts->description, "%s", sides.description);
  return true;
}

}  // namespace

NodeParts::~NodeParts() {
  if (carrier != nullptr) carrier->end();
  responder->close();
}

bool open_parts(const Specification& specification, const haul_atomic_node_options& options,
                NodeParts* parts, Error* error) noexcept {
  return specification.kind == Kind::fabric ? open_by_fabric(specification, options, parts, error)
                                            : UdpOpening(specification, options, parts).open(error);
}

}  // namespace haul::atomics
