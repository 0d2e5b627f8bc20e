// What a process and the node's service say to each other over their socket (SOCK_SEQPACKET, one
// message a packet). Requests go through shared rings (board.hpp); messages are for what happens
// rarely.
//
//   process                                  service
//   Hello + table [, arena]             -->
//                                       <--  Welcome, or Refused and close
//   Arena + memfd                       -->  ArenaKnown: from now on requests may name it
//   Grant                               -->  (no answer)
//   Withdraw                            -->  Withdrawn, once nobody reads or writes there any more
//   Bind                                -->  Bound
//   Unbind                              -->  (no answer)
//   Bell                                -->  (wakes it)
//                                       <--  Reap: a completion queue that was armed has an entry
//                                       <--  Yours: a chunk within the process that the service
//                                            has claimed and cannot move
//                                       <--  Distance: Board::line_ns has changed by much
//                                       <--  Refused and close: it broke the rules
//   either side closes: over. Once a process reads "closed", the service touches nothing of it.
//
//   a monitor (haul top, haul serve --status, --stop)
//   Hello with role monitor             -->  Welcome
//   Query                               -->  Stats, then one ClientStats for each of its `clients`
//   Stop                                -->  close
#pragma once

#include <cstddef>
#include <cstdint>

#include "request/board.hpp"

