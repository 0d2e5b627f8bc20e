// What the engine `uffd` is told besides its pieces.
#pragma once

#include "base/private.hpp"
#include "base/sync/turnstile.hpp"

namespace haul {

// The userfaultfd that watches the destinations of all pieces to come; a fork's child names its
// own. The caller keeps it open, but the program may close it at any time: then the CPU moves the
// bytes, and is held at each page until that has been served. `may_make_huge`: pages of 2 MiB may
// be made where a piece fills them, because neither the system nor the program forbids it.
// `turnstile`: passed with each page (base/private.hpp).
void name_userfault(int fd, bool may_make_huge, Turnstile* turnstile) noexcept;

// Where pages of destinations lie aside (base/private.hpp): one table a process, for good.
void name_asides(const HaulPrivateAsides& asides) noexcept;

}  // namespace haul
