// The link's thread while the link is attached: it carries out what the service says.
#pragma once

#include "base/error.hpp"

namespace haul {

// Runs until the other side closes; returns the sentence of a refusal, if that was the last it
// said. Once no thread of the process uses haul, it leaves the service by itself. *let_go: false if
// the service, being stopped, did not take note of that while haul's threads are all that is left
// of the process. use() is called once the service knows the bindings that requests may name (or
// after a second).
Error listen_to_service(void (*use)(), bool* let_go) noexcept;

// Tells the service of an arena that was made after the link. (A hello on its way may have handed
// it over already; the service accepts it twice.) Waits for 0.1 s at most; if that fails, it is
// sent later.
void hand_arena_over() noexcept;
bool arena_is_owed() noexcept;

}  // namespace haul
