// Repeats operations, one at a time or many at once, and checks their results.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "bench/kit/stats.hpp"
#include "bench/remote/hosts/atomic_nodes.hpp"

namespace haul::bench {

// The operations of paper 002, Fig. 4 (a compare&swap that swaps, and one that does not), and plain
// reads and writes.
enum class Op { add, swap, cas_hit, cas_miss, read, write };
inline constexpr std::array<Op, 6> all_ops = {Op::add,      Op::swap, Op::cas_hit,
                                              Op::cas_miss, Op::read, Op::write};
const char* op_name(Op op);

// When to stop: at whichever is reached first.
struct Limit {
  std::size_t count;
  std::uint64_t ns;
};

struct Calls {
  Samples times_us;
  double rate_per_s = 0;
};
// Makes calls one after the other or, if every_ns is not 0, that far apart. A client that calls
// without a pause makes the fewest calls just while nobody answers, and so does not see how often
// that happens.
Calls time_calls(const Limit& limit, std::uint64_t every_ns, const std::function<void()>& call);

// Operates on the first word of a window at home, and knows what the word should hold.
class Asker {
 public:
  Asker(const Node& client, const Window& home);
  // As time_calls(). Throws CommandFailure on a wrong result.
  Calls ask(Op op, const Limit& limit, std::uint64_t every_ns = 0);
  // How many fetch&adds are done a second, `batch` of them in a packet, `packets` in flight at
  // once.
  double adds_per_s(unsigned batch, unsigned packets, std::uint64_t ns);

 private:
  void call(Op op);
  void check_home() const;

  const Window& home_;
  Remote remote_;
  std::uint64_t address_, current_ = 0;
};

}  // namespace haul::bench
