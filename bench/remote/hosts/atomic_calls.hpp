// Operations asked for again and again, one at a time or many at once, their results checked.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "bench/kit/stats.hpp"
#include "bench/remote/hosts/atomic_nodes.hpp"

namespace haul::bench {

// Those of paper 002, Fig. 4 (a compare&swap that swaps, and one that does not), and plain ones.
enum class Op { add, swap, cas_hit, cas_miss, read, write };
inline constexpr std::array<Op, 6> all_ops = {Op::add,      Op::swap, Op::cas_hit,
                                              Op::cas_miss, Op::read, Op::write};
const char* op_name(Op op);

// How long to go on: whichever is reached first.
struct Limit {
  std::size_t count;
  std::uint64_t ns;
};

struct Calls {
  Samples times_us;
  double rate_per_s = 0;
};
// Calls one after the other, or, every_ns apart: who asks without a pause asks least while nobody
// answers, and so does not see how often that is.
Calls time_calls(const Limit& limit, std::uint64_t every_ns, const std::function<void()>& call);

// Asks for operations on the first word of a window at home, and knows what it holds.
class Asker {
 public:
  Asker(const Node& client, const Window& home);
  // As time_calls(). Throws Failure on a wrong result.
  Calls ask(Op op, const Limit& limit, std::uint64_t every_ns = 0);
  // fetch&adds a second, `batch` of them a packet, `packets` on their way at once.
  double adds_per_s(unsigned batch, unsigned packets, std::uint64_t ns);

 private:
  void call(Op op);
  void check_home() const;

  const Window& home_;
  Remote remote_;
  std::uint64_t address_, current_ = 0;
};

}  // namespace haul::bench
