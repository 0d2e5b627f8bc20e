// Argument checks: each names the field, what is wrong with it, and what to pass instead.
#include "api/convert.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "copy/copy.hpp"
#include "engine/spaces.hpp"

namespace haul::api {
namespace {

static_assert(static_cast<int>(Code::ok) == HAUL_OK &&
              static_cast<int>(Code::invalid) == HAUL_EINVAL &&
              static_cast<int>(Code::again) == HAUL_EAGAIN &&
              static_cast<int>(Code::fault) == HAUL_EFAULT &&
              static_cast<int>(Code::no_memory) == HAUL_ENOMEM &&
              static_cast<int>(Code::stale) == HAUL_ESTALE &&
              static_cast<int>(Code::permission) == HAUL_EPERM &&
              static_cast<int>(Code::peer_gone) == HAUL_EPEER &&
              static_cast<int>(Code::not_supported) == HAUL_ENOTSUP &&
              static_cast<int>(Code::timed_out) == HAUL_ETIMEDOUT &&
              static_cast<int>(Code::io) == HAUL_EIO &&
              static_cast<int>(Code::closed) == HAUL_ECLOSED);
// An Extent may alias a haul_extent: same layout.
static_assert(sizeof(Extent) == sizeof(haul_extent) &&
              offsetof(Extent, space) == offsetof(haul_extent, space) &&
              offsetof(Extent, address) == offsetof(haul_extent, address) &&
              offsetof(Extent, length) == offsetof(haul_extent, length));

constexpr std::uint32_t max_extents = 1024;
constexpr std::uint32_t known_flags =
    HAUL_FENCE | HAUL_CHECKED | HAUL_NONBLOCK | HAUL_COMPLETE | HAUL_INLINE | HAUL_DEDICATED;

template <class... Arguments>
Code invalid(Error* error, const char* format, Arguments... arguments) noexcept {
  *error = make_error(Code::invalid, 0, format, arguments...);
  return Code::invalid;
}

// One side: its extents, their space and their total.
struct RequestSide {
  const Extent* extents;
  std::uint32_t count;
  Space space;
  std::size_t length;
};

Code check_side(const char* name, const haul_extent& one, const haul_extent* vector,
                std::uint32_t count, RequestSide* side, Error* error) noexcept {
  if (vector != nullptr && (count == 0 || count > max_extents)) {
    return invalid(error, "%s_count is %u; a vector has 1 to %u extents.", name, count,
                   max_extents);
  }
  if (vector == nullptr && count > 1) {
    return invalid(
        error,
        "%s_count is %u without %s_vector; point the vector to the extents or leave the count 0.",
        name, count, name);
  }
  const haul_extent* extents = vector != nullptr ? vector : &one;
  *side = RequestSide{reinterpret_cast<const Extent*>(extents), vector != nullptr ? count : 1,
                      extents[0].space, 0};
  for (std::uint32_t i = 0; i < side->count; ++i) {
    const haul_extent& extent = extents[i];
    const auto address = reinterpret_cast<std::uintptr_t>(extent.address);
    if (extent.space != side->space) {
      return invalid(error,
                     "%s extent %u is in another space than the first; put all extents of a side "
                     "in one space.",
                     name, i);
    }
    if (extent.reserved != 0)
      return invalid(error, "%s extent %u has a non-zero reserved field; zero the struct first.",
                     name, i);
    if (extent.length != 0 && address == 0 && extent.space == HAUL_SPACE_SELF) {
      return invalid(error, "%s extent %u is NULL with %zu bytes; pass a buffer.", name, i,
                     extent.length);
    }
    if (overflows(address, extent.length)) {
      return invalid(
          error,
          "%s extent %u runs past the end of the address space (%zu bytes); check the length.",
          name, i, extent.length);
    }
    if (__builtin_add_overflow(side->length, extent.length, &side->length)) {
      return invalid(error, "%s lengths add up to more than the address space; check them.", name);
    }
  }
  if (side->space != HAUL_SPACE_SELF && !space_open(side->space)) {
    *error =
        make_error(Code::closed, 0, "The %s space %u is not open; open it with haul_space_open().",
                   name, side->space);
    return Code::closed;
  }
  return Code::ok;
}

Code check_fields(const haul_request& from, Error* error) noexcept {
  if (from.operation > HAUL_OP_FILL)
    return invalid(error, "Operation %u does not exist; use HAUL_OP_COPY or HAUL_OP_FILL.",
                   from.operation);
  if (from.dst_affinity > HAUL_NEUTRAL || from.src_affinity > HAUL_NEUTRAL) {
    return invalid(
        error,
        "Cache affinity %u does not exist; use HAUL_CACHEABLE, HAUL_NON_CACHEABLE or HAUL_NEUTRAL.",
        from.dst_affinity > HAUL_NEUTRAL ? from.dst_affinity : from.src_affinity);
  }
  if ((from.flags & ~known_flags) != 0) {
    return invalid(error, "Flag bits 0x%x are unknown to this version of haul; clear them.",
                   from.flags & ~known_flags);
  }
  if ((from.flags & HAUL_INLINE) != 0 && (from.flags & HAUL_DEDICATED) != 0) {
    return invalid(
        error,
        "HAUL_INLINE and HAUL_DEDICATED exclude each other; set one or neither (flags 0x%x).",
        from.flags);
  }
  if (from.reserved != 0)
    return invalid(error, "The request's reserved field is %u; zero the struct first.",
                   from.reserved);
  if (from.callback != nullptr && (from.flags & HAUL_COMPLETE) == 0) {
    return invalid(error, "A callback runs in haul_reap(), so it needs HAUL_COMPLETE (flags 0x%x).",
                   from.flags);
  }
  if (from.notify != nullptr && reinterpret_cast<std::uintptr_t>(from.notify) % 8 != 0) {
    return invalid(error, "The notification word at %p is not 8-byte aligned; align it.",
                   static_cast<void*>(from.notify));
  }
  return Code::ok;
}

bool is_pattern_size(std::size_t bytes) noexcept {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

}  // namespace

int fail(const Error& error) noexcept {
  set_last_error(error);
  return static_cast<int>(error.code);
}

Code check_plain(const void* dst, const void* src, std::size_t length, bool fill,
                 Error* error) noexcept {
  if (length == 0) return Code::ok;
  if (dst == nullptr || (!fill && src == nullptr)) {
    return invalid(error, "The %s is NULL with %zu bytes; pass a buffer.",
                   dst == nullptr ? "destination" : "source", length);
  }
  return invalid(
      error, "The %s runs past the end of the address space (%zu bytes); check the length.",
      overflows(reinterpret_cast<std::uintptr_t>(dst), length) ? "destination" : "source", length);
}

Code fit(const haul_request& from, haul_request* room, const haul_request** usable,
         Error* error) noexcept {
  *usable = &from;
  if (from.size == sizeof(haul_request)) [[likely]]
    return Code::ok;
  constexpr std::uint32_t first_size = 136;  // 0.1's
  static_assert(sizeof(haul_request) >= first_size);
  constexpr std::uint32_t last_size = 4096;  // no header will ever ask for more
  if (from.size < first_size || from.size > last_size || from.size % alignof(haul_request) != 0) {
    return invalid(error,
                   "The request's size is %u, which no haul.h has (0.1's: %u); set it to "
                   "sizeof(haul_request).",
                   from.size, first_size);
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(&from);
  for (std::size_t at = sizeof(haul_request); at < from.size; ++at) {
    if (bytes[at] != 0) {
      return invalid(error,
                     "The request (%u bytes) asks for something that this version of haul does not "
                     "know; load the libhaul that the program was built for.",
                     from.size);
    }
  }
  *room = haul_request{};
  std::memcpy(room, &from, std::min<std::size_t>(from.size, sizeof *room));
  *usable = room;
  return Code::ok;
}

Code convert(const haul_request& from, Request* to, Error* error) noexcept {
  if (const Code code = check_fields(from, error); code != Code::ok) return code;
  RequestSide dst, src{};
  if (const Code code = check_side("dst", from.dst, from.dst_vector, from.dst_count, &dst, error);
      code != Code::ok)
    return code;
  to->operation = static_cast<Operation>(from.operation);
  if (to->operation == Operation::copy) {
    if (const Code code = check_side("src", from.src, from.src_vector, from.src_count, &src, error);
        code != Code::ok)
      return code;
    if (src.length != dst.length) {
      return invalid(error, "The source has %zu bytes and the destination %zu; make them equal.",
                     src.length, dst.length);
    }
  } else {
    if (!is_pattern_size(from.pattern_bytes)) {
      return invalid(error, "A pattern cannot have %u bytes; use 1, 2, 4 or 8.",
                     from.pattern_bytes);
    }
    to->pattern = copy::widen_pattern(from.pattern, from.pattern_bytes);
  }
  to->dst_affinity = static_cast<Affinity>(from.dst_affinity);
  to->src_affinity = static_cast<Affinity>(from.src_affinity);
  to->fence = (from.flags & HAUL_FENCE) != 0;
  to->checked = (from.flags & HAUL_CHECKED) != 0;
  to->nonblock = (from.flags & HAUL_NONBLOCK) != 0;
  to->complete = (from.flags & HAUL_COMPLETE) != 0;
  to->force_inline = (from.flags & HAUL_INLINE) != 0;
  to->force_dedicated = (from.flags & HAUL_DEDICATED) != 0;
  to->length = dst.length;
  to->dst = dst.extents;
  to->dst_count = dst.count;
  to->dst_space = dst.space;
  to->src = src.extents;
  to->src_count = src.count;
  to->src_space = src.space;
  to->notify = reinterpret_cast<std::atomic<std::uint64_t>*>(from.notify);
  to->notify_value = from.notify_value;
  to->user_data = from.user_data;
  to->callback = reinterpret_cast<CompletionCallback>(from.callback);
  to->context = from.callback_context;
  return Code::ok;
}

}  // namespace haul::api
