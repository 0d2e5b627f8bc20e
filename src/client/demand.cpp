#include "client/demand.hpp"

#include <atomic>
#include <cstdint>

#include "base/knobs.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "client/link_socket.hpp"

namespace haul {
namespace {

constexpr std::uint64_t start_pause_ns = 60'000'000'000;
constinit std::atomic<std::uint64_t> started_ns{0};

}  // namespace

bool may_start_service() noexcept {
  if (knob_number(Knob::service_use) != 2) return false;
  const std::uint64_t last = started_ns.load(std::memory_order_relaxed);
  return last == 0 || now_ns() - last >= start_pause_ns;
}

Error start_service() noexcept {
  started_ns.store(now_ns(), std::memory_order_relaxed);
  const char* const arguments[] = {"haul", "serve", "--daemon", "--idle-exit", "60", nullptr};
  const int status = os::run_program(arguments);
  if (open_link_socket() == 0) return Error{};
  return make_error(
      Code::not_supported, 0,
      "HAUL_SERVICE_USE=demand: `haul serve --daemon` started no service (%s); is haul in PATH?",
      status < 0 ? describe_errno(-status) : "it failed");
}

}  // namespace haul
