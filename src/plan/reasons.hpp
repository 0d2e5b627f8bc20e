// A plan's reasons in words. For people to read: nothing is decided here.
#pragma once

#include "plan/plan.hpp"

namespace haul::plan {

// Adds a sentence, if reasons are wanted and there is room.
[[gnu::format(printf, 2, 3)]] void say(Reasons* reasons, const char* format, ...) noexcept;

// Explains the choice of the mover. `dedicated` is dedicated_for()'s result.
void explain_mover(const Inputs& inputs, Mover dedicated, const Route& route,
                   Reasons* reasons) noexcept;

// Explains what handing over costs here, and what copying costs.
void explain_costs(const Inputs& inputs, Reasons* reasons) noexcept;

}  // namespace haul::plan
