// haul in C++20: a thin face over haul.h. Header only; the functions' contracts are haul.h's.
//
//   haul::ticket t = haul::copy(dst, src);      // spans, or pointers and a length
//   compute();
//   t.wait();                                   // throws haul::error if it failed; check() does not
#pragma once

#include <haul/haul.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace haul {

// A failure: one of HAUL_E*, with haul_last_error()'s sentence.
class error : public std::runtime_error {
 public:
  explicit error(int code) : std::runtime_error(sentence(code)), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  static std::string sentence(int code) {
    const char* last = haul_last_error();
    return last[0] != '\0' ? last : haul_strerror(code);
  }
  int code_;
};

// Throws if `result` is an error, else gives it back.
inline int check(int result) {
  if (result < 0) throw error(result);
  return result;
}

// A request's ticket. Trivially copyable; its destructor does not wait.
class ticket {
 public:
  constexpr ticket() noexcept = default;
  constexpr explicit ticket(haul_ticket raw) noexcept : raw_(raw) {}
  constexpr haul_ticket raw() const noexcept { return raw_; }

  // True when done, false while pending; throws if it failed. Never blocks.
  bool test() const { return check(haul_test(raw_)) == 1; }
  // Blocks, helping; throws if it failed.
  void wait() const { check(haul_wait(raw_)); }
  // False if the time was up first.
  bool wait_for(std::chrono::nanoseconds timeout) const {
    const auto count = timeout.count();
    const int result = haul_wait_for(raw_, count > 0 ? static_cast<std::uint64_t>(count) : 0);
    if (result == HAUL_ETIMEDOUT) return false;
    check(result);
    return true;
  }
  // Bytes [offset, offset + len) of the request; their blocks are moved first.
  void wait_range(std::size_t offset, std::size_t len) const { check(haul_wait_range(raw_, offset, len)); }
  bool test_range(std::size_t offset, std::size_t len) const { return check(haul_test_range(raw_, offset, len)) == 1; }
  // Bytes from the front that are visible, also of a failed request.
  std::size_t good_bytes() const noexcept {
    std::size_t good = 0;
    haul_progress(raw_, &good);
    return good;
  }

 private:
  haul_ticket raw_{0, 0};
};

inline ticket copy(void* dst, const void* src, std::size_t len) noexcept { return ticket(haul_copy(dst, src, len)); }

// Copies all of `src` to the front of `dst`; throws std::length_error if it does not fit. Shape: {n} to {>= n}, elements trivially copyable.
template <class T>
  requires std::is_trivially_copyable_v<T>
ticket copy(std::span<T> dst, std::span<const T> src) {
  if (dst.size() < src.size()) throw std::length_error("haul::copy: the destination is shorter than the source; give it room");
  return copy(dst.data(), src.data(), src.size_bytes());
}

// Fills with a value of 1, 2, 4 or 8 bytes.
template <class T>
  requires(std::is_trivially_copyable_v<T> && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8))
ticket fill(std::span<T> dst, const T& value) noexcept {
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, &value, sizeof(T));
  return ticket(haul_fill(dst.data(), pattern, sizeof(T), dst.size_bytes()));
}

// Submits all; throws if one is refused (the earlier ones are under way: their tickets are in `tickets`).
inline void submit(std::span<const haul_request> requests, std::vector<ticket>& tickets) {
  std::vector<haul_ticket> raw(requests.size());
  const int taken = haul_submit(requests.data(), requests.size(), raw.data());
  for (int i = 0; i < taken; ++i) tickets.emplace_back(raw[static_cast<std::size_t>(i)]);
  check(taken);
  if (static_cast<std::size_t>(taken) < requests.size()) throw error(HAUL_EAGAIN);
}

// Another process's memory, closed with the object.
class space {
 public:
  explicit space(int pid) { check(haul_space_open(pid, &handle_)); }
  ~space() {
    if (handle_ != HAUL_SPACE_SELF) haul_space_close(handle_);
  }
  space(space&& other) noexcept : handle_(other.handle_) { other.handle_ = HAUL_SPACE_SELF; }
  space(const space&) = delete;
  space& operator=(const space&) = delete;
  space& operator=(space&&) = delete;
  haul_space handle() const noexcept { return handle_; }

 private:
  haul_space handle_ = HAUL_SPACE_SELF;
};

}  // namespace haul