namespace haul::wire {

inline constexpr std::uint32_t magic = 0x6C756168;  // "haul"
// Raised with any change of a message, of Board or of Ring: other versions are refused by name.
inline constexpr std::uint32_t protocol = 3;
// A second guard against a forgotten raise.
inline constexpr std::uint64_t layout =
    sizeof(Ring) ^ sizeof(Board) << 20 ^ sizeof(Job) << 40 ^ std::uint64_t{Ring::slots} << 48;

enum class MessageKind : std::uint32_t {
  hello = 1,
  welcome,
  refused,
  arena,
  grant,
  withdraw,
  withdrawn,
  bind,
  bound,
  unbind,
  bell,
  reap,
  query,
  stats,
  client_stats,
  stop,
  arena_known,
  distance,
  yours,
};

enum class Role : std::uint32_t { client = 0, monitor = 1 };

inline constexpr std::size_t key_bytes = 16;
inline constexpr std::size_t version_bytes = 16;
inline constexpr std::size_t name_bytes = 16;
inline constexpr unsigned max_weight = 100, default_weight = 10;

// Of a grant (haul_share()).
inline constexpr std::uint32_t may_read = 1, may_write = 2;

struct Hello {  // fds: table; then the arena's, if arena_bytes != 0
  MessageKind kind = MessageKind::hello;
  std::uint32_t magic = wire::magic;
  std::uint32_t protocol = wire::protocol;
  Role role = Role::client;
  std::uint64_t layout = wire::layout;
  char version[version_bytes] = {};  // the library's
  char name[name_bytes] = {};        // the program's, for people
  std::uint32_t weight = default_weight;
  std::uint32_t reserved = 0;
  std::uint8_t key[key_bytes] = {};  // of this process's grants, random
  std::uint64_t arena_base = 0, arena_bytes = 0;
  // A word of this process and its value: the service reads it to learn whether the kernel lets it,
  // and whether it has the right process.
  std::uint64_t probe_address = 0, probe_value = 0;
};

struct Welcome {
  MessageKind kind = MessageKind::welcome;
  std::uint32_t protocol = wire::protocol;
  char version[version_bytes] = {};
  std::int32_t pid = 0;  // in the service's own pid namespace
  // 1: the kernel lets the service read and write this process's memory (process_vm_readv). 0: only
  // what is mapped is reached; `why` says why.
  std::uint32_t reaches_memory = 0;
  char why[160] = {};
};

struct Refused {
  MessageKind kind = MessageKind::refused;
  std::int32_t code = 0;  // a Code
  char version[version_bytes] = {};
  char sentence[200] = {};
};

struct ArenaHandover {  // fds: the arena's. (One that Hello named already is answered all the
                        // same.)
  MessageKind kind = MessageKind::arena;
  std::uint32_t reserved = 0;
  std::uint64_t base = 0, bytes = 0;
};

struct ArenaKnown {
  MessageKind kind = MessageKind::arena_known;
  std::uint32_t reserved = 0;
  std::uint64_t base = 0, bytes = 0;
};

struct Grant {
  MessageKind kind = MessageKind::grant;
  std::uint32_t rights = 0;  // may_read | may_write
  std::uint64_t index =
      0;  // unguessable, chosen by the process; one that it has granted is replaced
  std::uint64_t address = 0, length = 0;
};

struct Withdraw {
  MessageKind kind = MessageKind::withdraw;
  std::uint32_t reserved = 0;
  std::uint64_t index = 0;
};

struct Withdrawn {
  MessageKind kind = MessageKind::withdrawn;
  std::uint32_t reserved = 0;
  std::uint64_t index = 0;
};

// The process will name the granted memory by this space in its requests; byte 0 is its first.
struct Bind {
  MessageKind kind = MessageKind::bind;
  std::uint32_t space = 0;  // its low byte is a slot: an older space of the same slot is unbound
  std::uint8_t key[key_bytes] = {};
  std::uint64_t index = 0;
};

struct Bound {
  MessageKind kind = MessageKind::bound;
  std::uint32_t space = 0;
  std::int32_t code = 0;  // ok; permission: there is no such grant
  std::uint32_t rights = 0;
  std::uint64_t length = 0;  // bytes granted
};

struct Unbind {
  MessageKind kind = MessageKind::unbind;
  std::uint32_t space = 0;
};

struct Bell {
  MessageKind kind = MessageKind::bell;
};

struct Reap {
  MessageKind kind = MessageKind::reap;
  std::uint32_t ring = 0;
};

struct Distance {
  MessageKind kind = MessageKind::distance;
  std::uint32_t line_ns = 0;
};

struct Yours {
  MessageKind kind = MessageKind::yours;
  std::uint32_t ring = 0;
  std::uint64_t seq = 0;
  std::uint32_t chunk = 0;
  std::int32_t code =
      0;  // why; permission: the service reaches none of the process's private memory
};

struct Query {
  MessageKind kind = MessageKind::query;
};

struct Stats {
  MessageKind kind = MessageKind::stats;
  std::uint32_t clients = 0;
  std::int32_t pid = 0, cpu = -1;  // cpu: -1 while it sleeps or is not pinned
  std::uint32_t state = 0;         // 1 awake, 2 asleep, 3 awake without the lease (as haul_state)
  std::uint32_t grants = 0;
  char version[version_bytes] = {};
  std::uint64_t uptime_ns = 0, cpu_ns = 0;
  std::uint64_t requests = 0, failed = 0, bytes = 0;  // of all clients, those gone included
  std::uint64_t refusals = 0;                         // processes sent away, and clients dropped
  std::uint64_t mapped_bytes = 0, map_budget_bytes = 0;
  std::uint64_t maps = 0, evictions = 0;  // mappings made, and given up for room
};

struct ClientStats {
  MessageKind kind = MessageKind::client_stats;
  std::int32_t pid = 0;
  std::uint32_t uid = 0, weight = 0;
  char name[name_bytes] = {};
  std::uint32_t rings = 0, grants = 0, bindings = 0;
  std::uint32_t reaches_memory = 0;
  std::uint64_t attached_ns = 0;           // how long it has been attached
  std::uint64_t requests = 0, failed = 0;  // ended
  std::uint64_t chunks = 0;
  std::uint64_t mapped_copy_bytes = 0, kernel_copy_bytes = 0;  // moved by mapping, by process_vm_*
  std::uint64_t queue_depth = 0;  // requests published for it and not ended, now
  std::uint64_t busy_ns = 0;      // the service's time with its bytes: time it was spared
  std::uint64_t mapped_bytes = 0;
};

struct Stop {
  MessageKind kind = MessageKind::stop;
};

inline constexpr std::size_t max_message_bytes = 512;
static_assert(sizeof(Hello) <= max_message_bytes && sizeof(Stats) <= max_message_bytes &&
              sizeof(Refused) <= max_message_bytes && sizeof(ClientStats) <= max_message_bytes);

}  // namespace haul::wire
