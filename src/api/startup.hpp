// What a process's first submit sets up once, since there are no global constructors: the floors
// above the mover hang their hooks on it.
#pragma once

namespace haul::api {

// Idempotent, cheap after the first time, thread-safe.
void start_up() noexcept;

}  // namespace haul::api
