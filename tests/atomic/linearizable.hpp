// Is a history of operations on one word linearizable? Is there one order of all of them that
// agrees with every old value, in which none comes behind one that began after it had ended, and in
// which those of a packet keep their order?
//
// Where the values alone tell the order (numbers drawn from a counter, a chain of swaps), that
// order is checked, in O(n log n). Otherwise orders are searched for, just in time (Lowe, "Testing
// for linearizability", 2017): an operation is put into the order when its end demands it.
#pragma once

#include <haul/atomic.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace atomic_test {

// An operation that was answered.
struct Done {
  std::uint64_t begin_ns = 0, end_ns = 0;  // it took effect in between; one clock for all
  std::uint64_t operand = 0, compare = 0, old = 0;
  std::uint32_t packet = 0;  // a number no other packet of the history has
  std::uint8_t index = 0;    // in its packet
  std::uint8_t code = 0;     // haul_atomic_code
  std::uint8_t width = 8;
  std::uint8_t half = 0;  // of width 4: which half of the word
  bool guarded = false;   // the word is {stamp 32, value 32}
  bool stale = false;     // it was refused as older than the word's stamp
  std::uint32_t stamp = 0;
};

struct Verdict {
  enum Kind { right, wrong, undecided } kind = right;
  std::string why;                     // of wrong and undecided ones
  std::vector<std::uint64_t> finally;  // what the word may hold after a right one
};

inline Verdict refuse(std::string why) {
  return {Verdict::wrong, std::move(why), {}};
}

inline std::uint64_t mask_of(const Done& done) {
  return done.width == 8 && !done.guarded ? ~std::uint64_t{0} : 0xffffffffu;
}

inline std::string found_by(const Done& done) {
  const std::string stamp = done.guarded ? " (stamp " + std::to_string(done.stamp) + ")" : "";
  if (done.stale) return "the refusal" + stamp + " of";
  return "the old value " + std::to_string(done.old) + stamp + " of";
}

// What a word of 64 bits holds after an operation, and what that says was there before.
struct Effect {
  std::uint64_t next, old;
  bool stale = false;
};

inline std::uint64_t stamped(std::uint32_t stamp, std::uint64_t value) {
  return std::uint64_t{stamp} << 32 | (value & 0xffffffffu);
}

inline Effect effect_of(const Done& done, std::uint64_t word) {
  const unsigned shift = done.width == 4 && done.half != 0 ? 32 : 0;
  const std::uint64_t mask = mask_of(done), old = word >> shift & mask;
  std::uint64_t next = old;
  // Stamps are compared modulo 2^32.
  if (done.guarded && static_cast<std::int32_t>(done.stamp - (word >> 32)) < 0) {
    return {word, 0, true};
  }
  switch (done.code) {
    case HAUL_ATOMIC_WRITE:
    case HAUL_ATOMIC_SWAP: next = done.operand; break;
    case HAUL_ATOMIC_ADD: next = old + done.operand; break;
    case HAUL_ATOMIC_CAS: next = old == (done.compare & mask) ? done.operand : old; break;
    case HAUL_ATOMIC_AND: next = old & done.operand; break;
    case HAUL_ATOMIC_OR: next = old | done.operand; break;
    case HAUL_ATOMIC_XOR: next = old ^ done.operand; break;
    default: break;
  }
  next =
      done.guarded ? stamped(done.stamp, next) : (word & ~(mask << shift)) | (next & mask) << shift;
  return {next, done.code == HAUL_ATOMIC_WRITE ? 0 : old};
}

// Does this order keep to real time and to the packets?
inline Verdict check_order(const std::vector<const Done*>& order) {
  std::uint64_t first_end = std::numeric_limits<std::uint64_t>::max();
  std::unordered_map<std::uint32_t, std::uint8_t> later;  // the first index of those behind
  for (std::size_t i = order.size(); i-- > 0;) {
    const Done& done = *order[i];
    if (first_end < done.begin_ns) {
      return refuse("operation " + std::to_string(i) +
                    " of the order began after a later one of "
                    "it had ended");
    }
    const auto [found, is_new] = later.emplace(done.packet, done.index);
    if (!is_new && found->second <= done.index) {
      return refuse("operation " + std::to_string(i) +
                    " of the order stands before one that its "
                    "packet has in front of it");
    }
    found->second = done.index;
    first_end = std::min(first_end, done.end_ns);
  }
  return {};
}

// Of a word to which only 1 was added, `history.size()` times: every number was drawn once.
inline Verdict check_counter(std::uint64_t initially, const std::vector<Done>& history) {
  std::vector<const Done*> order(history.size());
  for (const Done& done : history) {
    const std::uint64_t place = (done.old - initially) & mask_of(done);
    if (place >= order.size()) {
      return refuse("the number " + std::to_string(done.old) + " was drawn by none of these");
    }
    if (order[place] != nullptr) {
      return refuse("the number " + std::to_string(done.old) + " was drawn twice");
    }
    order[place] = &done;
  }
  Verdict verdict = check_order(order);
  const std::uint64_t mask = history.empty() ? ~std::uint64_t{0} : mask_of(history.front());
  verdict.finally = {(initially + history.size()) & mask};
  return verdict;
}

