// Nodes and connections.
#include <algorithm>
#include <cstdio>

#include "atomic/api/handles.hpp"
#include "atomic/node/specification.hpp"

namespace haul::atomics {
namespace {

constexpr std::uint32_t default_sessions = 256, most_sessions = 65536;
constexpr std::uint32_t default_connections = 64, most_connections = 4096;
constexpr std::uint32_t default_spin_us = 50;
constexpr std::uint64_t default_timeout_ns = 5'000'000'000;
constexpr std::uint64_t most_timeout_ns = 1ull << 62;  // for ever; now + this does not overflow

// Zeros become the defaults. "" or what is wrong.
const char* complete(haul_atomic_node_options* options) noexcept {
  if (options->hearing > HAUL_ATOMIC_HEAR_SOCKET) return "hearing is none of haul_atomic_hearing";
  if (options->reserved != 0) return "reserved is not 0; zero the options before filling them in";
  if (options->sessions == 0) options->sessions = default_sessions;
  if (options->sessions > most_sessions) return "sessions is above 65536; ask for fewer";
  if (options->connections == 0) options->connections = default_connections;
  if (options->connections > most_connections) return "connections is above 4096; ask for fewer";
  if (options->cpu_plus_1 < 0) return "cpu_plus_1 is negative; 0 means any CPU";
  if (options->spin_us == 0) options->spin_us = default_spin_us;
  if (options->timeout_ns == 0) options->timeout_ns = default_timeout_ns;
  options->timeout_ns = std::min(options->timeout_ns, most_timeout_ns);
  return "";
}

}  // namespace
}  // namespace haul::atomics

using namespace haul::atomics;

extern "C" int haul_atomic_node_open(const char* responder, const haul_atomic_node_options* options,
                                     haul_atomic_node** node) {
  const haul::Uncancelled guard;
  if (node == nullptr || responder == nullptr) return refuse("responder or node is NULL");
  *node = nullptr;
  haul_atomic_node_options complete_options{};
  if (options != nullptr) {
    if (options->size != sizeof *options) {
      return refuse("options.size is not sizeof(haul_atomic_node_options); set it");
    }
    complete_options = *options;
  }
  const char* wrong = complete(&complete_options);
  if (wrong[0] != '\0') return refuse(wrong);
  haul::Error error;
  Specification specification;
  if (!parse_specification(responder, &specification, &error)) return fail(error);
  haul::Expected<Node*> made = Node::open(specification, complete_options);
  if (!made) return fail(made.error());
  *node = to_c(*made);
  return 0;
}

extern "C" int haul_atomic_node_close(haul_atomic_node* node) {
  const haul::Uncancelled guard;
  if (node == nullptr) return 0;
  if (const int wrong = check_here(node); wrong != 0) return wrong;
  delete from_c(node);
  return 0;
}

extern "C" int haul_atomic_node_describe(haul_atomic_node* node, char* text, size_t bytes) {
  const haul::Uncancelled guard;
  if (node == nullptr || text == nullptr || bytes == 0) return refuse("node or text is NULL");
  if (const int wrong = check_here(node); wrong != 0) return wrong;
  snprintf(text, bytes, "%s%s", from_c(node)->description(),
           from_c(node)->has_lost_service()
               ? "; not serving: this process has closed its descriptors (closefrom()?)"
               : "");
  return 0;
}

extern "C" int haul_atomic_node_counters(haul_atomic_node* node, uint64_t* values, size_t count) {
  const haul::Uncancelled guard;
  if (node == nullptr || (values == nullptr && count != 0)) return refuse("node or values is NULL");
  if (const int wrong = check_here(node); wrong != 0) return wrong;
  std::uint64_t all[Node::counter_count];
  from_c(node)->counters(all);
  for (std::size_t i = 0; i < count && i < Node::counter_count; ++i) values[i] = all[i];
  return Node::counter_count;
}

extern "C" const char* haul_atomic_node_counter_name(size_t index) {
  return Node::counter_name(index);
}

extern "C" int haul_atomic_connect(haul_atomic_node* node, const haul_atomic_window_name* name,
                                   haul_atomic_remote** remote) {
  const haul::Uncancelled guard;
  if (node == nullptr || name == nullptr || remote == nullptr) {
    return refuse("node, name or remote is NULL");
  }
  *remote = nullptr;
  if (const int wrong = check_here(node); wrong != 0) return wrong;
  if (const int wrong = check_name(*name); wrong != 0) return wrong;
  haul::Expected<RemoteConnection*> made = from_c(node)->carrier().connect(*name);
  if (!made) return fail(made.error());
  *remote = to_c(*made);
  return 0;
}

extern "C" int haul_atomic_disconnect(haul_atomic_remote* remote) {
  const haul::Uncancelled guard;
  if (remote == nullptr) return 0;
  if (const int wrong = check(remote); wrong != 0) return wrong;
  from_c(remote)->carrier().disconnect(from_c(remote));
  return 0;
}
