// haul_copy, haul_fill, haul_submit: the short road for plain requests, the long one for the rest.
#include "copy/copy.hpp"
#include "api/convert.hpp"
#include "api/startup.hpp"
#include "mover/short_road.hpp"
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

// For what is out of the ordinary: no ring yet, a full ring, a knob that wants another engine.
[[gnu::noinline]] haul_ticket long_road(const Request& request) noexcept {
  start_up();
  Error error;
  const Ticket ticket = submit(request, &error);
  if (error.code != Code::ok) fail(error);
  return to_c(ticket);
}

[[gnu::noinline]] haul_ticket plain_long_road(Operation operation, void* dst,
                                              std::uint64_t src_or_pattern,
                                              std::size_t length) noexcept {
  const Extent to{self_space, reinterpret_cast<std::uintptr_t>(dst), length};
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

}  // namespace

extern "C" HAUL_API haul_ticket haul_copy(void* dst, const void* src, std::size_t len) {
  if (!plain_ok(dst, src, len)) [[unlikely]]
    return refuse_plain(dst, src, len, false);
  Ticket ticket;
  if (short_copy(dst, src, len, &ticket)) return to_c(ticket);
  return plain_long_road(Operation::copy, dst, reinterpret_cast<std::uintptr_t>(src), len);
}

extern "C" HAUL_API haul_ticket haul_fill(void* dst, std::uint64_t pattern,
                                          std::size_t pattern_bytes, std::size_t len) {
  if (!plain_ok(dst, dst, len)) [[unlikely]]
    return refuse_plain(dst, nullptr, len, true);
  if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 && pattern_bytes != 8)
      [[unlikely]] {
    return refuse(make_error(Code::invalid, 0, "A pattern cannot have %zu bytes; use 1, 2, 4 or 8.",
                             pattern_bytes));
  }
  const auto width = static_cast<unsigned>(pattern_bytes);
  Ticket ticket;
  if (short_fill(dst, pattern, width, len, &ticket)) return to_c(ticket);
  return plain_long_road(Operation::fill, dst, copy::widen_pattern(pattern, width), len);
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
  const std::uint32_t stride = requests->size;  // another haul.h's structs have another
  const auto* first = reinterpret_cast<const unsigned char*>(requests);
  for (std::size_t i = 0; i < count; ++i) {
    Request request;
    Error error;
    Ticket ticket;
    const auto& from = *reinterpret_cast<const haul_request*>(first + i * stride);
    haul_request room;
    const haul_request* usable = nullptr;
    if (from.size != stride) {
      error = make_error(
          Code::invalid, 0,
          "Request %zu has size %u and the first one %u; give all of an array the same size.", i,
          from.size, stride);
    } else if (fit(from, &room, &usable, &error) == Code::ok &&
               convert(*usable, &request, &error) == Code::ok) {
      add_to_burst(request);
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
