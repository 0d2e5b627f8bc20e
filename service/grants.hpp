// Memory that one process lets others copy from or to (haul_share()), and the names under which
// others use it. Nothing is remembered across quanta but a client's number and a grant's index:
// both are looked up anew for each, so that what was withdrawn is out of reach at once.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "request/wire.hpp"

namespace haul::service {

struct Client;
class Node;

inline constexpr std::size_t max_grants = 4096;
inline constexpr std::size_t max_bindings = 256;

struct Grant {
  std::uint64_t address = 0, length = 0;
  std::uint32_t rights = 0;
};

class GrantTable {
 public:
  // nullptr, or what is wrong with it.
  const char* put(const wire::Grant& message);
  void withdraw(std::uint64_t index) { grants_.erase(index); }
  const Grant* find(std::uint64_t index) const;
  std::size_t size() const { return grants_.size(); }

 private:
  std::unordered_map<std::uint64_t, Grant> grants_;
};

struct Binding {
  Space space = self_space;  // self_space: the slot is free
  std::uint64_t owner = 0;   // a client's id
  std::uint64_t index = 0;   // of its grant
};

class BindingTable {
 public:
  void bind(Space space, std::uint64_t owner, std::uint64_t index) {
    slots_[space % max_bindings] = Binding{space, owner, index};
  }
  void unbind(Space space) {
    if (slots_[space % max_bindings].space == space) slots_[space % max_bindings] = Binding{};
  }
  void clear_slot_of(Space space) { slots_[space % max_bindings] = Binding{}; }
  const Binding* find(Space space) const {
    const Binding& binding = slots_[space % max_bindings];
    return space != self_space && binding.space == space ? &binding : nullptr;
  }
  std::uint32_t count() const;

 private:
  std::array<Binding, max_bindings> slots_{};
};

// Binds; the answer.
wire::Bound bind(Node& node, Client& asker, const wire::Bind& message);

// Whose memory an extent of `asker` is in, and where there. ok; permission: there is no such grant
// (any more), it does not reach so far, or lacks the right; peer_gone: who granted it has left.
struct Reach {
  Code code = Code::permission;
  Client* owner = nullptr;
  std::uint64_t address = 0;
};
Reach reach(Node& node, Client& asker, Space space, std::uint64_t address, std::uint64_t length,
            std::uint32_t right);

}  // namespace haul::service
