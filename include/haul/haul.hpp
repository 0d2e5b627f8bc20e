// haul in C++20: a thin face over haul.h. Header only; it adds types and exceptions, no behaviour,
// and each function's contract (units, blocking, threads, signals) is that of the haul.h function
// it names.
//
//   haul::ticket t = haul::copy(std::span(dst), std::span<const int>(src));
//   compute();
//   t.wait();  // throws haul::error if the copy failed
#pragma once

#include <haul/haul.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace haul {

// A failure: code() is one of HAUL_E*, what() is haul_last_error()'s sentence, so it must be made
// on the thread whose call failed, before its next haul call.
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

// Throws haul::error if `result` is negative, else returns it: check(haul_wake()).
inline int check(int result) {
  if (result < 0) throw error(result);
  return result;
}

// A request's ticket. Trivially copyable; its destructor does not wait, so memory that a copy uses
// must outlive the copy, not the ticket. A default one is done. Any thread may use it.
class ticket {
 public:
  constexpr ticket() noexcept = default;
  constexpr explicit ticket(haul_ticket raw) noexcept : raw_(raw) {}
  constexpr haul_ticket raw() const noexcept { return raw_; }

  // haul_test: true when done, false while pending; throws if it failed. Never blocks.
  [[nodiscard]] bool test() const { return check(haul_test(raw_)) == 1; }
  // haul_wait: blocks, helping; throws if it failed.
  void wait() const { check(haul_wait(raw_)); }
  // haul_wait_for: true when done, false if the time ran out first; throws if it failed. A negative
  // time counts as 0. May overrun by one chunk's time.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds timeout) const {
    return in_time(haul_wait_for(raw_, nanoseconds_of(timeout)));
  }
  // haul_wait_range, haul_test_range: bytes [offset, offset + len) of the request, whatever the
  // element type was. Waiting moves these first. Both throw if the request failed.
  void wait_range(std::size_t offset, std::size_t len) const {
    check(haul_wait_range(raw_, offset, len));
  }
  // haul_wait_range_for: true when they are visible, false if the time ran out first; else as
  // wait_for().
  [[nodiscard]] bool wait_range_for(std::size_t offset, std::size_t len,
                                    std::chrono::nanoseconds timeout) const {
    return in_time(haul_wait_range_for(raw_, offset, len, nanoseconds_of(timeout)));
  }
  [[nodiscard]] bool test_range(std::size_t offset, std::size_t len) const {
    return check(haul_test_range(raw_, offset, len)) == 1;
  }
  // haul_progress: bytes from the front that are visible, also of a failed request; 0 for a ticket
  // that is not haul's, SIZE_MAX for one that was done long ago.
  std::size_t good_bytes() const noexcept {
    std::size_t good = 0;
    haul_progress(raw_, &good);
    return good;
  }

 private:
  static std::uint64_t nanoseconds_of(std::chrono::nanoseconds timeout) noexcept {
    return timeout.count() > 0 ? static_cast<std::uint64_t>(timeout.count()) : 0;
  }
  static bool in_time(int result) { return result != HAUL_ETIMEDOUT && check(result) >= 0; }

  haul_ticket raw_{0, 0};
};

// haul_copy. A wrong argument shows when the ticket is tested or waited for, not here.
[[nodiscard]] inline ticket copy(void* dst, const void* src, std::size_t len) noexcept {
  return ticket(haul_copy(dst, src, len));
}

// Version 14 of the formatter lays out requires-clauses badly.
// clang-format off
// haul_copy of all of `src` to the front of `dst`; throws std::length_error, with nothing copied,
// if it does not fit. Elements are trivially copyable. Pass spans: containers do not convert here.
template <class T>
  requires std::is_trivially_copyable_v<T>
[[nodiscard]] ticket copy(std::span<T> dst, std::span<const std::type_identity_t<T>> src) {
  if (dst.size() < src.size()) {
    throw std::length_error("haul::copy: the destination is shorter than the source; give it room");
  }
  return copy(dst.data(), src.data(), src.size_bytes());
}

// haul_fill of all of `dst` with a value of 1, 2, 4 or 8 bytes.
template <class T>
  requires(std::is_trivially_copyable_v<T> &&
           (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8))
