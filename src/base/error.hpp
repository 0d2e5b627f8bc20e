// Errors as values: a closed set of codes, the errno that caused one, and a sentence with cause and
// remedy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace haul {

// The same numbers as HAUL_E* in haul.h; api/ checks that at compile time.
enum class Code : std::int32_t {
  ok = 0,
  invalid = -1,
  again = -2,
  fault = -3,
  no_memory = -4,
  stale = -5,
  permission = -6,
  peer_gone = -7,
  not_supported = -8,
  timed_out = -9,
  io = -10,
  closed = -11,
};

// A phrase for a code; static storage, async-signal-safe.
const char* describe(Code code) noexcept;

struct Error {
  static constexpr std::size_t sentence_bytes = 224;
  Code code = Code::ok;
  int sys_errno = 0;
  char sentence[sentence_bytes] = {};
};

// Makes the sentence as printf does. Truncates; never allocates. %m is not supported: pass
// sys_errno and describe_errno()'s text.
[[gnu::format(printf, 3, 4)]] Error make_error(Code code, int sys_errno, const char* format,
                                               ...) noexcept;

// strerrordesc_np's text, never NULL.
const char* describe_errno(int sys_errno) noexcept;

// The calling thread's latest error, for haul_last_error(). Storing copies the sentence; neither
// function allocates.
void set_last_error(const Error& error) noexcept;
const char* last_error_sentence() noexcept;

// A T or an Error. The caller checks which it is before taking it; taking the wrong one traps.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : has_value_(true) { new (&storage_.value) T(std::move(value)); }
  Expected(const Error& error) : has_value_(false) { new (&storage_.error) Error(error); }
  Expected(Expected&& other) noexcept : has_value_(other.has_value_) {
    if (has_value_) {
      new (&storage_.value) T(std::move(other.storage_.value));
    } else {
      new (&storage_.error) Error(other.storage_.error);
    }
  }
  Expected(const Expected&) = delete;
  Expected& operator=(const Expected&) = delete;
  Expected& operator=(Expected&&) = delete;
  ~Expected() {
    if (has_value_) storage_.value.~T();
  }

  explicit operator bool() const noexcept { return has_value_; }
  T& value() noexcept {
    if (!has_value_) __builtin_trap();
    return storage_.value;
  }
  const T& value() const noexcept {
    if (!has_value_) __builtin_trap();
    return storage_.value;
  }
  T& operator*() noexcept { return value(); }
  const T& operator*() const noexcept { return value(); }
  const T* operator->() const noexcept { return &value(); }
  T* operator->() noexcept { return &value(); }
  const Error& error() const noexcept {
    if (has_value_) __builtin_trap();
    return storage_.error;
  }

 private:
  union Storage {
    Storage() {}
    ~Storage() {}
    T value;
    Error error;
  } storage_;
  bool has_value_;
};

}  // namespace haul
