// Between the C ABI's types and the library's own.
#pragma once

#include <haul/haul.h>

#include "base/error.hpp"
#include "completion/ticket.hpp"
#include "request/request.hpp"

namespace haul::api {

inline haul_ticket to_c(Ticket ticket) noexcept {
  return haul_ticket{ticket.where, ticket.tenancy};
}
inline Ticket from_c(haul_ticket ticket) noexcept {
  return Ticket{ticket.where, ticket.tenancy};
}
inline int to_c(Code code) noexcept {
  return static_cast<int>(code);
}

// For requests of a program built with another haul.h: `size` says how long that one's struct is.
// *usable is `from` itself, or *room filled with the part that this library knows. invalid if the
// request is shorter than 0.1's, or longer with something in it that this library does not know.
Code fit(const haul_request& from, haul_request* room, const haul_request** usable,
         Error* error) noexcept;

// Checks every field of a request and translates it. ok, or invalid with the sentence in *error.
// Extents are not copied: the result points into `from`.
Code convert(const haul_request& from, Request* to, Error* error) noexcept;

// Checks the arguments of a plain copy or fill. `src` may be nullptr for a fill.
Code check_plain(const void* dst, const void* src, std::size_t length, bool fill,
                 Error* error) noexcept;

// Stores the sentence for haul_last_error() and returns the code.
int fail(const Error& error) noexcept;

}  // namespace haul::api
