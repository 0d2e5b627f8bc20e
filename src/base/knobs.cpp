#include "base/knobs.hpp"

#include <stdlib.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "base/knob_rows.hpp"
#include "base/log.hpp"

namespace haul {

namespace {

// A path may have PATH_MAX bytes; valid values that are not free text are shorter than the short
// limit.
constexpr std::size_t long_text_bytes = 4096;
constexpr std::size_t short_text_bytes = 64;

constexpr bool is_long(const KnobRow& row) {
  return row.kind == KnobKind::text && row.choices[0] == '\0';
}

// Room for all texts at their longest.
constexpr std::size_t arena_bytes = [] {
  std::size_t bytes = 0;
  for (const KnobRow& row : rows) bytes += is_long(row) ? long_text_bytes : short_text_bytes;
  return bytes;
}();

bool parse_digits(const char*& cursor, std::uint64_t& value) noexcept {
  if (*cursor < '0' || *cursor > '9') return false;
  value = 0;
  for (; *cursor >= '0' && *cursor <= '9'; ++cursor) {
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(*cursor - '0'), &value)) {
      return false;
    }
  }
  return true;
}

bool parse_size(const char* text, std::uint64_t& value) noexcept {
  const char* cursor = text;
  if (!parse_digits(cursor, value)) return false;
  std::uint64_t unit = 1;
  switch (*cursor) {
    case 'K':
    case 'k': unit = kib; break;
    case 'M':
    case 'm': unit = mib; break;
    case 'G':
    case 'g': unit = kib * mib; break;
    default: break;
  }
  if (unit != 1) ++cursor;
  return *cursor == '\0' && !__builtin_mul_overflow(value, unit, &value);
}

bool parse_choice(const char* choices, const char* text, std::uint64_t& index) noexcept {
  const std::size_t length = strlen(text);
  if (length == 0 || strchr(text, '|') != nullptr) return false;
  index = 0;
  for (const char* choice = choices;; ++index) {
    const char* end = strchrnul(choice, '|');
    if (static_cast<std::size_t>(end - choice) == length && memcmp(choice, text, length) == 0) {
      return true;
    }
    if (*end == '\0') return false;
    choice = end + 1;
  }
}

bool parse_value(const KnobRow& row, const char* text, std::uint64_t& value) noexcept {
  value = 0;
  if (strlen(text) >= (is_long(row) ? long_text_bytes : short_text_bytes)) return false;
  const char* cursor = text;
  switch (row.kind) {
    case KnobKind::number:
      if (!parse_digits(cursor, value) || *cursor != '\0') return false;
      break;
    case KnobKind::bytes:
      if (!parse_size(text, value)) return false;
      break;
    case KnobKind::choice: return parse_choice(row.choices, text, value);
    case KnobKind::text:
      if (is_long(row)) return true;
      if (strcmp(text, row.choices) == 0) {
        value = knob_auto;
        return true;
      }
      if (!parse_size(text, value)) return false;
      break;
  }
  if (value < row.minimum || value > row.maximum) return false;
  return !row.power_of_two || (value & (value - 1)) == 0;
}

// A knob's value as the environment has it now.
struct Value {
  std::uint64_t number;
  const char* text;      // the environment's own string, or the default
  const char* rejected;  // what was set and is unusable, else nullptr
};

Value read_value(const KnobRow& row) noexcept {
  Value value = {0, nullptr, nullptr};
  // secure_getenv: a set-user-id program must not take a path from its invoker.
  const char* text = secure_getenv(row.variable);
  if (text != nullptr && text[0] != '\0') {
    if (parse_value(row, text, value.number)) {
      value.text = text;
      return value;
    }
    value.rejected = text;
  }
  value.text = row.default_text;
  parse_value(row, value.text, value.number);
  return value;
}

// The table is read by whichever thread needs a knob first: it takes `state` from unread to
// reading, copies the environment into the table, and stores `ready` (release). Threads that come
// in between, signal handlers on top of the reader included, read the environment for themselves,
// so nobody waits.
enum class TableState : std::uint32_t { unread, reading, ready };

struct KnobTable {
  std::uint64_t numbers[knob_count];
  const char* texts[knob_count];
  char arena[arena_bytes];
};

