// The link's thread while it is attached: what the service says is carried out.
#pragma once

#include "base/error.hpp"

namespace haul {

// Until the other side closes; what it said last, if that was a refusal.
Error listen_to_service() noexcept;

// Tells the service of an arena that came after the link. (A hello on its way may have handed it
// over already; the service takes it twice.) Waits 0.1 s at most; it is then still owed.
void hand_arena_over() noexcept;
bool arena_is_owed() noexcept;

}  // namespace haul