// Of a word into which only values were swapped of which no two are equal.
inline Verdict check_chain(std::uint64_t initially, const std::vector<Done>& history) {
  std::unordered_map<std::uint64_t, const Done*> behind;  // by what they found
  behind.reserve(history.size());
  for (const Done& done : history) {
    if (!behind.emplace(done.old, &done).second) {
      return refuse("the value " + std::to_string(done.old) + " was found twice");
    }
  }
  std::vector<const Done*> order;
  order.reserve(history.size());
  std::uint64_t word = initially;
  while (order.size() < history.size()) {
    const auto next = behind.find(word);
    if (next == behind.end()) {
      return refuse("the value " + std::to_string(word) + " was found by nobody, though " +
                    std::to_string(history.size() - order.size()) + " came behind it");
    }
    order.push_back(next->second);
    word = next->second->operand & mask_of(*next->second);
    behind.erase(next);
  }
  Verdict verdict = check_order(order);
  verdict.finally = {word};
  return verdict;
}

// The search for an order of any operations, of which at most 64 at a time are unanswered.
class Search {
 public:
  Search(std::uint64_t initially, const std::vector<Done>& history)
      : configurations_{{initially, 0}} {
    sort(history);
  }

  Verdict run() {
    for (const Event& event : events_) {
      if (!event.is_end) {
        if (~pending_ == 0) return {Verdict::undecided, "more than 64 at once", {}};
        begin(event.done);
        continue;
      }
      if (!end(*event.done)) return {Verdict::undecided, "too many orders are possible", {}};
      if (configurations_.empty()) {
        return refuse("no order explains " + found_by(*event.done) + " operation " +
                      std::to_string(event.done->index) + " of packet " +
                      std::to_string(event.done->packet) + " (code " +
                      std::to_string(event.done->code) + ")");
      }
    }
    Verdict verdict;
    for (const Configuration& one : configurations_) verdict.finally.push_back(one.word);
    return verdict;
  }

 private:
  // What an order so far has led to: the word, and those that are in it though they have not ended.
  struct Configuration {
    std::uint64_t word, taken;
    bool operator==(const Configuration&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Configuration& one) const {
      return (one.word ^ one.taken * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull >> 7;
    }
  };
  using Set = std::unordered_set<Configuration, Hash>;
  struct Event {
    std::uint64_t time_ns;
    const Done* done;
    bool is_end;
  };
  static constexpr std::size_t most_configurations = 1 << 20;

  void sort(const std::vector<Done>& history) {
    events_.reserve(2 * history.size());
    for (const Done& done : history) {
      events_.push_back({done.begin_ns, &done, false});
      events_.push_back({done.end_ns, &done, true});
    }
    // At the same time: beginnings first, which allows most.
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
      if (a.is_end != b.is_end) return b.is_end;
      if (a.done->packet != b.done->packet) return a.done->packet < b.done->packet;
      return a.done->index < b.done->index;
    });
  }

  static std::uint64_t bit(unsigned place) { return std::uint64_t{1} << place; }

  void begin(const Done* done) {
    const unsigned place = static_cast<unsigned>(__builtin_ctzll(~pending_));
    pending_ |= bit(place);
    operations_[place] = done;
    // The one in front of it in its packet began just before.
    before_[place] = last_ != nullptr && last_->packet == done->packet ? bit(last_place_) : 0;
    last_ = done;
    last_place_ = place;
  }

  // False: given up.
  bool end(const Done& done) {
    unsigned place = 0;
    while ((pending_ & bit(place)) == 0 || operations_[place] != &done) ++place;
    next_.clear();
    for (const Configuration& one : configurations_) {
      if (!extend(one, place)) return false;
    }
    std::swap(configurations_, next_);
    pending_ &= ~bit(place);
    for (std::uint64_t& mask : before_) mask &= ~bit(place);
    if (last_ == &done) last_ = nullptr;
    return true;
  }

  bool may_come(const Configuration& one, unsigned place) const {
    if ((one.taken & bit(place)) != 0 || (before_[place] & ~one.taken) != 0) return false;
    const Done& done = *operations_[place];
    const Effect effect = effect_of(done, one.word);
    return effect.old == done.old && effect.stale == done.stale;
  }

  // Takes what may come now and leaves the word as it is: later it could do no more.
  void settle(Configuration* one) const {
    for (bool again = true; again;) {
      again = false;
      for (std::uint64_t left = pending_ & ~one->taken; left != 0; left &= left - 1) {
        const unsigned place = static_cast<unsigned>(__builtin_ctzll(left));
        if (may_come(*one, place) && effect_of(*operations_[place], one->word).next == one->word) {
          one->taken |= bit(place);
          again = true;
        }
      }
    }
  }

  // All orders that lead on from this configuration to one that has the operation at `wanted`.
  bool extend(const Configuration& from, unsigned wanted) {
    seen_.clear();
    stack_.assign(1, from);
    while (!stack_.empty()) {
      Configuration one = stack_.back();
      stack_.pop_back();
      settle(&one);
      if ((one.taken & bit(wanted)) != 0) {
        next_.insert({one.word, one.taken & ~bit(wanted)});
        continue;
      }
      for (std::uint64_t left = pending_ & ~one.taken; left != 0; left &= left - 1) {
        const unsigned place = static_cast<unsigned>(__builtin_ctzll(left));
        if (!may_come(one, place)) continue;
        const Configuration more{effect_of(*operations_[place], one.word).next,
                                 one.taken | bit(place)};
        if (seen_.insert(more).second) stack_.push_back(more);
      }
      if (seen_.size() + next_.size() > most_configurations) return false;
    }
    return true;
  }

  std::vector<Event> events_;
  Set configurations_, next_, seen_;
  std::vector<Configuration> stack_;
  std::uint64_t pending_ = 0;        // bits of places
  const Done* operations_[64] = {};  // by place
  std::uint64_t before_[64] = {};    // who must come before it
  const Done* last_ = nullptr;
  unsigned last_place_ = 0;
};

inline Verdict check_any(std::uint64_t initially, const std::vector<Done>& history) {
  return Search(initially, history).run();
}

}  // namespace atomic_test
