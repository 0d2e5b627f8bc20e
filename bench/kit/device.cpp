// Opening an engine that the settings ask for, and copying by it.
#include "bench/kit/device.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "base/machine/cpu.hpp"
#include "tools/failure.hpp"

namespace haul::bench {

haul_engine_info engine_info(const char* name) {
  haul_engine_info info{};
  info.size = sizeof info;
  for (unsigned i = 0; haul_engine(i, &info) == 0; ++i)
    if (std::strcmp(info.name, name) == 0) return info;
  return haul_engine_info{};
}

void copy_by_caller(const haul_request& request) {
  haul_ticket ticket{};
  int status = haul_submit(&request, 1, &ticket);
  while (status >= 0 && (status = haul_test(ticket)) == 0) cpu_relax();
  tools::require(status, "haul_submit()");
}

void open_asked_engine(const haul_request& request) {
  constexpr int patience_ms = 3000;
  const char* const name = std::getenv("HAUL_PLAN_ENGINE");
  for (int waited_ms = 0; engine_info(name).available == 0; ++waited_ms) {
    if (waited_ms == patience_ms)
      throw tools::CommandFailure(std::string("engine ") + name + ": " + engine_info(name).status);
    copy_by_caller(request);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace haul::bench
