// The caller's own thread as a mover: scheme SCNI of paper 000.
#pragma once

#include <cstddef>
#include <cstdint>

#include "completion/ticket.hpp"
#include "request/request.hpp"
#include "request/ring.hpp"

namespace haul {

// Moves the request's bytes before it returns, and makes its notification and completion (room for
// which is reserved). A fence first waits for what the ring has pending. `ring` may be nullptr if
// the request wants neither fence nor completion.
Ticket run_inline(const Request& request, std::size_t engine, Ring* ring) noexcept;

// A plain request's bytes alone, of any length: as the engine `cpu` moves them, which makes the
// pages of new memory first (memory/new_pages.hpp). The short road calls it for long ones.
void move_plain(Operation operation, std::uintptr_t dst, std::uint64_t src_or_pattern,
                unsigned pattern_bytes, std::size_t length) noexcept;

}  // namespace haul
