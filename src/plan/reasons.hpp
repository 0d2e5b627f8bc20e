// A plan's reasons in words. For people: nothing is decided here.
#pragma once

#include "plan/plan.hpp"

namespace haul::plan {

// Adds a sentence, if anybody wants it and there is room.
[[gnu::format(printf, 2, 3)]] void say(Reasons* reasons, const char* format, ...) noexcept;

// Why this mover. `dedicated`: as dedicated_for() says.
void explain_mover(const Inputs& inputs, Mover dedicated, const Route& route,
                   Reasons* reasons) noexcept;

// What handing over costs here, and what copying does.
void explain_costs(const Inputs& inputs, Reasons* reasons) noexcept;

}  // namespace haul::plan
