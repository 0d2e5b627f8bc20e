// Requests whose Ticket is gone: their memory is kept until they have ended.
//
// Nobody waits for such requests, so each submit looks whether some have ended. When the
// interpreter ends, finish() waits for all that are left. A Ticket that dies later, while modules
// are taken down, waits itself.
#pragma once

#include "python/src/tickets/ticket.hpp"

namespace haul_python {

void abandon(RequestsInFlight requests);

// Lets go of those that have ended. Costs one load where there are none.
void look_at_abandoned();

// Defines the function that the module registers with atexit.
void define_abandoned(nb::module_& module);

}  // namespace haul_python
