// Memory that one process lets others copy from or to (haul_share()), and the names under which
// others use it. Only a client's number and a grant's index are remembered, and both are looked up
// again for each piece, so that what was withdrawn is out of reach at once.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "request/wire.hpp"

namespace haul::service {

struct Client;
class Hub;

// The first address that no process may use.
inline constexpr std::uint64_t user_end = std::uint64_t{1} << 47;

inline constexpr std::size_t max_grants = 4096;
inline constexpr std::size_t max_bindings = 256;

using Key = std::array<std::uint8_t, wire::key_bytes>;

struct GrantRecord {
  std::uint64_t address = 0, length = 0;
  std::uint32_t rights = 0;
};

class GrantTable {
 public:
  // nullptr, or what is wrong with it.
  const char* put(const wire::Grant& message);
  void withdraw(std::uint64_t index) { grants_.erase(index); }
  const GrantRecord* find(std::uint64_t index) const;
  std::size_t size() const { return grants_.size(); }

 private:
  std::unordered_map<std::uint64_t, GrantRecord> grants_;
};

struct BindingRecord {
  Space space = self_space;  // self_space: the slot is free
  Key key{};                 // whose
  std::uint64_t index = 0;   // which grant
  std::uint64_t owner = 0;   // the client that had the key when it was last looked for
};

class BindingTable {
 public:
  void bind(const BindingRecord& binding) { slots_[binding.space % max_bindings] = binding; }
  void unbind(Space space) {
    if (slots_[space % max_bindings].space == space) slots_[space % max_bindings] = BindingRecord{};
  }
  BindingRecord* find(Space space) {
    BindingRecord& binding = slots_[space % max_bindings];
    return space != self_space && binding.space == space ? &binding : nullptr;
  }
  std::uint32_t count() const;

 private:
  std::array<BindingRecord, max_bindings> slots_{};
};

// Binds a space, replacing what was bound to its slot, and returns the answer. A capability that is
// not good now is kept all the same, because after a restart of the service its owner may attach
// later than its user.
wire::Bound bind(Hub& hub, Client& asker, const wire::Bind& message);

// Whose memory an extent of `asker` lies in, and where there. ok; closed: the asker has no such
// space; permission: there is no such grant (any more), or it lacks the right; fault: the extent
// goes beyond it; peer_gone: the process that granted it has left, or has not come back.
struct OwnedAddress {
  Code code = Code::permission;
  Client* owner = nullptr;
  std::uint64_t address = 0;
};
OwnedAddress owner_of(Hub& hub, Client& asker, Space space, std::uint64_t address,
                      std::uint64_t length, std::uint32_t right);

}  // namespace haul::service
