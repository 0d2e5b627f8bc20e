#include "atomic/node/specification.hpp"

#include <cstring>

namespace haul::atomics {

namespace {

struct ResponderWord {
  const char* word;
  Specification::Kind kind;
  HostMode host_mode;
  XdpMode xdp_mode;
  bool has_fallback;
};
using Kind = Specification::Kind;
constexpr ResponderWord words[] = {
    {"none", Kind::none, HostMode::block, XdpMode::automatic, false},
    {"none-native", Kind::none, HostMode::block, XdpMode::native, false},
    {"none-skb", Kind::none, HostMode::block, XdpMode::generic, false},
    {"xdp", Kind::xdp, HostMode::block, XdpMode::automatic, true},
    {"xdp-native", Kind::xdp, HostMode::block, XdpMode::native, false},
    {"xdp-skb", Kind::xdp, HostMode::block, XdpMode::generic, false},
    {"poll", Kind::host, HostMode::poll, XdpMode::automatic, false},
    {"spin", Kind::host, HostMode::spin, XdpMode::automatic, false},
    {"block", Kind::host, HostMode::block, XdpMode::automatic, false},
    {"fabric", Kind::fabric, HostMode::block, XdpMode::automatic, false},
};

// "PROVIDER", "PROVIDER:ADDRESS". False: too long, or no provider.
bool parse_fabric(const char* text, Specification* specification) noexcept {
  const char* colon = std::strchr(text, ':');
  const std::size_t length =
      colon != nullptr ? static_cast<std::size_t>(colon - text) : std::strlen(text);
  const char* where = colon != nullptr ? colon + 1 : "";
  if (length == 0 || length >= sizeof specification->provider ||
      std::strlen(where) >= sizeof specification->where) {
    return false;
  }
  std::memcpy(specification->provider, text, length);
  specification->provider[length] = '\0';
  std::strcpy(specification->where, where);
  return true;
}

}  // namespace

bool parse_specification(const char* text, Specification* specification, Error* error) noexcept {
  const char* colon = std::strchr(text, ':');
  const std::size_t length =
      colon != nullptr ? static_cast<std::size_t>(colon - text) : std::strlen(text);
  const char* where = colon != nullptr ? colon + 1 : "";
  for (const ResponderWord& word : words) {
    if (std::strlen(word.word) != length || std::strncmp(word.word, text, length) != 0) continue;
    specification->kind = word.kind;
    specification->host_mode = word.host_mode;
    specification->xdp_mode = word.xdp_mode;
    specification->has_fallback = word.has_fallback;
    if (word.kind == Kind::fabric) {
      if (parse_fabric(where, specification)) return true;
      *error = make_error(Code::invalid, 0,
                          "'%.60s' names no libfabric provider; write fabric:PROVIDER or "
                          "fabric:PROVIDER:ADDRESS, such as fabric:tcp;ofi_rxm",
                          text);
      return false;
    }
    if (std::strlen(where) >= sizeof specification->where) break;
    std::strcpy(specification->where, where);
    const bool forced = word.xdp_mode != XdpMode::automatic;
    if ((word.kind == Kind::xdp || forced) && where[0] == '\0') {
      *error =
          make_error(Code::invalid, 0, "'%s' names no interface; write %s:IFACE, such as %s:eth0",
                     text, word.word, word.word);
      return false;
    }
    return true;
  }
  *error = make_error(
      Code::invalid, 0,
      "'%.60s' is no responder; write xdp:IFACE, poll, spin, block, fabric:PROVIDER or none", text);
  return false;
}

}  // namespace haul::atomics
