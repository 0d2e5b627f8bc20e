// Granting, binding, and looking both up.
#include "service/clients/grants.hpp"

#include <algorithm>

#include "service/clients/hub.hpp"

namespace haul::service {
namespace {}  // namespace

const char* GrantTable::put(const wire::Grant& message) {
  constexpr std::uint32_t all_rights = wire::may_read | wire::may_write;
  if (message.rights == 0 || (message.rights & ~all_rights) != 0)
    return "a grant with rights that do not exist";
  if (message.length == 0 || message.address >= user_end ||
      message.length > user_end - message.address)
    return "a grant of no memory, or beyond its address space";
  if (grants_.size() >= max_grants && grants_.find(message.index) == grants_.end())
    return "more than 4096 grants";
  grants_[message.index] = GrantRecord{message.address, message.length, message.rights};
  return nullptr;
}

const GrantRecord* GrantTable::find(std::uint64_t index) const {
  const auto found = grants_.find(index);
  return found == grants_.end() ? nullptr : &found->second;
}

std::uint32_t BindingTable::count() const {
  return static_cast<std::uint32_t>(std::count_if(
      slots_.begin(), slots_.end(), [](const BindingRecord& b) { return b.space != self_space; }));
}

wire::Bound bind(Hub& hub, Client& asker, const wire::Bind& message) {
  wire::Bound bound;
  bound.space = message.space;
  bound.code = static_cast<std::int32_t>(Code::permission);
  BindingRecord binding{.space = message.space, .index = message.index};
  std::copy(std::begin(message.key), std::end(message.key), binding.key.begin());
  const Client* owner = hub.find_key(binding.key);
  if (owner != nullptr) binding.owner = owner->id;
  asker.bindings.bind(binding);
  const GrantRecord* grant = owner == nullptr ? nullptr : owner->grants.find(message.index);
  if (grant == nullptr) return bound;
  bound.code = static_cast<std::int32_t>(Code::ok);
  bound.rights = grant->rights;
  bound.length = grant->length;
  return bound;
}

OwnedAddress owner_of(Hub& hub, Client& asker, Space space, std::uint64_t address,
                      std::uint64_t length, std::uint32_t right) {
  if (space == self_space) return OwnedAddress{Code::ok, &asker, address};
  BindingRecord* binding = asker.bindings.find(space);
  if (binding == nullptr) return OwnedAddress{.code = Code::closed};
  Client* owner = hub.find(binding->owner);
  if (owner == nullptr) owner = hub.find_key(binding->key);
  if (owner == nullptr) return OwnedAddress{.code = Code::peer_gone};
  binding->owner = owner->id;
  const GrantRecord* grant = owner->grants.find(binding->index);
  if (grant == nullptr || (grant->rights & right) == 0)
    return OwnedAddress{.code = Code::permission};
  if (address > grant->length || length > grant->length - address)
    return OwnedAddress{.code = Code::fault};
  return OwnedAddress{Code::ok, owner, grant->address + address};
}

}  // namespace haul::service
