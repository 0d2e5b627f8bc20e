#include "tests/atomic/lock_check.hpp"

#include <algorithm>
#include <vector>

namespace atomic_test {
namespace {

struct Held {
  std::uint64_t token, asked_ns, held_ns, end_ns;  // nobody else could have it before the end
};
struct Step {
  std::uint64_t token;
  std::uint32_t value;
};

struct Records {
  std::vector<Held> holds;
  std::vector<Step> done, unknown;
};

void collect(const Hold& hold, Records* records, LockVerdict* verdict) {
  const std::uint64_t let_go_ns = hold.let_go_ns.load(std::memory_order_acquire);
  std::uint64_t end_ns = hold.safe_until_ns.load(std::memory_order_acquire);
  if (let_go_ns != 0) end_ns = std::min(end_ns, let_go_ns);
  records->holds.push_back({hold.token, hold.asked_ns, hold.held_ns, end_ns});
  verdict->longest_wait_ns = std::max(verdict->longest_wait_ns, hold.held_ns - hold.asked_ns);
  for (const Increment& increment : hold.increments) {
    switch (increment.fate.load(std::memory_order_acquire)) {
      case Fate::none: break;
      case Fate::stale: ++verdict->stale; break;
      case Fate::unknown: records->unknown.push_back({hold.token, increment.value}); break;
      case Fate::done: records->done.push_back({hold.token, increment.value}); break;
    }
  }
}

Records collect(const Board& board, LockVerdict* verdict) {
  Records records;
  for (const Slot& slot : board.slots) {
    const std::uint64_t count = slot.hold_count.load(std::memory_order_acquire);
    for (std::uint64_t i = 0; i < count; ++i) collect(slot.holds[i], &records, verdict);
    verdict->interleaved += slot.interleaved.load(std::memory_order_relaxed);
  }
  verdict->holds = records.holds.size();
  verdict->done = records.done.size();
  verdict->unknown = records.unknown.size();
  return records;
}

std::string text(std::uint64_t number) {
  return std::to_string(number);
}

// Each is of one holder; who asked after another had it has a greater one.
std::string check_tokens(const std::vector<Held>& holds, const LockEnd& end) {
  std::vector<std::uint64_t> tokens;
  std::vector<const Held*> by_held, by_asked;
  for (const Held& hold : holds) {
    tokens.push_back(hold.token);
    by_held.push_back(&hold);
    by_asked.push_back(&hold);
  }
  std::sort(tokens.begin(), tokens.end());
  const auto twice = std::adjacent_find(tokens.begin(), tokens.end());
  if (twice != tokens.end()) return "token " + text(*twice) + " was given twice";
  if (!tokens.empty() && tokens.back() >= end.token) {
    return "the last token is " + text(end.token) + ", an earlier one " + text(tokens.back());
  }
  std::sort(by_held.begin(), by_held.end(),
            [](const Held* a, const Held* b) { return a->held_ns < b->held_ns; });
  std::sort(by_asked.begin(), by_asked.end(),
            [](const Held* a, const Held* b) { return a->asked_ns < b->asked_ns; });
  std::uint64_t greatest = 0;
  auto earlier = by_held.begin();
  for (const Held* hold : by_asked) {
    for (; (*earlier)->held_ns < hold->asked_ns; ++earlier) {
      greatest = std::max(greatest, (*earlier)->token);
    }
    if (hold->token < greatest) {
      return "token " + text(hold->token) + " was given after " + text(greatest);
    }
  }
  return "";
}

std::string check_leases(std::vector<Held> holds) {
  std::sort(holds.begin(), holds.end(),
            [](const Held& a, const Held& b) { return a.held_ns < b.held_ns; });
  const Held* last = nullptr;
  for (const Held& hold : holds) {
    if (hold.end_ns <= hold.held_ns) continue;  // its lease was over when it heard
    if (last != nullptr && hold.held_ns < last->end_ns) {
      return "the holder of token " + text(hold.token) + " had the lock " +
             text(last->end_ns - hold.held_ns) + " ns before the lease of token " +
             text(last->token) + " was over";
    }
    last = &hold;
  }
  return "";
}

// Every value from 1 on was written once, by tokens that never go back. Values that nobody says he
// has written are those of members that died before they heard.
std::string check_values(Records records, const LockEnd& end) {
  const auto by_value = [](const Step& a, const Step& b) { return a.value < b.value; };
  std::sort(records.done.begin(), records.done.end(), by_value);
  std::uint32_t value = 0;
  std::uint64_t token = 0;
  const auto unknown_up_to = [&](std::uint32_t until) {
    for (; value < until; ++value) {
      const auto fits = [&](const Step& step) {
        return step.value == value + 1 && step.token >= token;
      };
      if (std::none_of(records.unknown.begin(), records.unknown.end(), fits)) return false;
    }
    return true;
  };
  for (const Step& step : records.done) {
    if (step.value <= value) return "the value " + text(step.value) + " was written twice";
    if (!unknown_up_to(step.value - 1)) return "nobody has written " + text(value + 1);
    if (step.token < token) {
      return "token " + text(step.token) + " wrote behind token " + text(token);
    }
    value = step.value;
    token = step.token;
  }
  if (value > end.value) {
    return "the word ends with " + text(end.value) + ", though " + text(value) + " was written";
  }
  if (!unknown_up_to(end.value)) return "nobody has written " + text(value + 1);
  return "";
}

}  // namespace

LockVerdict check_lock(const Board& board, const LockEnd& end) {
  LockVerdict verdict;
  const Records records = collect(board, &verdict);
  if (verdict.interleaved != 0) {
    verdict.wrong = text(verdict.interleaved) + " increments had another's in between";
  }
  if (verdict.wrong.empty()) verdict.wrong = check_tokens(records.holds, end);
  if (verdict.wrong.empty()) verdict.wrong = check_leases(records.holds);
  if (verdict.wrong.empty()) verdict.wrong = check_values(records, end);
  return verdict;
}

}  // namespace atomic_test