[[nodiscard]] ticket fill(std::span<T> dst, const T& value) noexcept {
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, &value, sizeof(T));
  return ticket(haul_fill(dst.data(), pattern, sizeof(T), dst.size_bytes()));
}
// clang-format on

// haul_submit of all, in order; appends their tickets. If one is refused it throws the refusal,
// with its code and sentence; the earlier ones are under way and their tickets are in `tickets`.
// Allocates.
inline void submit(std::span<const haul_request> requests, std::vector<ticket>& tickets) {
  std::vector<haul_ticket> raw(requests.size());
  tickets.reserve(tickets.size() + requests.size());  // nothing may throw once they are under way
  while (!requests.empty()) {
    // A part may be taken: submitting the rest again returns the refusal's code, or takes it.
    const int taken = check(haul_submit(requests.data(), requests.size(), raw.data()));
    for (int i = 0; i < taken; ++i) tickets.emplace_back(raw[static_cast<std::size_t>(i)]);
    requests = requests.subspan(static_cast<std::size_t>(taken));
  }
}

// haul_alloc: zeroed pages that the node's service can map, freed with the object; a copy must have
// ended before. Throws if there is none (HAUL_EINVAL: 0 bytes, else HAUL_ENOMEM). Movable only; a
// moved-from object is empty.
class memory {
 public:
  explicit memory(std::size_t bytes) : data_(haul_alloc(bytes)), bytes_(bytes) {
    if (data_ == nullptr) throw error(bytes == 0 ? HAUL_EINVAL : HAUL_ENOMEM);
  }
  ~memory() { haul_free(data_); }
  memory(memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  memory& operator=(memory&&) = delete;

  // Its first byte, and how many there are, as asked for.
  void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

  // clang-format off
  // All of it as elements; bytes beyond the last whole one are left out.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  std::span<T> as() const noexcept {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }
  // clang-format on

 private:
  void* data_;
  std::size_t bytes_;
};

// haul_share: memory that others may name in their requests, as HAUL_SHARE_READ and
// HAUL_SHARE_WRITE say, until the object is destroyed: its destructor blocks until nobody reads or
// writes there any more. Throws if no service runs. Movable only.
class grant {
 public:
  grant(void* address, std::size_t len, std::uint32_t rights) {
    check(haul_share(address, len, rights, &raw_));
  }
  ~grant() {
    if (raw_.index != 0) haul_unshare(&raw_);
  }
  grant(grant&& other) noexcept : raw_(std::exchange(other.raw_, haul_grant{-1, 0, 0})) {}
  grant(const grant&) = delete;
  grant& operator=(const grant&) = delete;
  grant& operator=(grant&&) = delete;
  // What to pass on: the descriptor over a socket, the index beside it.
  const haul_grant& raw() const noexcept { return raw_; }

 private:
  haul_grant raw_{-1, 0, 0};
};

// haul_space_open, haul_space_open_grant, haul_space_open_device: another process's memory or a
// GPU's ("cuda:0"), closed with the object. Opening throws if the kernel, the service or the driver
// refuses. Requests in flight when it is closed finish or fail
// with HAUL_ECLOSED. Movable only.
class space {
 public:
  explicit space(int pid) { check(haul_space_open(pid, &handle_)); }
  explicit space(const haul_grant& received, std::size_t* len = nullptr) {
    check(haul_space_open_grant(&received, &handle_, len));
  }
  explicit space(const char* device) { check(haul_space_open_device(device, &handle_)); }
  ~space() {
    if (handle_ != HAUL_SPACE_SELF) haul_space_close(handle_);
  }
  space(space&& other) noexcept : handle_(other.handle_) { other.handle_ = HAUL_SPACE_SELF; }
  space(const space&) = delete;
  space& operator=(const space&) = delete;
  space& operator=(space&&) = delete;
  // For haul_extent.space. HAUL_SPACE_SELF after a move from this object.
  haul_space handle() const noexcept { return handle_; }

 private:
  haul_space handle_ = HAUL_SPACE_SELF;
};

}  // namespace haul
