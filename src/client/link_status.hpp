// What people are told of the link: one sentence, and the process that the service is.
//
// Threads: any; a lock covers both.
#pragma once

#include "base/error.hpp"
#include "client/link.hpp"
#include "request/wire.hpp"

namespace haul {

// Keeps the sentence for service_status(), and logs it.
void say_of_link(const Error& said) noexcept;
void say_attached(const wire::Welcome& welcome) noexcept;
// There is no service process any more; the sentence stays.
void say_detached() noexcept;

// Fills in pid and sentence.
void read_link_status(ServiceStatus* status) noexcept;
// In a child of fork, where another thread may have held the lock.
void forget_link_status() noexcept;

}  // namespace haul
