#include "engine/fault/schedule.hpp"

#include <cstring>

namespace haul::fault {
namespace {

// A cursor over the text of one rule.
struct RuleReader {
  const char* at;
  const char* end;

  bool done() const noexcept { return at == end; }

  bool take(const char* word) noexcept {
    const std::size_t length = std::strlen(word);
    if (static_cast<std::size_t>(end - at) < length || std::memcmp(at, word, length) != 0) {
      return false;
    }
    at += length;
    return true;
  }

  bool number(std::uint64_t maximum, std::uint64_t& value) noexcept {
    if (done() || *at < '0' || *at > '9') return false;
    value = 0;
    for (; !done() && *at >= '0' && *at <= '9'; ++at) {
      const auto digit = static_cast<std::uint64_t>(*at - '0');
      if (value > (maximum - digit) / 10) return false;
      value = value * 10 + digit;
    }
    return value <= maximum;
  }

  bool number(std::uint32_t maximum, std::uint32_t& value) noexcept {
    std::uint64_t wide = 0;
    if (!number(std::uint64_t{maximum}, wide)) return false;
    value = static_cast<std::uint32_t>(wide);
    return true;
  }

  bool code(Code& value) noexcept {
    struct Name {
      const char* text;
      Code code;
    };
    static constexpr Name names[] = {{"fault", Code::fault},
                                     {"no_memory", Code::no_memory},
                                     {"permission", Code::permission},
                                     {"peer_gone", Code::peer_gone},
                                     {"not_supported", Code::not_supported},
                                     {"io", Code::io}};
    for (const Name& name : names) {
      if (take(name.text)) {
        value = name.code;
        return true;
      }
    }
    return false;
  }

  // Nothing, or "@N" with N from 1.
  bool at_piece(std::uint64_t& piece) noexcept {
    if (!take("@")) return true;
    return number(UINT64_MAX, piece) && piece != 0;
  }
};

bool parse_scheduled_rule(RuleReader reader, Rule& rule) noexcept {
  if (reader.take("delay=")) {
    if (!reader.number(std::uint32_t{10'000'000}, rule.amount)) return false;
    rule.kind = reader.take("us") ? RuleKind::delay_us : RuleKind::delay_polls;
    if (rule.kind == RuleKind::delay_polls && rule.amount > 1'000'000) return false;
  } else if (reader.take("partial=")) {
    rule.kind = RuleKind::partial;
    if (!reader.number(std::uint32_t{100}, rule.amount) || !reader.take("%")) return false;
  } else if (reader.take("fail=")) {
    rule.kind = RuleKind::fail;
    if (!reader.code(rule.code)) return false;
  } else if (reader.take("die")) {
    rule.kind = RuleKind::die;
    // Without a number the first piece would always die: a number is required.
    if (reader.done()) return false;
  } else if (reader.take("stall")) {
    rule.kind = RuleKind::stall;
  } else if (reader.take("stray")) {
    rule.kind = RuleKind::stray;
  } else if (reader.take("excess")) {
    rule.kind = RuleKind::excess;
  } else {
    return false;
  }
  return reader.at_piece(rule.piece) && reader.done();
}

bool parse_chance_rule(RuleReader reader, Schedule& schedule) noexcept {
  bool good = false;
  if (reader.take("seed=")) {
    good = reader.number(UINT64_MAX, schedule.seed);
    schedule.seeded = true;
  } else if (reader.take("p_fail=")) {
    good = reader.number(std::uint32_t{100}, schedule.p_fail);
  } else if (reader.take("p_partial=")) {
    good = reader.number(std::uint32_t{100}, schedule.p_partial);
  } else if (reader.take("p_die=")) {
    good = reader.number(std::uint32_t{100}, schedule.p_die);
  }
  return good && reader.done();
}

constexpr std::uint32_t below(std::uint64_t random, std::uint32_t bound) noexcept {
  return static_cast<std::uint32_t>((random >> 32) * bound >> 32);
}

}  // namespace

std::uint64_t next_random(std::uint64_t& state) noexcept {
  std::uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

Expected<Schedule> parse_schedule(const char* text) noexcept {
  Schedule schedule;
  if (text == nullptr || *text == '\0') return schedule;
  const char* rule_text = text;
  while (true) {
    const char* comma = std::strchr(rule_text, ',');
    const char* end = comma != nullptr ? comma : rule_text + std::strlen(rule_text);
    const RuleReader reader{rule_text, end};
    Rule rule;
    const auto shown = static_cast<int>(end - rule_text < 40 ? end - rule_text : 40);
    if (parse_scheduled_rule(reader, rule)) {
      if (schedule.rule_count == Schedule::max_rules) {
        return make_error(Code::invalid, 0, "more than %zu rules, from '%.*s' on; leave some out",
                          Schedule::max_rules, shown, rule_text);
      }
      schedule.rules[schedule.rule_count++] = rule;
    } else if (!parse_chance_rule(reader, schedule)) {
      return make_error(
          Code::invalid, 0,
          "'%.*s' is not a rule; rules look like delay=3, delay=50us, partial=50%%@2, fail=io@7, "
          "die@12, stall@3, stray@4, excess@5, seed=42, p_fail=10, p_partial=20, p_die=1",
          shown, rule_text);
    }
    if (comma == nullptr) break;
    rule_text = comma + 1;
  }
  const std::uint32_t chances = schedule.p_fail + schedule.p_partial + schedule.p_die;
  if (chances > 100) {
    return make_error(Code::invalid, 0,
                      "p_fail, p_partial and p_die add up to %u %%; lower them to 100 together",
                      chances);
  }
  if (chances != 0 && !schedule.seeded) {
    return make_error(Code::invalid, 0, "chances need a seed; add seed=1");
  }
  return schedule;
}

Fate fate_of(const Schedule& schedule, std::uint64_t piece) noexcept {
  Fate fate;
  bool partial = false;
  for (std::size_t index = 0; index < schedule.rule_count; ++index) {
    const Rule& rule = schedule.rules[index];
    if (rule.piece != 0 && rule.piece != piece) continue;
    switch (rule.kind) {
      case RuleKind::delay_polls: fate.delay_polls = rule.amount; break;
      case RuleKind::delay_us: fate.delay_us = rule.amount; break;
      case RuleKind::partial:
        fate.good_percent = rule.amount;
        partial = true;
        break;
      case RuleKind::fail: fate.code = rule.code; break;
      case RuleKind::die: fate.dies = true; break;
      case RuleKind::stall: fate.stalls = true; break;
      case RuleKind::stray: fate.strays = true; break;
      case RuleKind::excess: fate.exceeds = true; break;
    }
  }
  if (schedule.seeded) {
    std::uint64_t state = schedule.seed + piece * 0xd1342543de82ef95;
    fate.delay_polls = below(next_random(state), fate.delay_polls + 1);
    fate.delay_us = below(next_random(state), fate.delay_us + 1);
    const std::uint32_t chance = below(next_random(state), 100);
    const std::uint32_t share = below(next_random(state), 100);
    if (chance < schedule.p_fail) {
      if (fate.code == Code::ok) fate.code = Code::io;
    } else if (chance < schedule.p_fail + schedule.p_partial) {
      fate.good_percent = share;
      partial = true;
    } else if (chance < schedule.p_fail + schedule.p_partial + schedule.p_die) {
      fate.dies = true;
    }
  }
  if (partial && fate.code == Code::ok) fate.code = Code::io;
  if ((fate.code != Code::ok || fate.dies) && !partial) fate.good_percent = 0;
  return fate;
}

}  // namespace haul::fault
