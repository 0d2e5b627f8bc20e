// Hangs the floors above the mover on its hooks.
#include "api/startup.hpp"

#include "client/link.hpp"
#include "mover/mover.hpp"
#include "tune/background.hpp"

namespace haul::api {

void start_up() noexcept {
  on_mover_started(tune::consider);
  on_service_attached(tune::load_stored);
  on_link_at_rest(dismiss_unneeded_aides);
}

}  // namespace haul::api