constinit std::atomic<TableState> state{TableState::unread};
constinit KnobTable table = {};

// True once the table is complete; only then may it be read.
bool table_ready() noexcept {
  // Pairs with the release store below.
  TableState seen = state.load(std::memory_order_acquire);
  if (seen == TableState::ready) return true;
  if (seen == TableState::reading) return false;
  if (!state.compare_exchange_strong(seen, TableState::reading, std::memory_order_acquire)) {
    return seen == TableState::ready;
  }
  const char* rejected[knob_count];
  std::size_t used = 0;
  for (std::size_t i = 0; i < knob_count; ++i) {
    const Value value = read_value(rows[i]);
    table.numbers[i] = value.number;
    table.texts[i] = value.text;
    rejected[i] = value.rejected;
    if (value.text != rows[i].default_text) {
      // A copy: the program may set or unset its environment at any time.
      const std::size_t bytes = strlen(value.text) + 1;
      table.texts[i] = static_cast<const char*>(memcpy(table.arena + used, value.text, bytes));
      used += bytes;
    }
  }
  // Pairs with the acquire load above.
  state.store(TableState::ready, std::memory_order_release);
  // Only now, since log() reads a knob.
  for (std::size_t i = 0; i < knob_count; ++i) {
    if (rejected[i] == nullptr) continue;
    char values[96];
    describe_knob_values(rows[i], values, sizeof values);
    log(LogLevel::warning, "%s='%.60s' is not %s; using default '%s'", rows[i].variable,
        rejected[i], values, rows[i].default_text);
  }
  return true;
}

}  // namespace

const KnobRow* knob_rows() noexcept {
  return rows;
}

std::uint64_t knob_number(Knob knob) noexcept {
  const auto index = static_cast<std::size_t>(knob);
  return table_ready() ? table.numbers[index] : read_value(rows[index]).number;
}

const char* knob_text(Knob knob) noexcept {
  const auto index = static_cast<std::size_t>(knob);
  return table_ready() ? table.texts[index] : read_value(rows[index]).text;
}

void describe_knob_values(const KnobRow& row, char* text, std::size_t size) noexcept {
  switch (row.kind) {
    case KnobKind::number:
      snprintf(text, size, "a number from %llu to %llu",
               static_cast<unsigned long long>(row.minimum),
               static_cast<unsigned long long>(row.maximum));
      return;
    case KnobKind::bytes:
      snprintf(text, size, "a %s from %llu to %llu bytes (suffixes K, M, G)",
               row.power_of_two ? "power of two" : "number",
               static_cast<unsigned long long>(row.minimum),
               static_cast<unsigned long long>(row.maximum));
      return;
    case KnobKind::choice: snprintf(text, size, "one of %s", row.choices); return;
    case KnobKind::text:
      if (is_long(row)) {
        snprintf(text, size, "a text of at most %zu bytes", long_text_bytes - 1);
      } else if (row.maximum >= unbounded - 1) {
        snprintf(text, size, "%s or a number of bytes (suffixes K, M, G)", row.choices);
      } else {
        snprintf(text, size, "%s or a number from %llu to %llu", row.choices,
                 static_cast<unsigned long long>(row.minimum),
                 static_cast<unsigned long long>(row.maximum));
      }
      return;
  }
}

Expected<std::uint64_t> parse_knob(const KnobRow& row, const char* text) noexcept {
  std::uint64_t value = 0;
  if (parse_value(row, text, value)) return value;
  char values[96];
  describe_knob_values(row, values, sizeof values);
  return make_error(Code::invalid, 0, "%s='%.40s' is not %s; set it so, or unset it for '%s'",
                    row.variable, text, values, row.default_text);
}

Expected<std::uint64_t> parse_bytes(const char* text) noexcept {
  std::uint64_t value = 0;
  if (parse_size(text, value)) return value;
  return make_error(Code::invalid, 0,
                    "'%.40s' is not a number of bytes; give digits and at most one of the suffixes "
                    "K, M, G, as in 64K",
                    text);
}

void reread_knobs() noexcept {
  state.store(TableState::unread, std::memory_order_release);
}

}  // namespace haul
