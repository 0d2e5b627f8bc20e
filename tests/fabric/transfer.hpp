// Every way to send and to receive one message, behind one call each, so that a test can go through
// all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "node.hpp"

namespace fabric_test {

enum class Kind { message, tagged };
enum class Send { plain, vector, msg, data, inject, inject_data, msg_inject, msg_data };
enum class Receive { plain, vector, msg };

inline constexpr Kind all_kinds[] = {Kind::message, Kind::tagged};
inline constexpr Send all_sends[] = {Send::plain,      Send::vector,  Send::msg,
                                     Send::data,       Send::inject,  Send::inject_data,
                                     Send::msg_inject, Send::msg_data};
inline constexpr Receive all_receives[] = {Receive::plain, Receive::vector, Receive::msg};

const char* name_of(Kind kind);
const char* name_of(Send form);
const char* name_of(Receive form);

struct Outgoing {
  Kind kind = Kind::tagged;
  Send form = Send::plain;
  fi_addr_t to = FI_ADDR_UNSPEC;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::uint64_t flags = 0;          // of the forms that take flags
  std::vector<std::size_t> cuts{};  // of the forms that take vectors: lengths of all parts but one
};

struct Incoming {
  Kind kind = Kind::tagged;
  Receive form = Receive::plain;
  fi_addr_t from = FI_ADDR_UNSPEC;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  std::uint64_t flags = 0;
  std::vector<std::size_t> cuts{};
};

// Forms that complete with no entry in the queue.
bool is_silent(Send form);
bool is_injected(Send form);
bool carries_data(Send form);

// Both post until the provider takes it; the status of the last call.
ssize_t send(Node& node, const Outgoing& how, const void* buffer, std::size_t size, Op& op);
ssize_t receive(Node& node, const Incoming& how, void* buffer, std::size_t size, Op& op);

// The parts of a buffer: lengths as cut, and what is left.
std::vector<iovec> parts_of(const void* buffer, std::size_t size,
                            const std::vector<std::size_t>& cuts);

// Sends and receives one message, checks bytes, tag, length and data on both sides of a pair.
void check_transfer(Pair& pair, const Outgoing& out, const Incoming& in, std::size_t size);

}  // namespace fabric_test
