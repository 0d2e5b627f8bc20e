// The link's thread while it is attached: what the service says is carried out.
#pragma once

#include "base/error.hpp"

namespace haul {

// Until the other side closes; what it said last, if that was a refusal. Once no thread of the
// process uses haul it parts from the service by itself. *let_go: false if the service, which is
// stopped, did not take note of that, while haul's threads are all that is left of the process.
// use() is called once the service knows the bindings that requests may name (or after a second).
Error listen_to_service(void (*use)(), bool* let_go) noexcept;

// Tells the service of an arena that came after the link. (A hello on its way may have handed it
// over already; the service takes it twice.) Waits 0.1 s at most; it is then still owed.
void hand_arena_over() noexcept;
bool arena_is_owed() noexcept;

}  // namespace haul
