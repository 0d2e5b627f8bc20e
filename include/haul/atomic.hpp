// atomic.h in C++20: a thin face over it. Header only; it adds types and exceptions, no behaviour,
// and each function's contract (units, blocking, threads, signals) is that of the atomic.h function
// it names. Failures are thrown as haul::error (haul.hpp).
//
//   haul::atomic::node owner("xdp:eth0");  // the owner, as root
//   haul::atomic::window window(owner, 4096);
//   std::string name = haul::atomic::to_string(window.name());  // tell others
//
//   haul::atomic::node client("none");  // anybody else
//   haul::atomic::remote counter(client, haul::atomic::parse(name));
//   std::uint64_t before = counter.fetch_add(0, 1);  // a round trip
//
// Objects own their handles, can be moved, and close what they own when they are destroyed: destroy
// remotes and locks before their node. A window may outlive its node, and is then no longer served.
#pragma once

#include <haul/atomic.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <haul/haul.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace haul::atomic {

// Closes a handle when its owner is destroyed.
struct closer {
  void operator()(haul_atomic_node* node) const noexcept { haul_atomic_node_close(node); }
  void operator()(haul_atomic_window* window) const noexcept { haul_atomic_window_destroy(window); }
  void operator()(haul_atomic_remote* remote) const noexcept { haul_atomic_disconnect(remote); }
  void operator()(haul_atomic_lock* lock) const noexcept { haul_atomic_lock_close(lock); }
};

// haul_atomic_window_format, haul_atomic_window_parse: a window's name as one word of text.
inline std::string to_string(const haul_atomic_window_name& name) {
  char text[160];
  check(haul_atomic_window_format(&name, text, sizeof text));
  return text;
}
inline haul_atomic_window_name parse(const std::string& text) {
  haul_atomic_window_name name;
  check(haul_atomic_window_parse(text.c_str(), &name));
  return name;
}

// haul_atomic_node_open.
class node {
 public:
  // `options` need no size.
  explicit node(const std::string& responder, haul_atomic_node_options options = {}) {
    options.size = sizeof options;
    haul_atomic_node* opened = nullptr;
    check(haul_atomic_node_open(responder.c_str(), &options, &opened));
    handle_.reset(opened);
  }
  haul_atomic_node* raw() const noexcept { return handle_.get(); }

  // haul_atomic_node_describe.
  std::string description() const {
    char text[512];
    check(haul_atomic_node_describe(raw(), text, sizeof text));
    return text;
  }

 private:
  std::unique_ptr<haul_atomic_node, closer> handle_;
};

// haul_atomic_window_create, haul_atomic_window_attach.
class window {
 public:
  window(const node& owner, std::size_t bytes) {
    haul_atomic_window* made = nullptr;
    check(haul_atomic_window_create(owner.raw(), bytes, &made));
    handle_.reset(made);
  }
  // The window of another process of this host.
  explicit window(const haul_atomic_window_name& name) {
    haul_atomic_window* mapped = nullptr;
    check(haul_atomic_window_attach(&name, &mapped));
    handle_.reset(mapped);
  }
  haul_atomic_window* raw() const noexcept { return handle_.get(); }

  haul_atomic_window_name name() const {
    haul_atomic_window_name exported;
    check(haul_atomic_window_export(raw(), &exported));
    return exported;
  }
  std::span<std::byte> memory() const noexcept {
    return {static_cast<std::byte*>(haul_atomic_window_memory(raw())),
            haul_atomic_window_bytes(raw())};
  }
  // haul_atomic_window_run.
  void run(std::span<haul_atomic_operation> operations) const {
    check(haul_atomic_window_run(raw(), operations.data(), operations.size()));
  }

 private:
  std::unique_ptr<haul_atomic_window, closer> handle_;
};

// haul_atomic_connect: a window of another node. Offsets are bytes from the window's beginning; the
// words of the single operations have 64 bits.
class remote {
 public:
  remote(const node& from, const haul_atomic_window_name& name) : base_(name.address) {
    haul_atomic_remote* connected = nullptr;
    check(haul_atomic_connect(from.raw(), &name, &connected));
    handle_.reset(connected);
  }
  haul_atomic_remote* raw() const noexcept { return handle_.get(); }
  // What operations of a batch say: the address of this offset.
  std::uint64_t address(std::uint64_t offset) const noexcept { return base_ + offset; }

