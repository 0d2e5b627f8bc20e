// haul_copy, haul_fill, haul_submit: the short road for plain requests, the long one for the rest.
#include "copy/copy.hpp"
#include "api/convert.hpp"
#include "api/startup.hpp"
#include "copy/cache_lines.hpp"
#include "mover/submit.hpp"

namespace haul::api {
namespace {

bool plain_ok(const void* dst, const void* src, std::size_t length) noexcept {
  return dst != nullptr && src != nullptr &&
         !overflows(reinterpret_cast<std::uintptr_t>(dst), length) &&
         !overflows(reinterpret_cast<std::uintptr_t>(src), length);
}

haul_ticket refuse(const Error& error) noexcept {
  fail(error);
  return to_c(Ticket::decided(error.code, 0));
}

// What is not everyday: a wrong argument, no ring yet, a full ring, a knob that wants another
// engine.
[[gnu::noinline]] haul_ticket long_road(const Request& request) noexcept {
  start_up();
  Error error;
  const Ticket ticket = submit(request, &error);
  if (error.code != Code::ok) fail(error);
  return to_c(ticket);
}

[[gnu::noinline]] haul_ticket plain_long_road(Operation operation, std::uintptr_t dst,
                                              std::uint64_t src_or_pattern,
                                              std::size_t length) noexcept {
  const Extent to{self_space, dst, length};
  const Extent from{self_space, src_or_pattern, length};
  Request request;
  request.operation = operation;
  request.length = length;
  request.dst = &to;
  request.src = &from;
  if (operation == Operation::fill) request.pattern = src_or_pattern;
  return long_road(request);
}

[[gnu::noinline]] haul_ticket refuse_plain(const void* dst, const void* src, std::size_t length,
                                           bool fill) noexcept {
  Error error;
  if (check_plain(dst, src, length, fill, &error) == Code::ok)
    return to_c(Ticket::decided(Code::ok, 0));
  return refuse(error);
}

haul_ticket moved_inline(std::size_t length, std::size_t worth, bool mapped) noexcept {
  note_inline(worth, mapped);
  return to_c(Ticket::decided(Code::ok, length));
}

// While the service sleeps only so much is worth waking it for.
bool leaves_service_asleep(std::size_t length) noexcept {
  const std::atomic<std::uint32_t>* bell = gate.service_bell.load(std::memory_order_acquire);
  return bell != nullptr && bell->load(std::memory_order_relaxed) != 0 &&
         length < gate.mapped_asleep_from.load(std::memory_order_relaxed);
}

// Does every request take the long road?
bool is_planned() noexcept {
  return (gate.special.load(std::memory_order_relaxed) & Gate::by_plan) != 0;
}

// Is a plain copy the caller's own to make? Between the thresholds that depends on where the source
// lies. (After haul_shutdown() the long road refuses.)
bool is_inline(const void* src, std::size_t length, bool mapped) noexcept {
  if (gate.closed.load(std::memory_order_relaxed)) [[unlikely]]
    return false;
  if (mapped && leaves_service_asleep(length)) return true;
  if (burst_pays(length, mapped)) return false;
  const std::atomic<std::uint64_t>& below = mapped ? gate.mapped_below : gate.inline_below;
  if (length < below.load(std::memory_order_relaxed)) return true;
  return !is_planned() && !copy::in_memory(src, length);
}

// A fill has no source that could be far away, and costs its caller about half of what a copy does.
bool is_inline_fill(std::size_t length, bool mapped) noexcept {
  if (mapped && leaves_service_asleep(length / 2)) return true;
  return !burst_pays(length / 2, mapped) && !gate.closed.load(std::memory_order_relaxed) &&
         !is_planned();
}

}  // namespace

extern "C" HAUL_API haul_ticket haul_copy(void* dst, const void* src, std::size_t len) {
  if (!plain_ok(dst, src, len)) [[unlikely]]
    return refuse_plain(dst, src, len, false);
  const auto to = reinterpret_cast<std::uintptr_t>(dst);
  const auto from = reinterpret_cast<std::uintptr_t>(src);
  const bool mapped = service_maps(to, from, len);
  if (is_inline(src, len, mapped)) {
    const std::size_t worth =
        worth_handing_over(src, len, mapped);  // before the copy warms the caches
    copy::move_bytes(dst, src, len, Affinity::cacheable, Affinity::cacheable);
    return moved_inline(len, worth, mapped);
  }
  Ticket ticket;
  if (publish_plain(Operation::copy, to, from, len, mapped, &ticket)) return to_c(ticket);
  return plain_long_road(Operation::copy, to, from, len);
}

extern "C" HAUL_API haul_ticket haul_fill(void* dst, std::uint64_t pattern,
                                          std::size_t pattern_bytes, std::size_t len) {
  if (!plain_ok(dst, dst, len)) [[unlikely]]
    return refuse_plain(dst, nullptr, len, true);
  if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 && pattern_bytes != 8)
      [[unlikely]] {
    return refuse(make_error(Code::invalid, 0,
                             "A pattern of %zu bytes cannot be filled with; use 1, 2, 4 or 8.",
                             pattern_bytes));
  }
  const auto to = reinterpret_cast<std::uintptr_t>(dst);
  const bool mapped = service_maps(to, to, len);
  if (is_inline_fill(len, mapped)) {
    copy::fill_bytes(dst, len, pattern, static_cast<unsigned>(pattern_bytes), Affinity::cacheable);
    return moved_inline(len, worth_handing_over(nullptr, len, mapped), mapped);
  }
  const std::uint64_t wide = copy::widen_pattern(pattern, static_cast<unsigned>(pattern_bytes));
  Ticket ticket;
  if (publish_plain(Operation::fill, to, wide, len, mapped, &ticket)) return to_c(ticket);
  return plain_long_road(Operation::fill, to, wide, len);
}

extern "C" HAUL_API int haul_submit(const haul_request* requests, std::size_t count,
                                    haul_ticket* tickets) {
  if (count == 0) return 0;
  if (requests == nullptr)
    return fail(make_error(Code::invalid, 0, "requests is NULL with a count of %zu; pass an array.",
                           count));
  if (count > INT32_MAX)
    return fail(make_error(Code::invalid, 0,
                           "%zu requests cannot be counted in an int; submit fewer at once.",
                           count));
  start_up();
  const std::uint32_t stride = requests->size;  // a program of another haul.h has other strides
  const auto* first = reinterpret_cast<const unsigned char*>(requests);
  for (std::size_t i = 0; i < count; ++i) {
    Request request;
    Error error;
    Ticket ticket;
    const auto& from = *reinterpret_cast<const haul_request*>(first + i * stride);
    haul_request room;
    const haul_request* usable = nullptr;
    if (from.size != stride) {
      error = make_error(Code::invalid, 0,
                         "Request %zu has size %u, the first one %u; all of an array have one.", i,
                         from.size, stride);
    } else if (fit(from, &room, &usable, &error) == Code::ok &&
               convert(*usable, &request, &error) == Code::ok) {
      thread_slot.burst_bytes += request.length;
      ticket = submit(request, &error);
    }
    if (error.code != Code::ok) {
      fail(error);
      return i != 0 ? static_cast<int>(i) : static_cast<int>(error.code);
    }
    if (tickets != nullptr) tickets[i] = to_c(ticket);
  }
  return static_cast<int>(count);
}

}  // namespace haul::api
