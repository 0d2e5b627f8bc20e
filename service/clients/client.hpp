// What the service knows of one process. Nothing of it lies in memory that the process can write.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/os/descriptor.hpp"
#include "execution/execution.hpp"
#include "request/board.hpp"
#include "request/wire.hpp"
#include "service/clients/grants.hpp"
#include "service/clients/views.hpp"

namespace haul::service {

// A chunk that this service has claimed.
struct Flight {
  bool active = false;
  ChunkRun run;
  unsigned waited = 0;  // how often it has waited for its client's message about the arena
};

struct RingState {
  std::uint32_t index = 0;
  std::uint64_t cursor = Ring::first_seq;       // the next seq to look at
  std::uint64_t ahead = Ring::first_seq;        // the next to look at past a large request
  std::uint64_t ended_below = Ring::first_seq;  // all earlier tenancies have ended
  Chunks checked;                               // the latest plan that was found sound
  Flight flight;
};

// What has been done, for statistics.
struct Tally {
  std::uint64_t requests = 0, failed = 0, chunks = 0;
  std::uint64_t mapped_copy_bytes = 0, kernel_copy_bytes = 0;
  std::uint64_t busy_ticks = 0;

  void add(const Tally& other) {
    requests += other.requests;
    failed += other.failed;
    chunks += other.chunks;
    mapped_copy_bytes += other.mapped_copy_bytes;
    kernel_copy_bytes += other.kernel_copy_bytes;
    busy_ticks += other.busy_ticks;
  }
};

struct Client {
  std::uint64_t id = 0;   // never given twice
  os::Descriptor socket;  // the connection's
  pid_t pid = 0;          // 0: it has none in this pid namespace
  std::string name;       // for people; printable
  unsigned weight = wire::default_weight;
  Key key{};
  std::uint64_t since_ns = 0;
  std::uint64_t user_seen_ns = 0;  // when its user was last looked at

  std::byte* table = nullptr;  // shared_table_bytes of it, hostile
  ArenaViews arena;
  Space space = self_space;  // self_space: the kernel does not let the service reach its memory
  std::vector<RingState> rings;
  std::uint64_t shared[max_shared_rings / 64] = {};  // the board's words as `rings` follows them
  std::size_t next_ring = 0;
  std::int64_t credit = 0;  // bytes it may still move; below 0: a debt

  GrantTable grants;
  BindingTable bindings;

  Tally tally;
  std::uint64_t line_sampled_ticks = 0;
  double line_ticks = 0;
  unsigned lines_sampled = 0;
  std::uint32_t told_line_ns = 0;  // the distance that it was last told

  // Set: it is not served any more, and will be dropped with this sentence.
  bool doomed = false;
  Code doom_code = Code::ok;
  std::string doom;
  bool* alarm = nullptr;  // the hub's, raised when a client is condemned

  Board& board() { return *reinterpret_cast<Board*>(table); }
  Ring& ring(std::uint32_t index) { return *reinterpret_cast<Ring*>(table + ring_offset(index)); }
  void condemn(Code code, std::string why) {
    if (doomed) return;
    doomed = true;
    if (alarm != nullptr) *alarm = true;
    doom_code = code;
    doom = std::move(why);
  }
};

// Reads a value of memory that another process may change meanwhile: once, into a private copy.
template <class T>
T read_once(const T& shared) {
  static_assert(std::is_integral_v<T>);
  return __atomic_load_n(&shared, __ATOMIC_RELAXED);
}

// printf into a string, cut at 400 bytes.
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);

}  // namespace haul::service
