#include "fabric/transport/spare_core.hpp"

#include "base/os/os.hpp"

namespace haul::fabric {

namespace {
[[gnu::tls_model("initial-exec")]] constinit thread_local bool has_core = false;
}  // namespace

bool cores_exceed(std::size_t processes) noexcept {
  static const unsigned cpus = os::allowed_cpus();
  return cpus > processes;
}

void copy_on_this_thread() noexcept {
  has_core = true;
}

bool copies_on_this_thread() noexcept {
  return has_core;
}

}  // namespace haul::fabric