  // Each waits for its answer and returns the word before the operation.
  std::uint64_t fetch_add(std::uint64_t offset, std::uint64_t data) const {
    return one(HAUL_ATOMIC_ADD, offset, data, 0);
  }
  std::uint64_t fetch_write(std::uint64_t offset, std::uint64_t data) const {
    return one(HAUL_ATOMIC_SWAP, offset, data, 0);
  }
  // Writes `data` if the word equals `compare`; it did if the result equals `compare`.
  std::uint64_t compare_swap(std::uint64_t offset, std::uint64_t data,
                             std::uint64_t compare) const {
    return one(HAUL_ATOMIC_CAS, offset, data, compare);
  }
  std::uint64_t read(std::uint64_t offset) const { return one(HAUL_ATOMIC_READ, offset, 0, 0); }
  void write(std::uint64_t offset, std::uint64_t data) const {
    one(HAUL_ATOMIC_WRITE, offset, data, 0);
  }
  // haul_atomic_run: up to 16 operations as one packet.
  void run(std::span<haul_atomic_operation> operations) const {
    check(haul_atomic_run(raw(), operations.data(), operations.size()));
  }

  // haul_atomic_submit, haul_atomic_test, haul_atomic_wait, haul_atomic_reap. The result of
  // submit() is the ticket; test() is true once it is answered.
  [[nodiscard]] std::uint64_t submit(std::span<const haul_atomic_operation> operations,
                                     std::uint64_t tag = 0) const {
    std::uint64_t ticket = 0;
    check(haul_atomic_submit(raw(), operations.data(), operations.size(), tag, &ticket));
    return ticket;
  }
  [[nodiscard]] bool test(std::uint64_t ticket,
                          std::span<haul_atomic_operation> operations = {}) const {
    return check(haul_atomic_test(raw(), ticket, operations.data(), operations.size())) == 1;
  }
  void wait(std::uint64_t ticket, std::span<haul_atomic_operation> operations = {}) const {
    check(haul_atomic_wait(raw(), ticket, operations.data(), operations.size()));
  }
  std::size_t reap(std::span<haul_atomic_completion> completions) const {
    return static_cast<std::size_t>(
        check(haul_atomic_reap(raw(), completions.data(), completions.size())));
  }

 private:
  std::uint64_t one(haul_atomic_code code, std::uint64_t offset, std::uint64_t operand,
                    std::uint64_t compare) const {
    std::uint64_t old = 0;
    check(haul_atomic_one(raw(), static_cast<std::uint8_t>(code), address(offset), operand, compare,
                          &old));
    return old;
  }

  std::unique_ptr<haul_atomic_remote, closer> handle_;
  std::uint64_t base_;
};

// haul_atomic_lock_open: one member of a queue lock. One thread at a time uses it.
class lock {
 public:
  // `options` need no size; `own` is the window of this member's words.
  lock(const node& from, const window& own, haul_atomic_lock_options options) {
    options.size = sizeof options;
    haul_atomic_lock* joined = nullptr;
    check(haul_atomic_lock_open(from.raw(), own.raw(), &options, &joined));
    handle_.reset(joined);
  }
  haul_atomic_lock* raw() const noexcept { return handle_.get(); }

  // haul_atomic_lock_acquire: the fencing token.
  std::uint64_t acquire() const {
    std::uint64_t token = 0;
    check(haul_atomic_lock_acquire(raw(), UINT64_MAX, &token));
    return token;
  }
  // The same within a time; no token if the lock was not free in time, or its home did not answer.
  // A negative time counts as 0.
  [[nodiscard]] std::optional<std::uint64_t> try_acquire_for(
      std::chrono::nanoseconds timeout) const {
    std::uint64_t token = 0;
    const auto count = timeout.count();
    const int result =
        haul_atomic_lock_acquire(raw(), count > 0 ? static_cast<std::uint64_t>(count) : 0, &token);
    return gained(result, HAUL_ETIMEDOUT, token);
  }
  // haul_atomic_lock_try; no token if another member holds the lock.
  [[nodiscard]] std::optional<std::uint64_t> try_acquire() const {
    std::uint64_t token = 0;
    const int result = haul_atomic_lock_try(raw(), &token);
    return gained(result, HAUL_EAGAIN, token);
  }
  // haul_atomic_lock_release, haul_atomic_lock_renew. Both throw HAUL_ESTALE if the lease was over
  // and another member has the lock by now.
  void release() const { check(haul_atomic_lock_release(raw())); }
  void renew() const { check(haul_atomic_lock_renew(raw())); }
  // haul_atomic_lock_remaining.
  std::chrono::nanoseconds remaining() const noexcept {
    return std::chrono::nanoseconds(haul_atomic_lock_remaining(raw()));
  }

 private:
  static std::optional<std::uint64_t> gained(int result, int in_vain, std::uint64_t token) {
    if (result == in_vain) return std::nullopt;
    check(result);
    return token;
  }

  std::unique_ptr<haul_atomic_lock, closer> handle_;
};

}  // namespace haul::atomic
