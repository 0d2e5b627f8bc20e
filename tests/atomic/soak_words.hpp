// The words of the soak's window, and what is done to each: few that all clients share, many that
// one client has for itself.
#pragma once

#include <cstdint>

namespace atomic_test {

enum class Use : std::uint8_t {
  counter,  // fetch&add of 1 alone: the numbers drawn tell the order
  chain,    // swaps of values that never repeat: what each found tells the order
  any,      // every operation, of both widths: the order is searched for
  guarded   // every operation with tokens, some of them old: likewise, with the stamp
};

class Words {
 public:
  static constexpr unsigned counters = 4, chains = 4, shared_any = 16, guarded = 4;
  static constexpr unsigned first_any = counters + chains;
  static constexpr unsigned first_guarded = first_any + shared_any;
  static constexpr unsigned shared = first_guarded + guarded;
  static constexpr unsigned own = 1024;  // of each client

  explicit Words(unsigned clients) : count_(shared + clients * own) {}

  unsigned count() const { return count_; }
  std::uint64_t bytes() const { return std::uint64_t{count_} * 8; }

  static Use use(unsigned word) {
    if (word < counters) return Use::counter;
    if (word < first_any) return Use::chain;
    return word >= first_guarded && word < shared ? Use::guarded : Use::any;
  }
  // Is the order of what is done to it searched for?
  static bool is_searched(unsigned word) { return word >= first_any; }
  // Of counters and chains: every other one is of 4 bytes.
  static unsigned width(unsigned word) { return word % 2 == 0 ? 8 : 4; }
  static unsigned own_word(unsigned client, unsigned i) { return shared + client * own + i; }

 private:
  unsigned count_;
};

}  // namespace atomic_test
